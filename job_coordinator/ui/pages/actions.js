// What an operator does to the job: a token, a plan, a confirmation; and all changes so far.

import { hold, isHeld, request } from "./asking.js";
import { byId, clock, el, matches, onFilter, write } from "./dom.js";

const MOVE = [["processor", "Processor", "known-processors"], ["host", "To host, any or last-seen", "known-hosts"]];
const HOST = [["host", "Host", "known-nodes"]];

// A further action of the server is one entry here: what is typed, and `fixed`, what is not.
const ACTIONS = [
  { action: "move", title: "Move a container", fields: MOVE },
  { action: "move", title: "Move a container warm: its state first", fields: MOVE, fixed: { warm: true } },
  { action: "restart", title: "Restart a container", fields: [["processor", "Processor", "known-processors"]] },
  { action: "cancel", title: "End the moves and restarts of a container", fields: [["processor", "Processor", "known-processors"]] },
  { action: "drain", title: "Drain a host", fields: HOST },
  { action: "drain", title: "Drain a host as far as there is room", fields: HOST, fixed: { force: true } },
  { action: "drain", title: "Take a drain back", fields: HOST, fixed: { undo: true } },
  { action: "config", title: "Set a key", fields: [["key", "Key", null], ["value", "Value", null]] },
  { action: "config", title: "Take a key back", fields: [["key", "Key", null]] },
];
const FOLLOW_MS = 1000;
const EVERY_MS = 3000;

let coordinatorUrl = null;
let known = "";
let round = 0;
let filter = "";

/** The state is this: what there is to choose from. */
export function noteState(state) {
  coordinatorUrl = state.coordinator_url;
  const ids = state.containers.map((container) => container.id);
  const nodes = state.hosts.map((host) => host.host);
  const hosts = ["any", "last-seen", ...state.hosts.filter((host) => host.state === "live").map((host) => host.host)];
  const text = JSON.stringify([ids, nodes, hosts]);
  if (text === known) return;
  known = text;
  byId("known-processors").replaceChildren(...ids.map((id) => el("option", { value: id })));
  byId("known-nodes").replaceChildren(...nodes.map((host) => el("option", { value: host })));
  byId("known-hosts").replaceChildren(...hosts.map((host) => el("option", { value: host })));
}

async function ask(path, body) {
  const headers = body ? { "Content-Type": "application/json" } : {};
  const answer = await request(path, { method: body ? "POST" : "GET", headers, cache: "no-store", body: body ? JSON.stringify(body) : null });
  const said = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(said.error ?? String(answer.status)), { status: answer.status });
  return said;
}

const reasonOf = (error) => (error instanceof TypeError ? "The job does not answer." : error.message);

async function takeToken() {
  const typed = byId("token").value.trim();
  byId("token").value = "";
  if (!typed) return;
  hold(typed);
  try {
    const said = await ask("actions");
    if (said.may_act && said.actions.length) offer(said);
    else refuse(whyNot(said), said.role !== "none");
  } catch (error) {
    refuse([reasonOf(error)]);
  }
}

function whyNot(said) {
  if (!said.actions.length) return ["The processors of this job are placed and configured by hand: nothing can be changed here."];
  if (said.role !== "none") return [`The token of ${said.name} has the role ${said.role}, which changes nothing. It is in use for reading until this page is left.`];
  const there = coordinatorUrl ? el("a", { href: `${coordinatorUrl}ui/`, rel: "noreferrer" }, coordinatorUrl) : "the job's own address";
  return ["A proxy between this page and the job, as YARN's, does not pass the token on: open ", there];
}

function offer(said) {
  const isOpen = location.protocol === "http:" && !["localhost", "127.0.0.1", "[::1]"].includes(location.hostname);
  byId("token-note").replaceChildren(`The token of ${said.name} is in use until this page is left.${isOpen ? " This connection is not encrypted: others can read it on the way." : ""}`);
  const offered = ACTIONS.map((action, number) => [action, number]).filter(([action]) => said.actions.includes(action.action));
  byId("action").replaceChildren(...offered.map(([action, number]) => el("option", { value: String(number) }, action.title)));
  show(true);
  showFields();
}

function refuse(parts, mayRead = false) {
  if (!mayRead) hold(null);
  byId("token-note").replaceChildren(...parts);
  show(false);
}

function show(isOffered) {
  byId("act").hidden = !isOffered;
  byId("token-form").hidden = isOffered;
  byId("token-forget").hidden = !isOffered;
  hidePlan();
  write(byId("outcome"), "");
}

const chosen = () => ACTIONS[Number(byId("action").value)];

function showFields() {
  byId("action-fields").replaceChildren(...chosen().fields.map(([name, title, list]) => el("label", {}, title,
    el("input", { class: "filter", id: `field-${name}`, list, autocomplete: "off", spellcheck: "false" }))));
  hidePlan();
}

function hidePlan() {
  round += 1; // an answer that is still on its way is not shown any more
  byId("plan").hidden = true;
}

const asked = () => ({ ...chosen().fixed, ...Object.fromEntries(chosen().fields.map(([name]) => [name, byId(`field-${name}`).value.trim()])) });

async function plan() {
  hidePlan();
  write(byId("outcome"), "");
  const mine = round;
  const body = asked();
  const { action } = chosen();
  try {
    const said = await ask(`actions/${action}`, { ...body, dry_run: true });
    if (mine === round) showPlan(action, body, said);
  } catch (error) {
    if (mine === round) write(byId("outcome"), reasonOf(error));
  }
}

function showPlan(action, body, said) {
  const change = `${said.what}: ${said.before ?? "nothing"} → ${said.after ?? "nothing"}`;
  write(byId("plan-what"), said.possible ? `${change}. What would happen:` : `${said.what} cannot be done:`);
  byId("plan-lines").replaceChildren(...said.lines.map((line) => el("li", {}, line)));
  const button = byId("action-do");
  button.hidden = !said.possible;
  write(button, `Confirm: ${said.what}`);
  button.onclick = () => carryOut(action, body);
  byId("plan").hidden = false;
}

async function carryOut(action, body) {
  hidePlan();
  const mine = round;
  const outcome = byId("outcome");
  try {
    const said = await ask(`actions/${action}`, { ...body, dry_run: false });
    write(outcome, said.message);
    showChanges();
    let last = null;
    while (said.uuid && mine === round) {
      await new Promise((then) => setTimeout(then, FOLLOW_MS));
      const answer = await ask(`answers/${said.uuid}`).catch((error) => error);
      if (mine !== round) return;
      // A move has none until its turn; what had one and has none was of a driver before.
      if (last && answer.status === 404) return write(outcome, `${last.message}. The job's driver is another one now and does not know this action: give it again.`);
      if (answer instanceof Error) continue;
      last = answer;
      write(outcome, `${answer.status}: ${answer.message}`);
      if (answer.final) return;
    }
  } catch (error) {
    if (mine === round) write(outcome, reasonOf(error));
  }
}

/** Reads and shows the changes so far, while their view is open. */
export async function showChanges() {
  if (document.hidden || byId("view-actions").hidden) return;
  if (!isHeld()) return write(byId("changes-note"), "They are shown to an operator's token, of any role.");
  let found;
  try {
    const answer = await request("../v1/audit");
    if (!answer.ok) return;
    found = await answer.json();
  } catch (error) {
    return; // the connection's own sign says so
  }
  byId("changes").replaceChildren(...found.changes.reverse().map(changeRow));
  write(byId("changes-note"), `${found.changes.length} since ${clock(found.since_ms)}, when this driver began.`);
  sift();
}

function changeRow(change) {
  const cells = [["By", change.author], ["From", change.address], ["Through", change.through], ["What", change.what], ["Before", change.before ?? "–"], ["After", change.after ?? "–"]];
  return el("tr", { "data-words": Object.values(change).join(" ").toLowerCase() },
    el("th", { scope: "row", class: "when", "data-label": "When" }, clock(change.at_ms)),
    ...cells.map(([name, text]) => el("td", { class: "value", "data-label": name }, text)));
}

function sift() {
  for (const row of byId("changes").children) row.hidden = !matches(row.dataset.words, filter);
}

/** Starts the fields, the buttons and the filter. */
export function startActions() {
  byId("token-use").addEventListener("click", takeToken);
  byId("token").addEventListener("keydown", (event) => event.key === "Enter" && takeToken());
  byId("token-forget").addEventListener("click", () => refuse(["The token is forgotten: this page only reads."]));
  byId("action").addEventListener("change", showFields);
  byId("action-fields").addEventListener("input", hidePlan);
  byId("action-plan").addEventListener("click", plan);
  setInterval(showChanges, EVERY_MS);
  onFilter(byId("filter-actions"), (text) => {
    filter = text;
    sift();
  });
}
