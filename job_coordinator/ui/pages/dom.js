// Small helpers: elements without markup strings, and the words and numbers that they show.

/** An element with these properties and children; `class`, `data-*`, `aria-*` are attributes. */
export function el(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

/** Writes a text only where it is another one, as each write costs a layout. */
export function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export const byId = (id) => document.getElementById(id);

/** Two largest units: 3m12s. */
export function span(ms) {
  let seconds = Math.max(0, Math.floor(ms / 1000));
  const parts = [];
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]]) {
    const count = Math.floor(seconds / size);
    seconds %= size;
    if (count || parts.length) parts.push(`${count}${unit}`);
  }
  return parts.slice(0, 2).join("") || "0s";
}

/** A time of day in UTC; with its date where that is not today's. */
export function clock(ms, nowMs = Date.now()) {
  const text = new Date(ms).toISOString();
  const today = new Date(nowMs).toISOString().slice(0, 10);
  return text.startsWith(today) ? text.slice(11, 19) : `${text.slice(0, 10)} ${text.slice(11, 19)}`;
}

/** A number in at most five characters: 950, 12.3k, 4.56M; "–" where it is not known. */
export function short(value) {
  if (value === null || value === undefined) return "–";
  for (const [size, unit] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]]) {
    const by = unit === "k" ? 1e3 : size;
    if (value >= size) return `${digits(value / by)}${unit}`;
  }
  return digits(value);
}

function digits(value) {
  return value >= 100 || Number.isInteger(value) ? String(Math.round(value)) : value.toFixed(1);
}

/** A time in ms: 3.2 ms, 1.4 s; "–" where it is not known. */
export function duration(ms) {
  if (ms === null || ms === undefined) return "–";
  return ms >= 1000 ? `${digits(ms / 1000)} s` : `${digits(ms)} ms`;
}

const PHASES = {
  running: ["●", "good"], finished: ["✓", "good"], waiting: ["○", "calm"],
  starting: ["◐", "moves"], assigned: ["◔", "moves"], allocated: ["◔", "moves"], requested: ["◌", "moves"],
  queued: ["◌", "moves"], stopping: ["◑", "moves"], "failing-over": ["⇄", "moves"],
  "backing-off": ["◇", "bad"], failed: ["✕", "bad"], unknown: ["?", "bad"], stopped: ["□", "calm"],
};

/** [sign, mood] of a phase: its colour is never alone. */
export const phaseOf = (phase) => PHASES[phase] ?? ["◌", "moves"];

/** A phase as a sign and its word. */
export function phaseTag(phase) {
  const [sign, mood] = phaseOf(phase);
  return el("span", { class: "phase", "data-mood": mood },
    el("span", { class: "sign", "aria-hidden": "true" }, sign), phase);
}

/** Whether each word of the filter is in the text; both in lower case. */
export function matches(text, filter) {
  return filter.split(/\s+/).every((word) => text.includes(word));
}

/** Calls `then` with the filter in lower case at each change. */
export function onFilter(input, then) {
  input.addEventListener("input", () => then(input.value.trim().toLowerCase()));
}
