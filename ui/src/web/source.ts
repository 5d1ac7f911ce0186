// Where a run was measured from. The archive may have runs of other hosts: of a fleet, imported ones, and those of hosts
// that share it.

import type { Result, Run } from "./api";
import { isOfTool } from "./form";

/** A run as "client → server", the server as it was typed. `here` is the host of the page. */
export function ends({ target, result }: Run, here: string): string {
  // A run without a result was started here.
  if (!result) return `${here} → ${target ?? "…"}`;
  const [client, server] = (result.hosts ?? []).map(({ name }) => name);
  if (!client) return isFromHere(result, here) ? `${here} → ${target ?? "…"}` : (target ?? "…");
  // The target of a client of another program is that client.
  if (server && isOfTool(target) && target?.startsWith(`${client} (`)) return `${target} → ${server}`;
  return `${client} → ${target ?? "…"}`;
}

/** Whether this host was the client of a run, so that it can make the same run again. */
export function isFromHere(result: Result, here: string): boolean {
  const client = result.hosts?.[0]?.name;
  if (client) return client === here;
  // Of a run that reached no other host, only those of a plan and imported ones are known to be from elsewhere.
  return !isImported(result) && !result.run.group;
}

/** Whether this host was one of the two ends. */
export const isOfHere = (result: Result, here: string): boolean =>
  (result.hosts ?? []).some(({ name }) => name === here);

/** Whether the figures were read from a file of another program. */
const isImported = ({ caveats = [], flows }: Result): boolean =>
  [...caveats, ...flows.flatMap(({ caveats = [] }) => caveats)].some(({ kind }) => kind === "imported");
