// A list of runs, newest first, that is read page by page, and its first page again whenever a run begins or ends.

import type { RunRow } from "./api";

/** A page, as the server gives it. */
export interface RunPage {
  runs: RunRow[];
  /** Where the next page begins; absent on the last one. */
  next?: string;
}

/** What is known of the runs that match a query. */
export interface RunList extends RunPage {
  query: string;
  /** Whether more than the first page was asked for: what follows it stays when it is read again. */
  isLong: boolean;
}

/** The list after its first page was read. */
export function withFirstPage(list: RunList | undefined, query: string, page: RunPage): RunList {
  if (list?.query !== query) return { query, isLong: false, ...page };
  const later = list.isLong && page.next !== undefined ? runsAfter(list, page) : [];
  // The next page begins after the last run of the list.
  if (later.length === 0) return { query, isLong: list.isLong, ...page };
  return { ...list, runs: unique([...page.runs, ...later]) };
}

/**
 * The known runs after a page; none if it does not reach to them. What is known and missing in the page itself was
 * deleted, or no longer matches.
 */
function runsAfter({ runs }: RunList, page: RunPage): RunRow[] {
  const last = page.runs.at(-1);
  // A run that waited had no place among the others yet.
  const at = runs.findIndex(({ id, state }) => id === last?.id && state !== "waiting");
  return at < 0 ? [] : runs.slice(at + 1);
}

/** The list when more than its first page is asked for. */
export const asLong = (list: RunList): RunList => ({ ...list, isLong: true });

/** The list with the page after `after`. A late one may belong to another query, or to another end of the list. */
export function withNextPage(list: RunList, query: string, after: string, page: RunPage): RunList {
  if (list.query !== query || list.next !== after) return list;
  return { query, isLong: true, ...page, runs: unique([...list.runs, ...page.runs]) };
}

/** The newest run of a list that has ended. */
export const newestEnded = (runs: RunRow[]): string | undefined =>
  runs.find(({ state }) => state === "ended")?.id;

function unique(runs: RunRow[]): RunRow[] {
  const seen = new Set<string>();
  return runs.filter(({ id }) => !seen.has(id) && seen.add(id));
}
