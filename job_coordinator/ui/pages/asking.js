// Requests to the job, with the operator's token where there is one: in this page's memory alone.

let token = null;

/** From now on each request shows this token; null: none. */
export function hold(given) {
  token = given;
}

/** Whether there is a token. */
export const isHeld = () => token !== null;

/** The answer to a request; a redirect, which would take the token along, is none unless `options` say so. */
export function request(path, options = {}) {
  const shown = token === null ? {} : { Authorization: `Bearer ${token}` };
  return fetch(path, { redirect: "error", ...options, headers: { ...shown, ...options.headers } });
}
