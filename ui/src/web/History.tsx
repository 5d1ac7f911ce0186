// All runs: filtered by the address of the page, selected to be compared.

import { useEffect, useRef, useState } from "preact/hooks";
import { getRuns, type RunRow } from "./api";
import { useDrafts } from "./drafts";
import { useCurrentRuns, useLoad, useProblem } from "./load";
import { comparePath, here, navigate, runPath, useAddress } from "./router";
import { asLong, type RunList, withFirstPage, withNextPage } from "./runList";
import { TagList } from "./Tags";
import { beginning, CAUSES, flowRate, NOTHING, WORLDS, when, words } from "./words";

const PAGE = "50";
const FILTERS = ["target", "name", "verdict", "world", "tag", "since", "until"] as const;
type Filter = (typeof FILTERS)[number];
/** Filters that have a day: how many days later than its beginning they take effect. */
const DAYS: Partial<Record<Filter, number>> = { since: 0, until: 1 };

/** The groups of a comparison, as the address has them. */
interface Selection {
  before: string[];
  after: string[];
}

export function HistoryPage() {
  const { searchParams } = useAddress();
  const currentRuns = useCurrentRuns();
  const query = new URLSearchParams({ limit: PAGE });
  for (const filter of FILTERS) {
    const value = searchParams.get(filter);
    // The server's host may be in another time zone than the visitor, and "until" a day includes it.
    if (value) query.set(filter, DAYS[filter] === undefined ? value : beginning(value, DAYS[filter]));
  }
  const filtered = query.size > 1;
  const asked = String(query);
  const latest = useRef(asked);
  latest.current = asked;
  const first = useLoad(`${asked} ${JSON.stringify(currentRuns ?? null)}`, async () => ({
    query: asked,
    page: await getRuns(query),
  }));
  // Until there is an answer, the runs of the filters before.
  const [list, setList] = useState<RunList>();
  const [problem, setProblem] = useProblem();
  useEffect(() => {
    const { query, page } = first.value ?? {};
    if (query !== undefined && page) setList((list) => withFirstPage(list, query, page));
  }, [first.value]);
  useEffect(() => setProblem(undefined), [asked]);
  useEffect(() => {
    document.title = "History · linerate";
  }, []);
  const runs = list?.runs ?? [];
  const isCurrent = list?.query === asked;
  const selection: Selection = {
    before: searchParams.getAll("select"),
    after: searchParams.getAll("with"),
  };
  const select = ({ before, after }: Selection) => {
    const address = here().searchParams;
    address.delete("select");
    address.delete("with");
    // There is always a first group.
    const [one, ...others] = [...before, ...after];
    const groups = before.length > 0 ? { before, after } : { before: one ? [one] : [], after: others };
    for (const id of groups.before) address.append("select", id);
    for (const id of groups.after) address.append("with", id);
    navigate(address.size > 0 ? `/history?${address}` : "/history", true);
  };
  const loadMore = async () => {
    const after = list?.next;
    if (after === undefined) return;
    setList((list) => list && asLong(list));
    try {
      const page = await getRuns(new URLSearchParams([...query, ["after", after]]));
      setList((list) => list && withNextPage(list, asked, after, page));
      if (latest.current === asked) setProblem(undefined);
    } catch (error) {
      if (latest.current === asked) setProblem(error);
    }
  };
  const trouble = problem ?? first.problem;
  return (
    <div class="history">
      <h1>What was measured</h1>
      <Filters />
      {trouble && trouble.status !== 401 && (
        <p class="trouble" role="alert">
          {trouble.text}
        </p>
      )}
      {isCurrent && runs.length === 0 && (
        <p>
          {filtered ? "No run matches these filters. " : "Nothing was measured yet. "}
          {filtered ? <a href="/history">Show all runs</a> : <a href="/">Start a test</a>}
        </p>
      )}
      {runs.length > 0 && <Rows runs={runs} selection={selection} onSelect={select} />}
      {list?.next !== undefined && (
        <p class="actions">
          <button type="button" onClick={loadMore} disabled={!isCurrent}>
            More
          </button>
        </p>
      )}
      <CompareBar runs={runs} selection={selection} onSelect={select} />
    </div>
  );
}

function Filters() {
  const { searchParams } = useAddress();
  const fields = useDrafts(searchParams, (query) =>
    navigate(query.size > 0 ? `/history?${query}` : "/history", true),
  );
  const set = (filter: Filter, value: string) => {
    fields.type(filter, value);
    fields.flush();
  };
  const given = (filter: Filter) => searchParams.get(filter) ?? "";
  const text = (filter: Filter, label: string) => (
    <div class="field">
      <label for={filter}>{label}</label>
      <input
        id={filter}
        value={fields.text(filter)}
        autocomplete="off"
        onInput={(event) => fields.type(filter, event.currentTarget.value)}
        onChange={fields.flush}
      />
    </div>
  );
  const day = (filter: Filter, label: string) => (
    <div class="field">
      <label for={filter}>{label}</label>
      <input
        id={filter}
        type="date"
        value={fields.text(filter)}
        onInput={(event) => set(filter, event.currentTarget.value)}
      />
    </div>
  );
  const choice = (filter: Filter, label: string, any: string, options: [string, string][]) => (
    <div class="field">
      <label for={filter}>{label}</label>
      <select
        id={filter}
        value={fields.text(filter)}
        onChange={(event) => set(filter, event.currentTarget.value)}
      >
        <option value="">{any}</option>
        {options.map(([value, label]) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
      </select>
    </div>
  );
  const used = FILTERS.filter((filter) => given(filter)).length;
  // On a phone the runs come first: the summary says how they are filtered.
  const [open, setOpen] = useState(() => used > 0 && innerWidth > 600);
  return (
    <details class="filters" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        Filter{" "}
        {used > 0 && (
          <span class="settings">
            {FILTERS.filter((filter) => given(filter))
              .map((filter) => `${filter} ${words(given(filter))}`)
              .join(" · ")}
          </span>
        )}
      </summary>
      <search class="grid">
        {text("target", "Other host")}
        {text("name", "Name")}
        {choice(
          "verdict",
          "Verdict",
          "any",
          CAUSES.map((cause) => [cause, words(cause)]),
        )}
        {choice("world", "Measured on", "anything", WORLDS)}
        {text("tag", "Tag")}
        {day("since", "Since")}
        {day("until", "Until")}
      </search>
      {used > 0 && (
        <p>
          <a href="/history">Show all runs</a>
        </p>
      )}
    </details>
  );
}

interface RowsProps {
  runs: RunRow[];
  selection: Selection;
  onSelect: (selection: Selection) => void;
}

function Rows({ runs, selection, onSelect }: RowsProps) {
  const groupOf = (id: string) =>
    selection.before.includes(id) ? "before" : selection.after.includes(id) ? "after" : undefined;
  const toggle = (id: string, on: boolean) => {
    const without = remove(selection, id);
    if (!on) return onSelect(without);
    onSelect(
      without.before.length === 0
        ? { ...without, before: [id] }
        : { ...without, after: [...without.after, id] },
    );
  };
  return (
    <div class="wide">
      <table>
        <caption class="unseen">Runs, newest first</caption>
        <thead>
          <tr>
            <th scope="col">
              <span class="unseen">Compare</span>
            </th>
            <th scope="col">time</th>
            <th scope="col">name</th>
            <th scope="col">other host</th>
            <th scope="col" class="number">
              download
            </th>
            <th scope="col" class="number">
              upload
            </th>
            <th scope="col">verdict</th>
          </tr>
        </thead>
        <tbody>
          {runs.map((run) => {
            const group = groupOf(run.id);
            const label = [run.name, run.target, run.started_at && when(run.started_at)]
              .filter(Boolean)
              .join(", ");
            return (
              <tr key={run.id} class={group ? "selected" : ""}>
                <td class="pick">
                  <label class="check">
                    <input
                      type="checkbox"
                      checked={group !== undefined}
                      aria-label={`Compare ${label}`}
                      disabled={run.state === "waiting" || run.state === "running" || run.kind === "plan"}
                      onChange={(event) => toggle(run.id, event.currentTarget.checked)}
                    />
                    {group && <span class={`group ${group}`}>{group}</span>}
                  </label>
                </td>
                <th scope="row" class="time">
                  <a href={runPath(run.id)}>{run.started_at ? when(run.started_at) : run.id}</a>
                </th>
                <td class="name">
                  <span>{run.name ?? ""}</span> <TagList tags={run.tags} />
                </td>
                <td class="target">
                  {run.target ?? NOTHING}
                  {run.kind === "plan" && <span class="badge"> plan</span>}
                  {run.world && run.world !== "hosts" && <span class="badge">{run.world}</span>}
                </td>
                <td class="number down">{rateOf(run, "download")}</td>
                <td class="number up">{rateOf(run, "upload")}</td>
                <td class="verdict-cell">
                  <Verdict run={run} />
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function Verdict({ run }: { run: RunRow }) {
  if (run.state === "running") return <span class="badge now">running</span>;
  if (run.state === "waiting") return <span class="badge">waiting</span>;
  if (run.outcome === "failed") return <span class="bad">failed</span>;
  const causes = [...new Set((run.flows ?? []).flatMap(({ cause }) => (cause ? [words(cause)] : [])))];
  return (
    <>
      {causes.join(", ") || NOTHING}
      {(run.outcome === "interrupted" || run.state === "unfinished") && (
        <span class="warn"> stopped early</span>
      )}
    </>
  );
}

function rateOf(run: RunRow, direction: "download" | "upload"): string {
  const rates = (run.flows ?? []).filter((flow) => flow.direction === direction);
  return rates.length > 0 ? rates.map(flowRate).join(", ") : NOTHING;
}

const remove = (selection: Selection, id: string): Selection => ({
  before: selection.before.filter((one) => one !== id),
  after: selection.after.filter((one) => one !== id),
});

/** What is selected, in two groups, at the foot of the window. */
function CompareBar({ runs, selection, onSelect }: RowsProps) {
  const { before, after } = selection;
  const all = [...before, ...after];
  if (all.length === 0) return null;
  const label = (id: string) => {
    const run = runs.find((run) => run.id === id);
    return run
      ? [run.started_at && when(run.started_at), run.name ?? run.target].filter(Boolean).join(" ")
      : id.slice(0, 8);
  };
  const swap = (id: string) =>
    onSelect(
      before.includes(id)
        ? { before: before.filter((one) => one !== id), after: [...after, id] }
        : { before: [...before, id], after: after.filter((one) => one !== id) },
    );
  const group = (name: "before" | "after", ids: string[]) => (
    <p>
      <span class={`group ${name}`}>{name}</span>{" "}
      {ids.map((id) => (
        <span key={id} class="picked">
          <span class="label">{label(id)}</span>
          {all.length > 1 && (
            <button
              type="button"
              aria-label={`Move ${label(id)} to ${name === "before" ? "after" : "before"}`}
              title={`Move to ${name === "before" ? "after" : "before"}`}
              onClick={() => swap(id)}
            >
              ⇄
            </button>
          )}
          <button
            type="button"
            aria-label={`Do not compare ${label(id)}`}
            title="Do not compare"
            onClick={() => onSelect(remove(selection, id))}
          >
            ✕
          </button>
        </span>
      ))}
      {ids.length === 0 && (
        <span class="faint">select {name === "after" ? "one or more other runs" : "a run"}</span>
      )}
    </p>
  );
  return (
    <section class="compare-bar" aria-label="Runs to compare">
      <div>
        {group("before", before)}
        {group("after", after)}
      </div>
      <button
        type="button"
        class="primary"
        disabled={before.length === 0 || after.length === 0}
        onClick={() => navigate(comparePath(before, after))}
      >
        Compare
      </button>
    </section>
  );
}
