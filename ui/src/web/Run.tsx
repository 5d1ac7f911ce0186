// One run, from its place in the queue to its result: all on one page with one address.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import {
  cancelRun,
  deleteRun,
  exportUrl,
  formatsOf,
  getRun,
  getView,
  liveUrl,
  type Result,
  type Run,
  type View,
} from "./api";
import { copyText } from "./clipboard";
import { fromResult, toQuery } from "./form";
import { LiveRun } from "./Live";
import { LivePlanView } from "./LivePlan";
import { stage } from "./live";
import { planStage } from "./livePlan";
import { useProblem, useVisitor } from "./load";
import { asProblem } from "./problem";
import { navigate, runPath } from "./router";
import { ShareDialog } from "./Share";
import { FIELDS, fromResult as sizesOf } from "./sizes";
import { ends, isFromHere, isOfHere } from "./source";
import { listen } from "./stream";
import { Tags } from "./Tags";
import { Trouble } from "./Trouble";
import { addressOf } from "./typed";
import { Document, hasHeading } from "./View";
import { type Watched, withMessage } from "./watched";
import { plural } from "./words";

/** How often a waiting run asks for its place. */
const PLACE_MS = 2000;
/** The result of a run is archived a moment after its end: how often, and after which pause, it is asked for. */
const ATTEMPTS = 6;
const PAUSE_MS = 300;
/** Pause before a run is asked for again that could not be had, seconds, if the server names none. */
const RETRY_S = 3;

export function RunPage({ id }: { id: string }) {
  const { can, session } = useVisitor();
  const [run, setRun] = useState<Run>();
  const [seen, setSeen] = useState<Watched>();
  const [view, setView] = useState<View>();
  const [problem, setProblem] = useProblem();
  const [cancelling, setCancelling] = useState(false);
  const [finished, setFinished] = useState(false);
  const [said, setSaid] = useState("");
  const mounted = useRef(true);
  // Whether the run was seen before its end.
  const watched = useRef(false);
  useEffect(
    () => () => {
      mounted.current = false;
    },
    [],
  );

  const finish = async () => {
    for (let attempt = 1; mounted.current; attempt += 1) {
      try {
        const run = await getRun(id);
        // A run that failed before it had measured anything may have no result to show.
        const view = await getView(id).catch((error) => {
          const problem = asProblem(error);
          const none = run.problem ? problem.status !== 0 : problem.status === 404 && attempt >= ATTEMPTS;
          if (none && run.state !== "running") return undefined;
          throw problem;
        });
        if (!mounted.current) return;
        setRun(run);
        setView(view);
        setFinished(true);
        setProblem(undefined);
        if (watched.current) setSaid(`The ${run.kind} ${endingOf(run)}.`);
        return;
      } catch (error) {
        const { status } = asProblem(error);
        if (attempt >= ATTEMPTS || (status !== 0 && status !== 404 && status !== 409 && status !== 503)) {
          if (mounted.current) setProblem(error);
          return;
        }
        await new Promise((done) => setTimeout(done, PAUSE_MS * attempt));
      }
    }
  };

  useEffect(() => {
    let close = () => {};
    let left = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const begin = () => getRun(id).then(began, failed);
    function began(first: Run) {
      if (left) return;
      setProblem(undefined);
      // "latest" and the beginning of an id are no lasting addresses.
      if (first.id !== id) return navigate(runPath(first.id) + location.hash, true);
      setRun(first);
      if (first.state === "ended" || first.state === "unfinished") return void finish();
      watched.current = true;
      close = listen(liveUrl(id), {
        message: (event, data) => {
          setSeen((seen) => withMessage(seen, event, data));
          if (event === "end") {
            close();
            void finish();
          }
        },
        refused: setProblem,
      });
    }
    function failed(error: unknown) {
      if (left) return;
      setProblem(error);
      const { status, retryAfter } = asProblem(error);
      // A server that is restarted, or whose archive is away for a moment.
      if (status === 0 || status === 503) timer = setTimeout(begin, 1000 * (retryAfter ?? RETRY_S));
    }
    void begin();
    return () => {
      left = true;
      clearTimeout(timer);
      close();
    };
  }, [id]);

  const { live, plan } = seen ?? {};
  const begun = live && live.frame.state !== "queued" && live.frame.at_seconds > 0;
  const waiting = run?.state === "waiting" && !begun && plan?.frame.trial === undefined;
  useEffect(() => {
    if (!waiting) return;
    // An answer that comes late may be older than the run's end.
    let wanted = true;
    const timer = setInterval(
      () =>
        getRun(id).then(
          (run) => wanted && setRun(run),
          () => undefined,
        ),
      PLACE_MS,
    );
    return () => {
      wanted = false;
      clearInterval(timer);
    };
  }, [waiting, id]);

  const stageNow = live ? stage(live.frame) : plan ? planStage(plan.frame) : "";
  const now = view || finished ? "" : waiting ? "Waiting" : stageNow;
  // The trials of a plan follow each other too fast to be read aloud.
  const spoken = plan && !waiting && !view && plan.frame.trial !== undefined ? "Measuring" : now;
  useEffect(() => {
    if (spoken) setSaid(spoken);
  }, [spoken]);
  const title = view?.title ?? heading(run, id, session.host);
  useEffect(() => {
    document.title = `${now ? `${now}: ` : ""}${title} · linerate`;
  }, [now, title]);

  const cancel = async () => {
    setCancelling(true);
    try {
      await cancelRun(id);
    } catch (error) {
      setCancelling(false);
      setProblem(error);
    }
  };
  const notes = Object.entries(run?.result?.run.notes ?? {}).map(([key, value]) => `${key}: ${value}`);
  const labels = [run?.name, ...notes].filter(Boolean).join(" · ");
  const ended = run?.state === "ended" || run?.state === "unfinished";
  const hasTest = live !== undefined && live.series.length + live.sizes.length > 0;
  const hasPlan = plan !== undefined && plan.trials.length > 0;
  return (
    <div class="run-page">
      <p class="unseen" role="status" aria-live="polite">
        {said}
      </p>
      {ended && run && (view || !finished) && <Actions run={run} onProblem={setProblem} />}
      {!(view && hasHeading(view)) && (
        <div class="headline">
          <h1>{title}</h1>
          {!view && run && !ended && can("run") && (
            <button type="button" onClick={cancel} disabled={cancelling}>
              {cancelling ? "Cancelling…" : "Cancel"}
            </button>
          )}
        </div>
      )}
      <Trouble problem={problem} />
      {run?.problem && (
        <div class="verdict bad">
          <h2>
            The {run.kind} {wasCancelled(run.problem) ? "was cancelled" : "failed"}
          </h2>
          <p class="statement">{run.problem}</p>
        </div>
      )}
      {view && labels && <p class="faint labels">{labels}</p>}
      {finished && view && run && (
        <Tags
          run={run.id}
          tags={run.tags ?? []}
          onChange={(change) => setRun((run) => run && { ...run, tags: change(run.tags ?? []) })}
        />
      )}
      {view && <Document view={view} />}
      {finished && !view && !run?.problem && (
        <p>
          {hasTest || hasPlan
            ? "Its result was not archived: the figures are only on this page."
            : "It ended before anything was measured."}
        </p>
      )}
      {!view && !ended && waiting && run && <Waiting run={run} />}
      {!view && live && !waiting && (!finished || hasTest) && <LiveRun live={live} id={id} />}
      {!view && plan && !waiting && (!finished || hasPlan) && <LivePlanView plan={plan} />}
      {!view && !live && !plan && !waiting && !problem && !ended && <p>Loading…</p>}
    </div>
  );
}

/** Whether somebody has ended it early, which is no failure. */
const wasCancelled = (problem: string): boolean => /^cancelled\b/.test(problem);

const endingOf = ({ problem }: Run): string =>
  problem === undefined ? "has ended" : wasCancelled(problem) ? "was cancelled" : "failed";

function heading(run: Run | undefined, id: string, host: string): string {
  if (!run) return `Run ${id}`;
  if (run.kind === "plan") return `Plan ${run.target ?? id}`;
  const path = ends(run, host);
  return run.name ? `${run.name}: ${path}` : path;
}

function Waiting({ run }: { run: Run }) {
  return (
    <div class="verdict">
      <p class="statement">
        {run.place ? `${plural(run.place, "test")} before this one.` : "It starts in a moment."}
      </p>
      {run.wait_seconds !== undefined && run.wait_seconds > 0 && (
        <p>About {plural(Math.ceil(run.wait_seconds), "second")} to wait. This page follows by itself.</p>
      )}
    </div>
  );
}

/** The form that starts the same run again from this host; undefined if this host cannot. */
function addressOfRepeat(result: Result, here: string): string | undefined {
  if (result.run.target?.endsWith(" (browser)")) return isOfHere(result, here) ? "/?from=browser" : undefined;
  // Nothing leads from this host into a network that it has emulated.
  if (!isFromHere(result, here) || (result.run.world ?? "hosts") !== "hosts") return undefined;
  const sizes = sizesOf(result);
  if (sizes) return addressOf("/sizes", sizes, FIELDS);
  const form = fromResult(result);
  return form && `/?${toQuery(form)}`;
}

/** What can be done with a finished run. */
function Actions({ run, onProblem }: { run: Run; onProblem: (error: unknown) => void }) {
  const { can, session } = useVisitor();
  const again = run.result && addressOfRepeat(run.result, session.host);
  const dialog = useRef<HTMLDialogElement>(null);
  const [copied, setCopied] = useState("");
  const say = (text: string) => {
    setCopied(text);
    setTimeout(() => setCopied(""), 3000);
  };
  const copy = async () => {
    const done = await copyText(`${location.origin}${location.pathname}`);
    say(done ? "Link copied" : "Copy the address of this page");
  };
  const [sharing, setSharing] = useState(false);
  const remove = async () => {
    dialog.current?.close();
    try {
      await deleteRun(run.id);
      navigate("/history");
    } catch (error) {
      onProblem(error);
    }
  };
  return (
    <section class="actions" aria-label="What to do with this run">
      {again !== undefined && can("run") && (
        <a class="button" href={again}>
          Run again
        </a>
      )}
      <a class="button" href={`/history?select=${encodeURIComponent(run.id)}`}>
        Compare with…
      </a>
      <Menu label="Export">
        {formatsOf(run.kind).map(([format, label]) => (
          <li key={format}>
            <a href={exportUrl(run.id, format)} download>
              {label}
            </a>
          </li>
        ))}
      </Menu>
      <Menu label="⋯" about="More actions">
        <li>
          <button type="button" onClick={copy}>
            Copy link
          </button>
        </li>
        {can("run") && (
          <li>
            <button type="button" onClick={() => setSharing(true)}>
              Share…
            </button>
          </li>
        )}
        {can("admin") && (
          <li>
            <button type="button" class="danger" onClick={() => dialog.current?.showModal()}>
              Delete…
            </button>
          </li>
        )}
      </Menu>
      <span role="status" class="faint">
        {copied}
      </span>
      {sharing && (
        <ShareDialog run={run.id} onClose={() => setSharing(false)} onCopied={say} onProblem={onProblem} />
      )}
      <dialog ref={dialog} aria-labelledby="delete">
        <h2 id="delete">Delete this run?</h2>
        <p>Its result and its event log are removed from the archive of this host. This cannot be undone.</p>
        <p class="actions">
          <button type="button" onClick={() => dialog.current?.close()}>
            Keep it
          </button>
          <button type="button" class="danger" onClick={remove}>
            Delete
          </button>
        </p>
      </dialog>
    </section>
  );
}

/** Actions behind a button; it closes after one of them, after a click elsewhere, and with Escape. */
export function Menu({
  label,
  about,
  children,
}: {
  label: string;
  about?: string;
  children: ComponentChildren;
}) {
  const menu = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    const close = (event: Event) => {
      const summary = menu.current?.querySelector("summary");
      if (!menu.current?.open || (event.target instanceof Node && summary?.contains(event.target))) return;
      menu.current.open = false;
      if (event.type === "keydown") summary?.focus();
    };
    const onKey = (event: KeyboardEvent) => event.key === "Escape" && close(event);
    addEventListener("click", close);
    addEventListener("keydown", onKey);
    return () => {
      removeEventListener("click", close);
      removeEventListener("keydown", onKey);
    };
  }, []);
  return (
    <details class="menu" ref={menu}>
      <summary class={about ? "button" : "button fold"} aria-label={about} title={about}>
        {label}
      </summary>
      <ul>{children}</ul>
    </details>
  );
}
