// Short names of hosts, where they are as good as the long ones.

let shorts = new Map();

/** The hosts of the job are these. */
export function nameHosts(hosts) {
  const first = hosts.map((host) => host.split(".")[0]);
  const isClear = new Set(first).size === hosts.length && first.every((name) => /[a-z]/i.test(name));
  shorts = new Map(hosts.map((host, number) => [host, isClear ? first[number] : host]));
}

/** A host's first label, where no other host of the job has it and it is no address. */
export const shortHost = (host) => shorts.get(host) ?? host;
