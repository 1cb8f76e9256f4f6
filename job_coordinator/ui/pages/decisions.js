// The decision log: what was decided when, why, and what followed; with a filter.

import { request } from "./asking.js";
import { byId, clock, el, matches, onFilter, write } from "./dom.js";

const FIRST = 200;
const MOST = 1000;
const EVERY_MS = 2000;

const entries = []; // {number, element, words}, the newest first
let last = null;
let filter = "";
let isBusy = false;

async function ask(query) {
  const answer = await request(`../v1/events?${query}`);
  if (!answer.ok) throw new Error(String(answer.status));
  return answer.json();
}

async function look(limit = FIRST) {
  if (isBusy || document.hidden || byId("view-decisions").hidden) return;
  isBusy = true;
  try {
    const found = await ask(last === null ? `limit=${limit}` : `since=${last}&limit=${MOST}`);
    if (last !== null && found.last < last) { // another driver, whose numbers begin again
      last = null;
      entries.length = 0;
      byId("decisions").replaceChildren();
    } else {
      add(found);
    }
  } catch (error) {
    // the connection's own sign says so
  } finally {
    isBusy = false;
  }
}

function add(found) {
  const made = found.events.map(entry).reverse();
  entries.unshift(...made);
  for (const dropped of entries.splice(MOST)) dropped.element.remove();
  byId("decisions").prepend(...made.map((one) => one.element));
  last = found.last;
  byId("decisions-more").hidden = entries.length >= MOST || !entries.length || entries.at(-1).number <= found.first;
  write(byId("decisions-range"), entries.length
    ? `${entries.length} of ${found.last - found.first + 1} that are kept since ${clock(found.since_ms)}`
    : "Nothing has been decided since this driver began.");
}

function entry(event) {
  const sentences = event.reasons.map((reason) => reason.sentence);
  const follows = [...event.records, ...event.instructions];
  const element = el("li", {},
    el("time", { datetime: new Date(event.at_ms).toISOString() }, clock(event.at_ms)),
    el("div", {},
      el("p", { class: "cause" }, event.cause),
      ...sentences.map((sentence) => el("p", { class: "reason" }, sentence)),
      follows.length
        ? el("details", {}, el("summary", {}, `${follows.length} ${follows.length === 1 ? "step" : "steps"}`),
          el("ul", {}, ...follows.map((step) => el("li", {}, step))))
        : null));
  const words = [event.cause, ...sentences, ...follows].join(" ").toLowerCase();
  element.hidden = !matches(words, filter);
  return { number: event.number, element, words };
}

/** Shows what is decided from now on, while the view is open. */
export function startDecisions() {
  setInterval(() => look(), EVERY_MS);
  onFilter(byId("filter-decisions"), (text) => {
    filter = text;
    for (const one of entries) one.element.hidden = !matches(one.words, filter);
  });
  byId("decisions-more").addEventListener("click", () => {
    last = null;
    entries.length = 0;
    byId("decisions").replaceChildren();
    look(MOST);
  });
}

export const showDecisions = () => look();
