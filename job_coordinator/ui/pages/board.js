// Hosts as columns with their containers; the replicas of one state are joined.

import { byId, el, phaseOf, phaseTag, short, write } from "./dom.js";
import { shortHost } from "./hosts.js";
import { lagBar, restoreBar } from "./bars.js";

const columns = new Map(); // host -> {element, state, list}
const cards = new Map(); // id -> {element, text}

/** Shows the hosts of the state and the containers on each. */
export function showBoard(state) {
  const board = byId("hosts");
  const hosts = state.hosts.map((host) => host.host);
  const places = new Map();
  for (const container of state.containers) {
    const place = container.place ?? "";
    if (!places.has(place)) places.set(place, []);
    places.get(place).push(container);
  }
  const wanted = places.has("") ? ["", ...hosts] : hosts;
  const states = new Map(state.hosts.map((host) => [host.host, host.state]));
  for (const [host, column] of columns) {
    if (!wanted.includes(host)) {
      column.element.remove();
      columns.delete(host);
    }
  }
  const known = new Map(state.containers.map((c) => [c.id, c]));
  const standbys = new Map();
  for (const one of state.containers) {
    if (one.of !== null) standbys.set(one.of, [...(standbys.get(one.of) ?? []), one]);
  }
  let before = null;
  for (const host of wanted) {
    const column = columns.get(host) ?? makeColumn(host);
    showColumn(column, states.get(host) ?? "", places.get(host) ?? [], known, standbys);
    if (column.element.previousElementSibling !== before || column.element.parentNode !== board) {
      if (before) before.after(column.element);
      else board.prepend(column.element);
    }
    before = column.element;
  }
  for (const [id, card] of cards) {
    if (!known.has(id)) {
      card.element.remove();
      cards.delete(id);
    }
  }
  const more = state.hosts_live - state.hosts.filter((host) => host.state !== "lost").length;
  const note = byId("hosts-more");
  note.hidden = more <= 0;
  write(note, `${more} more live ${more === 1 ? "host has" : "hosts have"} no container of this job.`);
}

function makeColumn(host) {
  const note = el("span", { class: "host-state" });
  const count = el("span", { class: "host-count" });
  const list = el("ul", { class: "cards" });
  const element = el("section", { class: "host", "aria-label": host ? `Host ${host}` : "No host yet" },
    el("h3", {}, el("span", { class: "host-name" }, host || "no host yet"), note, count), list);
  const column = { element, note, count, list };
  columns.set(host, column);
  return column;
}

function showColumn(column, hostState, containers, known, standbys) {
  write(column.note, hostState === "live" ? "" : hostState);
  column.element.dataset.state = hostState;
  write(column.count, containers.length ? String(containers.length) : "none");
  let before = null;
  for (const container of containers) {
    const element = showCard(container, known, standbys);
    if (element.parentNode !== column.list || element.previousElementSibling !== before) {
      if (before) before.after(element);
      else column.list.prepend(element);
    }
    before = element;
  }
}

function partners(container, known, standbys) {
  if (container.of !== null) return known.has(container.of) ? [known.get(container.of)] : [];
  return standbys.get(container.id) ?? [];
}

function showCard(container, known, standbys) {
  const joined = partners(container, known, standbys);
  const { id, of, phase, since_ms, leads, is_there } = container;
  const pairs = joined.map((other) => [other.id, other.place, other.phase]);
  const text = JSON.stringify([of, phase, leads, is_there, pairs]);
  let card = cards.get(id);
  if (!card) {
    card = { element: el("li", { class: "card", "data-id": id }), text: "", since: el("span", { class: "since" }), work: el("div", {}), numbers: "" };
    join(card.element);
    cards.set(id, card);
  }
  showNumbers(card, container);
  if (card.text === text) return card.element;
  card.text = text;
  card.element.dataset.mood = phaseOf(phase)[1];
  card.element.classList.toggle("is-away", !is_there);
  card.element.classList.toggle("is-standby", of !== null);
  card.element.dataset.pairs = joined.map((other) => other.id).join(" ");
  const isStandby = of !== null;
  card.element.replaceChildren(
    el("div", { class: "card-head" },
      el("a", { class: "id", href: `#work-${id}` }, id),
      phaseTag(phase),
      card.since),
    card.work,
    ...joined.map((other) => pair(other, isStandby)));
  return card.element;
}

/** What changes from second to second is written in its place; the rest of the card stays. */
function showNumbers(card, container) {
  const { since_ms, lag, lag_s, lag_left_s, restore, is_there, leads, keeps } = container;
  if (since_ms) card.since.dataset.since = since_ms;
  else delete card.since.dataset.since;
  const numbers = JSON.stringify([lag, lag_s, lag_left_s, restore, is_there, leads, keeps]);
  if (card.numbers === numbers) return;
  card.numbers = numbers;
  card.work.replaceChildren(...body(container));
}

function body(container) {
  if (container.restore) return [restoreBar(container.restore)];
  if (container.of !== null && container.is_there && container.lag !== null) return [lagBar(container)];
  const facts = [container.leads ? "leads the job" : "", container.lag === null || !container.is_there ? "" : `lag ${short(container.lag)}`];
  const lines = [facts.filter(Boolean).join(" · "), container.keeps ?? ""];
  return lines.filter(Boolean).map((line) => el("p", { class: "card-fact" }, line));
}

function pair(other, isStandby) {
  const where = other.place ? ` on ${shortHost(other.place)}` : "";
  return el("p", { class: "pair" }, isStandby ? "standby of " : "standby ",
    el("a", { href: `#work-${other.id}` }, other.id), where,
    other.phase === "running" ? "" : `, ${other.phase}`);
}

/** The card under the pointer or the focus, and its partners, stand out together. */
function join(element) {
  const set = (isOn) => {
    for (const id of [element.dataset.id, ...(element.dataset.pairs ?? "").split(" ")]) {
      cards.get(id)?.element.classList.toggle("is-joined", isOn && element.dataset.pairs !== "");
    }
  };
  for (const name of ["pointerenter", "focusin"]) element.addEventListener(name, () => set(true));
  for (const name of ["pointerleave", "focusout"]) element.addEventListener(name, () => set(false));
}
