// What the parts of the fleet page share: addresses with something open, pages of a list, and a table of runs.

import type { CalendarRun } from "./fleet";
import { runPath, useAddress } from "./router";
import { flowRate, when, words } from "./words";

/** The lists that have pages: the name after which the page that is shown begins is in the address. */
export const LISTS = ["meshes_after", "schedules_after"] as const;
type List = (typeof LISTS)[number];

/** Addresses of this page with something open. The lists stay at their pages, unless another one is given. */
export function useFleetPath() {
  const { searchParams } = useAddress();
  return (open: Record<string, string>) => {
    const query = new URLSearchParams();
    for (const list of LISTS) query.set(list, searchParams.get(list) ?? "");
    for (const [name, value] of Object.entries(open)) query.set(name, value);
    for (const list of LISTS) if (!query.get(list)) query.delete(list);
    return query.size > 0 ? `/fleet?${query}` : "/fleet";
  };
}

/** The way to the next page of a list, and back to its first one. */
export function Pages({ list, next, what }: { list: List; next: string | undefined; what: string }) {
  const { searchParams } = useAddress();
  const path = useFleetPath();
  const isFirst = !searchParams.get(list);
  if (isFirst && next === undefined) return null;
  return (
    <p class="actions">
      {!isFirst && <a href={path({ [list]: "" })}>First {what}</a>}
      {next !== undefined && <a href={path({ [list]: next })}>More {what}</a>}
    </p>
  );
}

export function RunTable({
  runs,
  ofSchedules = false,
  actions,
}: {
  runs: CalendarRun[];
  /** Whether they are those of several schedules, which are named. */
  ofSchedules?: boolean;
  actions?: (run: CalendarRun) => preact.ComponentChild;
}) {
  if (runs.length === 0) return <p>No runs yet.</p>;
  return (
    <div class="scroll">
      <table>
        <thead>
          <tr>
            {ofSchedules && <th scope="col">Schedule</th>}
            <th scope="col">Starts</th>
            <th scope="col">State</th>
            <th scope="col" class="number">
              Goodput
            </th>
            <th scope="col">Verdict or reason</th>
            {actions && <th scope="col">Actions</th>}
          </tr>
        </thead>
        <tbody>
          {runs.map((run) => (
            <tr key={run.run}>
              {ofSchedules && (
                <th scope="row">
                  {run.schedule}: {run.from} → {run.to}
                </th>
              )}
              <td>{run.result ? <a href={runPath(run.run)}>{when(run.starts)}</a> : when(run.starts)}</td>
              <td>{words(run.state)}</td>
              <td class="number">
                {flowRate({ bitrate_bps: run.result?.goodput_bps, cause: run.result?.cause })}
              </td>
              <td>{run.reason ?? (run.confirms ? "second test" : words(run.result?.cause ?? ""))}</td>
              {actions && <td>{actions(run)}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
