// Bars of restores and of standbys, each with its words.

import { el, short, span } from "./dom.js";

/** How far a restore is, and the time that is left. */
export function restoreBar(restore) {
  const left = restore.left_s === null ? "time left not known" : `about ${span(restore.left_s * 1000)} left`;
  const done = Math.round(restore.done * 100);
  return bar("restore", done, 100, `restores ${restore.stores === 1 ? "1 store" : `${restore.stores} stores`}`,
    `${done} %, ${left}`);
}

const BEHIND_S = 60; // the alert rule of a standby that falls behind

/** How far a standby is behind, against the minute at which the alert rule fires. */
export function lagBar(container) {
  const seconds = container.lag_s;
  const ends = container.lag_left_s ? `, caught up in about ${span(container.lag_left_s * 1000)}` : "";
  const text = seconds === null
    ? `${short(container.lag)} behind${ends}`
    : `${short(container.lag)} behind, ${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s${ends}`;
  return bar("behind", Math.min(seconds ?? 0, BEHIND_S), BEHIND_S, "standby's lag, of a minute", text);
}

function bar(kind, value, max, name, text) {
  return el("span", { class: `bar ${kind}` },
    el("progress", { value, max, "aria-label": `${name}: ${text}` }),
    el("span", { class: "bar-text" }, text));
}
