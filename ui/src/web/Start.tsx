// The first page: which two ends, and one button.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type CurrentRuns, getHosts, getRuns, type Hosts, type RunRow, startRun } from "./api";
import { BrowserFields } from "./BrowserFields";
import { BrowserRun } from "./BrowserRun";
import { type BrowserSettings, fromBrowserQuery, isFromBrowser, toBrowserQuery } from "./browserForm";
import { Choice, focusField, Labelled } from "./Fields";
import {
  about,
  DIRECTIONS,
  EMPTY,
  type Errors,
  type Field,
  type Form,
  fieldOf,
  fromQuery,
  requestOf,
  summary,
  TRANSPORTS,
  toQuery,
} from "./form";
import { browserPort, useCurrentRuns, useLoad, usePolled, useProblem, useVisitor } from "./load";
import { asProblem } from "./problem";
import { here, navigate, replaceAddress, runPath } from "./router";
import { Trouble } from "./Trouble";
import { ARROWS, flowRate, IMPOSSIBLE, NOTHING, plural, when, words } from "./words";

/** What the server calls itself as the other end. */
const THIS_HOST = "this host";
const RECENT = "5";
/** How often the queue is read. */
const REFRESH_MS = 10_000;

/** Fields that are folded away. */
const FOLDED: Field[] = [
  "time",
  "streams",
  "transport",
  "directions",
  "rate",
  "congestion",
  "window",
  "name",
  "notes",
];

const query = () => here().searchParams;

/** Puts a form into the address of the page. */
function show(query: URLSearchParams): void {
  const text = query.toString();
  replaceAddress(text ? `/?${text}` : "/");
}

export function Start() {
  const at = browserPort(useVisitor().session);
  // The test of this browser that is under way.
  const [test, setTest] = useState<BrowserSettings>();
  if (test && at) return <BrowserRun at={at} settings={test} onLeave={() => setTest(undefined)} />;
  return <Forms onBrowserTest={setTest} />;
}

function Forms({ onBrowserTest }: { onBrowserTest: (settings: BrowserSettings) => void }) {
  const { session, can } = useVisitor();
  const currentRuns = useCurrentRuns();
  const state = JSON.stringify(currentRuns ?? null);
  const recent = useLoad(state, () => getRuns(new URLSearchParams({ limit: RECENT })));
  const [chosen, setChosen] = useState(() => isFromBrowser(query()) || !can("run"));
  // The other form, as it was left.
  const other = useRef(new URLSearchParams());
  const offersBrowser = browserPort(session) !== undefined;
  const fromBrowser = chosen && offersBrowser;
  useEffect(() => {
    document.title = "Start a test · linerate";
  }, []);
  const choose = (fromBrowser: boolean) => {
    const left = query();
    show(fromBrowser ? toBrowserQuery(fromBrowserQuery(other.current)) : other.current);
    other.current = left;
    setChosen(fromBrowser);
  };
  return (
    <>
      <div class="start">
        <h1>
          {fromBrowser
            ? `How fast is the path from this browser to ${session.host}?`
            : `How fast is the path from ${session.host} to …`}
        </h1>
        {offersBrowser && <Ends fromBrowser={fromBrowser} host={session.host} onChange={choose} />}
        {fromBrowser ? (
          <BrowserFields currentRuns={currentRuns} onChange={show} onStart={onBrowserTest} />
        ) : can("run") ? (
          <HostFields currentRuns={currentRuns} />
        ) : (
          <NotAllowed />
        )}
        {!offersBrowser && <NoBrowserTest />}
      </div>
      <Trouble problem={recent.problem} shown={recent.at} />
      <Recent runs={recent.value?.runs} />
    </>
  );
}

/** Why this browser cannot measure to the host. */
function NoBrowserTest() {
  const { session } = useVisitor();
  if (location.protocol === "http:") return <p class="faint">{session.host} takes no tests from browsers.</p>;
  return (
    <p class="faint">
      Tests from this browser need the plain-http address of {session.host}: its port for measurements has no
      TLS (linerate serve --tls), and browsers let no page over HTTPS connect to it.
    </p>
  );
}

/** For visitors who may see results only. */
function NotAllowed() {
  const { session, askForToken } = useVisitor();
  if (session.signed_in)
    return (
      <p>Your token shows results. To start tests from {session.host}, sign in with one that may do so.</p>
    );
  return (
    <>
      <p>To start tests from {session.host}, you need a token.</p>
      <button type="button" class="primary" onClick={askForToken}>
        Sign in
      </button>
    </>
  );
}

interface EndsProps {
  fromBrowser: boolean;
  host: string;
  onChange: (fromBrowser: boolean) => void;
}

/** Between which two ends to measure. */
function Ends({ fromBrowser, host, onChange }: EndsProps) {
  const ends = [
    { label: "host to host", checked: !fromBrowser, browser: false },
    { label: `this browser to ${host}`, checked: fromBrowser, browser: true },
  ];
  return (
    <fieldset class="ends">
      <legend class="unseen">What to measure</legend>
      {ends.map(({ label, checked, browser }) => (
        <label key={label}>
          <input type="radio" name="ends" checked={checked} onChange={() => onChange(browser)} />
          <span>{label}</span>
        </label>
      ))}
    </fieldset>
  );
}

function HostFields({ currentRuns }: { currentRuns: CurrentRuns | undefined }) {
  const { session } = useVisitor();
  // Clients of the server come and go without a change of the runs of pages.
  const hosts = usePolled(JSON.stringify(currentRuns ?? null), getHosts, REFRESH_MS);
  const [form, setForm] = useState<Form>(() => fromQuery(query()));
  const [errors, setErrors] = useState<Errors>({});
  const [problem, setProblem] = useProblem();
  const [busy, setBusy] = useState(false);
  const [open, setOpen] = useState(() => FOLDED.some((field) => form[field] !== EMPTY[field]));
  const element = useRef<HTMLFormElement>(null);
  const edit = (change: Partial<Form>) => {
    const next = { ...form, ...change };
    setForm(next);
    setErrors((errors) => {
      const left = { ...errors };
      for (const field of Object.keys(change)) delete left[field as Field];
      return left;
    });
    show(toQuery(next));
  };
  /** Shows what is wrong next to its field, and goes there. */
  const blame = (errors: Errors) => {
    setErrors(errors);
    const first = (Object.keys(EMPTY) as Field[]).find((field) => errors[field]);
    if (!first) return;
    if (FOLDED.includes(first)) setOpen(true);
    focusField(element.current, first);
  };
  const submit = async (event: Event) => {
    event.preventDefault();
    setProblem(undefined);
    const made = requestOf(form);
    if ("errors" in made) return blame(made.errors);
    setErrors({});
    setBusy(true);
    try {
      const { id } = await startRun(made.request);
      navigate(runPath(id));
    } catch (error) {
      const problem = asProblem(error);
      const field = fieldOf(problem.field);
      if (field) blame({ [field]: problem.text });
      else setProblem(problem);
    } finally {
      setBusy(false);
    }
  };
  const seconds = about(form);
  const text = (field: Exclude<Field, "transport" | "directions">) => ({
    name: field,
    value: form[field],
    onInput: (event: { currentTarget: HTMLInputElement | HTMLTextAreaElement }) =>
      edit({ [field]: event.currentTarget.value }),
  });
  return (
    <form ref={element} onSubmit={submit} noValidate>
      <div class="ask">
        <Labelled field="to" label="Other host" errors={errors}>
          {(props) => (
            <input
              {...props}
              {...text("to")}
              list="hosts"
              autocomplete="off"
              autocapitalize="none"
              spellcheck={false}
              placeholder="a name, an address, or this host"
            />
          )}
        </Labelled>
        <datalist id="hosts">
          {hosts.value?.known.map(({ target, last_at }) => (
            <option key={target} value={target}>
              {last_at ? `last measured ${when(last_at)}` : ""}
            </option>
          ))}
          <option value={THIS_HOST}>loopback on {session.host}</option>
        </datalist>
        <button type="submit" class="primary" disabled={busy}>
          {busy ? "Starting…" : "Start test"}
        </button>
      </div>
      {hosts.value && (
        <p class="chips">
          <span class="faint">Or pick: </span>
          {[...hosts.value.known.map(({ target }) => target).slice(0, 4), THIS_HOST].map((target) => (
            <button
              key={target}
              type="button"
              class="chip"
              aria-pressed={form.to === target}
              onClick={() => edit({ to: target })}
            >
              {target}
            </button>
          ))}
        </p>
      )}
      <Trouble problem={problem} />
      <p class="faint">
        {seconds !== undefined && `About ${plural(seconds, "second")}. `}
        {hosts.value && !hosts.problem && queue(hosts.value.queue)}
      </p>
      <details open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          More <span class="settings">{summary(form)}</span>
        </summary>
        <div class="grid">
          <Labelled field="time" label="Time per direction" hint="seconds, or 500 ms, 2 min" errors={errors}>
            {(props) => <input {...props} {...text("time")} inputMode="decimal" />}
          </Labelled>
          <Labelled field="streams" label="Parallel streams" errors={errors}>
            {(props) => <input {...props} {...text("streams")} inputMode="numeric" />}
          </Labelled>
          <Labelled field="transport" label="Transport" errors={errors}>
            {(props) => (
              <Choice
                {...props}
                name="transport"
                value={form.transport}
                options={TRANSPORTS}
                onChange={(transport) => edit({ transport })}
              />
            )}
          </Labelled>
          <Labelled field="directions" label="Directions" errors={errors}>
            {(props) => (
              <Choice
                {...props}
                name="directions"
                value={form.directions}
                options={DIRECTIONS}
                onChange={(directions) => edit({ directions })}
              />
            )}
          </Labelled>
          <Labelled
            field="rate"
            label="Rate of each stream"
            hint="bit/s, for example 100M; empty for as fast as possible, for UDP 1M"
            errors={errors}
          >
            {(props) => <input {...props} {...text("rate")} autocomplete="off" />}
          </Labelled>
          <Labelled
            field="congestion"
            label="Congestion control"
            hint="empty for the system's"
            errors={errors}
          >
            {(props) => (
              <input {...props} {...text("congestion")} list="congestion-names" autocomplete="off" />
            )}
          </Labelled>
          <datalist id="congestion-names">
            {["cubic", "bbr", "reno", "dctcp"].map((name) => (
              <option key={name} value={name} />
            ))}
          </datalist>
          <Labelled
            field="window"
            label="Window"
            hint="bytes, for example 4M; empty for the kernel's own tuning"
            errors={errors}
          >
            {(props) => <input {...props} {...text("window")} autocomplete="off" />}
          </Labelled>
          <Labelled
            field="name"
            label="Name of the run"
            hint="runs with one name are repeats"
            errors={errors}
          >
            {(props) => <input {...props} {...text("name")} autocomplete="off" />}
          </Labelled>
          <Labelled field="notes" label="Notes" hint="one a line, for example cable: blue" errors={errors}>
            {(props) => <textarea {...props} {...text("notes")} rows={2} />}
          </Labelled>
        </div>
        {Object.keys(form.others).length > 0 && (
          <p>
            Also set:{" "}
            {Object.entries(form.others)
              .map(([path, value]) => `${words(path.split(".")[1] ?? path)} ${value}`)
              .join(", ")}{" "}
            <button type="button" onClick={() => edit({ others: {} })}>
              Remove these
            </button>
          </p>
        )}
      </details>
    </form>
  );
}

/** When a test would start. One of a page that is being set up is not measured yet. */
export function queue({ waiting, measured, running }: Hosts["queue"]): string {
  const current = Math.max(measured, running ? 1 : 0);
  if (waiting + current === 0) return "It starts at once.";
  // A server with --policy shared measures its clients at the same time, so they need not be before anybody.
  if (waiting === 0 && !running) return `This host measures ${plural(current, "client")} now.`;
  return `${plural(waiting + current, "test")} before you.`;
}

/** The last runs, a line each. */
function Recent({ runs }: { runs: RunRow[] | undefined }) {
  const lines = useMemo(() => runs ?? [], [runs]);
  if (!runs) return null;
  return (
    <section class="recent" aria-labelledby="recent">
      <h2 id="recent">Lately</h2>
      {lines.length === 0 && <p>Nothing was measured yet.</p>}
      <ul>
        {lines.map((run) => (
          <li key={run.id}>
            <a href={runPath(run.id)}>
              <span class="rates">{rates(run)}</span>
              <span class="to">
                {run.name && <strong>{run.name} </strong>}
                {run.target ?? NOTHING}
              </span>
              <span class="faint when">{run.started_at ? when(run.started_at) : ""}</span>
              <span class="faint ending">{ending(run)}</span>
            </a>
          </li>
        ))}
      </ul>
      {lines.length > 0 && (
        <p>
          <a href="/history">All runs</a>
        </p>
      )}
    </section>
  );
}

function rates(run: RunRow): string {
  if (run.state === "waiting" || run.state === "running") return run.state;
  const known = (run.flows ?? []).filter(
    (flow) => (flow.bitrate_bps !== undefined && flow.bitrate_bps !== null) || flow.cause === IMPOSSIBLE,
  );
  if (known.length === 0) return NOTHING;
  return known
    .slice(0, 2)
    .map((flow) => `${ARROWS[flow.direction]} ${flowRate(flow)}`)
    .join("  ");
}

function ending(run: RunRow): string {
  if (run.outcome === "failed") return "failed";
  if (run.outcome === "interrupted") return "stopped early";
  const causes = (run.flows ?? []).flatMap(({ cause }) => (cause ? [words(cause)] : []));
  return [...new Set(causes)].join(", ");
}
