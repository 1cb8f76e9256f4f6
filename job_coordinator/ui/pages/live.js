// The connection: server-sent events, or requests again and again where a proxy holds events back.

import { request } from "./asking.js";

const FIRST_MS = 4000; // a stream that has brought nothing by then is held back by a proxy
const SILENT_MS = 25000; // the server says something at least every 10 s
const POLL_MS = 2000;
const AGAIN_MS = 15000;

/**
 * Follows the job.
 * @param {(state: object) => void} onState each state, as GET state has it.
 * @param {(mode: "live" | "polls" | "lost", text: string) => void} onLink how it is connected.
 */
export function follow(onState, onLink) {
  let source = null;
  let poll = null;
  let watch = null;
  let again = null;
  let isBuffered = false;
  let isClosed = false; // to a page without a token; with one it asks again and again, as a stream shows none

  function take(text) {
    onState(JSON.parse(text));
  }

  function watchFor(ms, isFirst) {
    clearTimeout(watch);
    watch = setTimeout(() => {
      isBuffered = isFirst;
      close();
      startPolling();
    }, ms);
  }

  function open() {
    clearTimeout(again);
    source = new EventSource("stream");
    watchFor(FIRST_MS, true);
    source.addEventListener("state", (event) => {
      stopPolling();
      watchFor(SILENT_MS, false);
      take(event.data);
      onLink("live", "Live");
    });
    source.addEventListener("time", () => watchFor(SILENT_MS, false));
    source.addEventListener("error", () => {
      close();
      startPolling();
      again = setTimeout(open, AGAIN_MS);
    });
  }

  function close() {
    clearTimeout(watch);
    source?.close();
    source = null;
  }

  async function ask() {
    try {
      isClosed = false;
      const answer = await request("state", { redirect: "manual", cache: "no-store" });
      if (answer.type === "opaqueredirect") {
        location.reload(); // another processor leads the job by now: its page is the one to see
        return;
      }
      if (answer.status === 401) {
        onLink("lost", "Needs a token: see Actions");
        isClosed = true;
      }
      if (!answer.ok) throw new Error(`it answers ${answer.status}`);
      const text = await answer.text();
      if (poll === null) return; // the stream is back
      take(text);
      onLink("polls", `Every ${POLL_MS / 1000} s`);
    } catch (error) {
      if (poll !== null && !isClosed) onLink("lost", "No answer");
    }
    if (poll !== null) poll = setTimeout(ask, POLL_MS);
  }

  function startPolling() {
    if (poll !== null) return;
    poll = 0;
    ask();
  }

  function stopPolling() {
    clearTimeout(poll);
    poll = null;
  }

  document.addEventListener("visibilitychange", () => {
    close();
    stopPolling();
    clearTimeout(again);
    if (document.hidden) return;
    if (isBuffered) startPolling();
    else open();
  });
  open();
}
