// The dashboard of one job. It changes nothing without an operator's token (actions.js).

import { noteState, showChanges, startActions } from "./actions.js";
import { byId } from "./dom.js";
import { showBoard } from "./board.js";
import { showDecisions, startDecisions } from "./decisions.js";
import { nameHosts } from "./hosts.js";
import { follow } from "./live.js";
import { showLink, showScreen, showTimes } from "./screen.js";
import { showConfiguration, showModel, startTables } from "./tables.js";
import { showMetrics, showWork, startWork } from "./work.js";

const VIEWS = ["containers", "decisions", "configuration", "model", "actions"];
let skewMs = 0;
let atMs = null;
let version = null;
let newest = null;

/** The newest state is drawn with the next frame, however many have come. */
function take(state) {
  skewMs = state.now_ms - Date.now();
  atMs = state.now_ms;
  if (newest === null) requestAnimationFrame(draw);
  newest = state;
}

function draw() {
  const state = newest;
  newest = null;
  performance.mark("draw");
  nameHosts(state.hosts.map((host) => host.host));
  showScreen(state);
  showBoard(state);
  showWork(state);
  showMetrics(state.metrics);
  noteState(state);
  showTimes(skewMs);
  performance.measure("update", "draw"); // as a performance observer sees it; nothing is kept
  performance.clearMarks();
  performance.clearMeasures();
  if (version !== null && state.job.version !== version) {
    if (!byId("view-model").hidden) showModel(state.job.version);
    if (!byId("view-configuration").hidden) showConfiguration();
  }
  version = state.job.version;
  document.body.dataset.drawn = String(Number(document.body.dataset.drawn ?? 0) + 1);
}

function open(view, isFocused = false) {
  for (const name of VIEWS) {
    const isOpen = name === view;
    const tab = byId(`tab-${name}`);
    tab.setAttribute("aria-selected", String(isOpen));
    tab.tabIndex = isOpen ? 0 : -1;
    byId(`view-${name}`).hidden = !isOpen;
    if (isOpen && isFocused) tab.focus();
  }
  if (view === "decisions") showDecisions();
  if (view === "configuration") showConfiguration();
  if (view === "model") showModel(version);
  if (view === "actions") showChanges();
}

const opened = () => VIEWS.find((name) => !byId(`view-${name}`).hidden);

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const isTyping = (event.target instanceof HTMLInputElement && event.target.type !== "checkbox") || event.target instanceof HTMLSelectElement;
  if (event.target.getAttribute?.("role") === "tab") {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step) open(VIEWS[(VIEWS.indexOf(opened()) + step + VIEWS.length) % VIEWS.length], true);
  }
  if (isTyping) return;
  if (event.key === "/") {
    event.preventDefault();
    byId(`filter-${opened()}`).focus();
  } else if (VIEWS[Number(event.key) - 1]) open(VIEWS[Number(event.key) - 1], true);
}

/** A link to a container opens the view that has it. */
function onLink(event) {
  const link = event.target.closest?.('a[href^="#work-"]');
  if (!link) return;
  event.preventDefault();
  open("containers");
  const row = byId(link.getAttribute("href").slice(1));
  row?.scrollIntoView({ block: "center" });
  row?.focus({ preventScroll: true });
}

for (const name of VIEWS) byId(`tab-${name}`).addEventListener("click", () => open(name));
document.addEventListener("keydown", onKey);
document.addEventListener("click", onLink);
startWork();
startDecisions();
startTables();
startActions();
setInterval(() => showTimes(skewMs), 1000);
follow(take, (mode, text) => showLink(mode, text, atMs));
