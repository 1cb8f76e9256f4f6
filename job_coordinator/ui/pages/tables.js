// Configuration and JobModel: read when their view is opened.

import { request } from "./asking.js";
import { byId, clock, el, matches, onFilter, write } from "./dom.js";

const SOURCES = {
  "job-runner": "run-job",
  "coordinator-stream-writer": "config set, or coordinator-stream-writer",
  homeport: "the ApplicationMaster",
};

const filters = { configuration: "", model: "" };

/** Reads and shows the configuration, the newest change marked. */
export async function showConfiguration() {
  const found = await read("configuration");
  if (!found) return;
  byId("configuration").replaceChildren(...found.keys.map(keyRow));
  byId("only-changed").disabled = !found.in_stream;
  const changed = found.keys.filter((key) => isChange(key)).length;
  write(byId("configuration-note"), found.in_stream
    ? `${found.keys.length} keys; ${changed} set after the deployment. Secrets are masked.`
    : `${found.keys.length} keys, out of each processor's own file. Secrets are masked.`);
  sift("configuration");
}

const isChange = (key) => key.source === "coordinator-stream-writer";

function keyRow(key) {
  const by = key.source === null ? "–" : SOURCES[key.source] ?? key.source;
  const from = key.user ? ` by ${key.user}${key.host ? ` on ${key.host}` : ""}` : "";
  return el("tr", { "data-words": `${key.key} ${key.value} ${by}${from}`.toLowerCase(), "data-changed": isChange(key) ? "yes" : null },
    el("th", { scope: "row", class: "mono", "data-label": "Key" }, key.key),
    el("td", { class: "mono value", "data-label": "Value" }, key.value === "" ? "(empty)" : key.value),
    el("td", { "data-label": "Set by" }, `${by}${from}`),
    el("td", { class: "when", "data-label": "When" }, key.at_ms ? clock(key.at_ms) : "–"));
}

/** Reads and shows the JobModel in force. */
export async function showModel(version) {
  const found = await read("../");
  if (!found) return;
  const rows = [];
  for (const [id, container] of Object.entries(found.containers)) {
    for (const [task, model] of Object.entries(container.tasks)) rows.push(taskRow(id, task, model));
  }
  byId("model").replaceChildren(...rows);
  const count = Object.keys(found.containers).length;
  write(byId("model-title"), `JobModel${version ? ` version ${version}` : ""}: ${count} containers, ${rows.length} tasks`);
  sift("model");
}

function taskRow(id, task, model) {
  const inputs = (model["system-stream-partitions"] ?? [])
    .map((ssp) => `${ssp.system}.${ssp.stream}.${ssp.partition}`).join(", ");
  const partition = model["changelog-partition"];
  return el("tr", { "data-words": `${id} ${task} ${inputs}`.toLowerCase() },
    el("th", { scope: "row", "data-label": "Processor" }, id),
    el("td", { "data-label": "Task" }, model["task-mode"] === "Standby" ? `${task} (standby)` : task),
    el("td", { class: "mono value", "data-label": "Inputs" }, inputs || "–"),
    el("td", { class: "number", "data-label": "Changelog partition" }, partition === undefined || partition === null ? "–" : String(partition)));
}

async function read(path) {
  try {
    const answer = await request(path);
    return answer.ok ? await answer.json() : null;
  } catch (error) {
    return null; // the connection's own sign says so
  }
}

function sift(name) {
  const isOnlyChanged = name === "configuration" && byId("only-changed").checked;
  for (const row of byId(name).children) {
    row.hidden = !matches(row.dataset.words, filters[name]) || (isOnlyChanged && !row.dataset.changed);
  }
}

/** Starts the filters. */
export function startTables() {
  for (const name of ["configuration", "model"]) {
    onFilter(byId(`filter-${name}`), (text) => {
      filters[name] = text;
      sift(name);
    });
  }
  byId("only-changed").addEventListener("change", () => sift("configuration"));
}
