// The first screen: the headline, what is late and why, and how fresh all that is.

import { byId, clock, el, phaseTag, span, write } from "./dom.js";
import { restoreBar } from "./bars.js";

const MOST = 8; // late containers in the first screen; the others stand out on their hosts

let shown = "";

/** Shows the state's first screen. */
export function showScreen(state) {
  const { job, screen } = state;
  write(byId("job-name"), `${job.name ?? "?"}-${job.id ?? "?"}`);
  document.title = `${screen.is_calm ? "" : "! "}${job.name ?? "Homeport"} · Homeport`;
  const health = byId("job-health");
  health.hidden = false;
  write(health, screen.is_calm && screen.late.length ? "starting" : job.health ?? job.state ?? "unknown");
  health.dataset.mood = job.health === "deployed" ? "good" : job.health === "degraded" ? "bad" : "moves";
  showFacts(state);
  const headline = byId("headline");
  write(headline, `${screen.headline}.`);
  headline.dataset.mood = screen.late.some((c) => ["failed", "unknown", "backing-off"].includes(c.phase))
    ? "bad" : screen.late.length ? "moves" : screen.notices.length ? "moves" : "good";
  const restores = new Map(state.containers.map((c) => [c.id, c.restore]));
  const text = JSON.stringify([screen.late, screen.notices, screen.late.map((c) => restores.get(c.id))]);
  if (text !== shown) {
    shown = text;
    byId("late").replaceChildren(...screen.late.slice(0, MOST).map((c) => late(c, restores.get(c.id))),
      ...(screen.late.length > MOST ? [el("li", { class: "quiet" }, `and ${screen.late.length - MOST} more, below`)] : []));
    byId("notices").replaceChildren(...screen.notices.map((notice) => el("li", {}, notice)));
  }
}

function showFacts({ job, application_url }) {
  const facts = [job.application, job.attempt ? `attempt ${job.attempt}` : "",
    job.version ? `JobModel version ${job.version}` : ""].filter(Boolean);
  const line = byId("job-facts");
  const key = facts.join(" · ") + (application_url ?? "");
  if (line.dataset.key === key) return;
  line.dataset.key = key;
  line.replaceChildren(facts.join(" · "));
  if (application_url?.startsWith("http")) {
    line.append(" · ", el("a", { href: application_url, rel: "noreferrer" }, "YARN's page with all logs"));
  }
}

function late(container, restore) {
  const why = container.why.length ? `because ${container.why.join("; ")}` : "";
  const waits = container.waits.length ? `waits ${container.waits.join("; ")}` : "";
  return el("li", { class: "late-one" },
    el("a", { class: "id", href: `#work-${container.id}` }, container.id),
    phaseTag(container.phase),
    el("div", { class: "late-text" },
      el("p", {}, container.does,
        container.since_ms
          ? el("span", { class: "since" }, ` since ${clock(container.since_ms)}, for `,
            el("span", { "data-since": container.since_ms }, span(0)))
          : null),
      why || waits ? el("p", { class: "quiet" }, [why, waits].filter(Boolean).join(" · ")) : null),
    restore ? restoreBar(restore) : null);
}

/** Shows how long each phase lasts by now; `skewMs`: of the server's clock, from the reader's. */
export function showTimes(skewMs) {
  const now = Date.now() + skewMs;
  for (const node of document.querySelectorAll("[data-since]")) {
    write(node, span(now - Number(node.dataset.since)));
  }
}

/** Says how the page is connected, and since when what it shows is old. */
export function showLink(mode, text, atMs) {
  const link = byId("link");
  if (link.dataset.link !== mode) {
    link.dataset.link = mode;
    write(link, text);
  }
  const isLost = mode === "lost";
  const stale = byId("stale");
  stale.hidden = !isLost;
  if (isLost) {
    write(stale, atMs
      ? `The job has not answered since ${clock(atMs)}: what is below is of that time.`
      : "The job does not answer. The page asks again every 2 seconds.");
  }
  document.body.classList.toggle("is-stale", isLost);
}
