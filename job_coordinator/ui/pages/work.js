// The table of work: a row of each container, with small plots of the last hour of those in view.

import { request } from "./asking.js";
import { shortHost } from "./hosts.js";
import { byId, duration, el, matches, onFilter, phaseTag, short, write } from "./dom.js";

const SERIES = [
  ["lag", "lag", "Lag", short],
  ["records_per_s", "records_per_s", "Records/s", short],
  ["batch_ms", "batch_ms", "Batch", duration],
  ["commit_ms", "commit_ms", "Commit", duration],
];
const EVERY_MS = 15000;
const AT_ONCE = 50; // the server takes 60 in a request
const WIDTH = 76;
const HEIGHT = 22;
const SVG = "http://www.w3.org/2000/svg";

const rows = new Map(); // id -> {element, cells, text, words}
const visible = new Set();
let filter = "";
let metricsShown = "[]";

const seen = new IntersectionObserver((entries) => {
  let isNew = false;
  for (const entry of entries) {
    const { id } = entry.target.dataset;
    if (entry.isIntersecting) {
      isNew ||= !visible.has(id);
      visible.add(id);
    } else visible.delete(id);
  }
  if (isNew) requestPlots();
}, { rootMargin: "200px" });

/** Shows a row of each container. */
export function showWork(state) {
  const body = byId("work");
  const known = new Set();
  let before = null;
  for (const container of state.containers) {
    known.add(container.id);
    const row = rows.get(container.id) ?? makeRow(container.id);
    showRow(row, container);
    if (row.element.previousElementSibling !== before || row.element.parentNode !== body) {
      if (before) before.after(row.element);
      else body.prepend(row.element);
    }
    before = row.element;
  }
  for (const [id, row] of rows) {
    if (!known.has(id)) {
      seen.unobserve(row.element);
      row.element.remove();
      rows.delete(id);
      visible.delete(id);
    }
  }
}

/** Shows the metrics of the job's own, [series, value in words] each. */
export function showMetrics(metrics) {
  const text = JSON.stringify(metrics);
  if (text === metricsShown) return;
  metricsShown = text;
  byId("own").hidden = metrics.length === 0;
  byId("metrics").replaceChildren(...metrics.map(([series, value]) => el("tr", {},
    el("th", { scope: "row", class: "mono value", "data-label": "Metric" }, series),
    el("td", { class: "mono", "data-label": "Value" }, value))));
}

function makeRow(id) {
  const cell = (name, attributes = {}) => el("td", { "data-label": name, ...attributes });
  const plots = SERIES.map(([, , name]) => {
    const number = el("span", { class: "number" }, "–");
    const plot = document.createElementNS(SVG, "svg");
    plot.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
    plot.setAttribute("preserveAspectRatio", "none");
    plot.setAttribute("class", "spark");
    plot.setAttribute("role", "img");
    plot.setAttribute("aria-label", `${name} of ${id} over the last hour`);
    const line = document.createElementNS(SVG, "path");
    plot.append(line);
    return { number, plot, line, element: el("td", { "data-label": name, class: "plot" }, el("span", { class: "plot-box" }, number, plot)) };
  });
  const cells = { phase: cell("Phase"), host: cell("Host"), failures: cell("Failures", { class: "number" }), log: cell("Log", { class: "log" }) };
  const role = el("span", { class: "role" });
  const element = el("tr", { id: `work-${id}`, "data-id": id, tabindex: "-1" },
    el("th", { scope: "row", "data-label": "Processor" }, el("span", { class: "id" }, id), role),
    cells.phase, cells.host, ...plots.map((p) => p.element), cells.failures, cells.log);
  const row = { element, cells, plots, role, since: el("span", { class: "since" }), text: "", words: "" };
  rows.set(id, row);
  seen.observe(element);
  return row;
}

function showRow(row, container) {
  SERIES.forEach(([key, , , shown], number) => write(row.plots[number].number, shown(container[key])));
  const { id, of, phase, since_ms, place, is_there, failures, last_failure, log, log_url, resource } = container;
  const text = JSON.stringify([of, phase, place, is_there, failures, last_failure, log, log_url, resource]);
  if (since_ms) row.since.dataset.since = since_ms;
  else delete row.since.dataset.since;
  if (row.text === text) return;
  row.text = text;
  row.words = [id, of === null ? "active" : `standby of ${of}`, phase, place ?? ""].join(" ").toLowerCase();
  write(row.role, of === null ? "" : `standby of ${of}`);
  row.cells.phase.replaceChildren(phaseTag(phase), row.since);
  write(row.cells.host, place === null ? "–" : is_there ? shortHost(place) : `(${shortHost(place)})`);
  row.cells.failures.replaceChildren(String(failures));
  row.cells.failures.title = last_failure ?? "";
  row.cells.log.replaceChildren(...logOf(id, log, log_url, resource));
  row.element.hidden = !matches(row.words, filter);
}

function logOf(id, log, url, resource) {
  if (!log) return ["–"];
  const name = url?.startsWith("http") ? el("a", { href: url, rel: "noreferrer", title: `in ${resource}` }, log) : el("span", { title: `in ${resource}` }, log);
  return [name, el("span", { class: "how" }, `homeport logs ${id}`)];
}

async function requestPlots() {
  if (document.hidden || byId("view-containers").hidden) return;
  const names = [...visible].filter((id) => !rows.get(id)?.element.hidden);
  for (let at = 0; at < names.length; at += AT_ONCE) {
    const query = names.slice(at, at + AT_ONCE).map((id) => `processor=${encodeURIComponent(id)}`).join("&");
    let found;
    try {
      const answer = await request(`plots?${query}`);
      if (!answer.ok) return;
      found = await answer.json();
    } catch (error) {
      return; // the connection's own sign says so
    }
    for (const [id, series] of Object.entries(found.series)) {
      const row = rows.get(id);
      if (row) SERIES.forEach(([, key, name, shown], number) => draw(row.plots[number], series[key], `${name} of ${id}`, shown));
    }
  }
}

/** A line with gaps where nothing is known; its words say the greatest and the newest value. */
function draw(plot, values, name, shown) {
  const known = values.filter((value) => value !== null);
  const top = Math.max(...known, 0);
  let path = "";
  let isOpen = false;
  values.forEach((value, number) => {
    if (value === null) {
      isOpen = false;
      return;
    }
    const x = (number / (values.length - 1)) * WIDTH;
    const y = HEIGHT - 1 - (top ? (value / top) * (HEIGHT - 2) : 0);
    path += `${isOpen ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
    if (!isOpen) path += `L${x.toFixed(1)} ${y.toFixed(1)}`;
    isOpen = true;
  });
  if (plot.line.getAttribute("d") !== path) plot.line.setAttribute("d", path);
  const newest = known.length ? known[known.length - 1] : null;
  plot.plot.setAttribute("aria-label", known.length
    ? `${name} over the last hour: ${shown(newest)} now, ${shown(top)} at most` : `${name}: nothing known yet`);
}

/** Starts the plots and the filter. */
export function startWork() {
  setInterval(requestPlots, EVERY_MS);
  onFilter(byId("filter-containers"), (text) => {
    filter = text;
    for (const row of rows.values()) row.element.hidden = !matches(row.words, filter);
  });
}
