// For a screen on the wall, 800 x 480, read from two metres: the running test or the latest result. Nothing to touch.

import { useEffect, useState } from "preact/hooks";
import { bytes, octets } from "../units";
import { type CurrentRuns, getRun, getRuns, liveUrl, type Result, type Run } from "./api";
import { Value } from "./Live";
import { type Live, type LiveFlow, latest, progress, stage } from "./live";
import { type LivePlan, planStage } from "./livePlan";
import { useCurrentRuns, useVisitor } from "./load";
import { newestEnded } from "./runList";
import { ends } from "./source";
import { listen, useLostSince } from "./stream";
import { type Watched, withMessage } from "./watched";
import { ARROWS, clock, NOTHING, plural, rate, time, when } from "./words";

/** The most flows that fit next to each other. */
const MAX_FLOWS = 2;
/** Newest runs of the archive among which one that has ended is looked for: a server that stops cuts off its run. */
const RECENT = "10";
/** Pause before the result is asked for again that could not be had. */
const RETRY_MS = 10_000;

export function Kiosk() {
  const { session } = useVisitor();
  const currentRuns = useCurrentRuns(true);
  const since = useLostSince();
  const [seen, setSeen] = useState<Watched>();
  const [run, setRun] = useState<Run>();
  const archived = useArchived(currentRuns);
  const running = currentRuns?.running;
  const shown = running ?? currentRuns?.latest ?? archived?.run;
  const isEmpty = archived !== undefined && shown === undefined;
  useEffect(() => {
    document.title = "Kiosk · linerate";
    const { classList } = document.documentElement;
    classList.add("kiosk");
    return () => classList.remove("kiosk");
  }, []);
  useEffect(() => {
    if (!running) return;
    setSeen(undefined);
    const close = listen(liveUrl(running), {
      message: (event, data) => {
        setSeen((seen) => withMessage(seen, event, data));
        if (event === "end") close();
      },
    });
    return close;
  }, [running]);
  // The old result stays until there is a new one.
  useEffect(() => {
    if (!shown) return;
    let wanted = true;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const again = () => {
      if (wanted) timer = setTimeout(get, RETRY_MS);
    };
    const get = () =>
      getRun(shown).then((run) => {
        if (!wanted) return;
        setRun(run);
        // The archive may be away for a moment.
        if (!running && isMissing(run)) again();
      }, again);
    void get();
    return () => {
      wanted = false;
      clearTimeout(timer);
    };
  }, [shown, running]);
  // A day is shown as soon as it is another one.
  const [, setMinute] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setMinute((minute) => minute + 1), 60_000);
    return () => clearInterval(timer);
  }, []);
  const now = running ? seen : undefined;
  const ended = running || isEmpty ? undefined : run;
  const result = ended?.result;
  const known = running ? (run?.id === running ? run : undefined) : ended;
  return (
    <main class="kiosk-page">
      <header>
        <h1>{title(session.host, known)}</h1>
        <p class={since ? "bad" : "faint"}>
          {since
            ? `no news since ${when(since.toISOString())}`
            : running
              ? "now"
              : when(result?.run.started_at ?? "")}
        </p>
        <Clock />
      </header>
      {now?.live && <Measuring live={now.live} />}
      {now?.plan && <Plan plan={now.plan} />}
      {result && <Latest result={result} />}
      {ended?.problem && <p class="statement bad">{ended.problem}</p>}
      {ended?.kind === "plan" && !ended.problem && (
        <p class="statement">The plan has ended; its results are in the history.</p>
      )}
      {ended && isMissing(ended) && <p class="statement">Its result cannot be read from the archive.</p>}
      {isEmpty && <p class="statement">Nothing was measured yet.</p>}
    </main>
  );
}

/** Whether a test has ended, and nothing says how: it was not archived, or the archive cannot be read now. */
const isMissing = ({ kind, state, result, problem }: Run): boolean =>
  kind === "test" && state === "ended" && !result && !problem;

/**
 * The newest run of the archive that has ended, for a server that knows of none since its start; undefined before the
 * answer, or if it is not needed.
 */
function useArchived(currentRuns: CurrentRuns | undefined): { run: string | undefined } | undefined {
  const [found, setFound] = useState<{ run: string | undefined }>();
  const isNeeded = currentRuns !== undefined && !currentRuns.running && !currentRuns.latest;
  useEffect(() => {
    if (!isNeeded) return setFound(undefined);
    let wanted = true;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const get = () =>
      getRuns(new URLSearchParams({ limit: RECENT })).then(
        ({ runs }) => wanted && setFound({ run: newestEnded(runs) }),
        () => {
          if (wanted) timer = setTimeout(get, RETRY_MS);
        },
      );
    void get();
    return () => {
      wanted = false;
      clearTimeout(timer);
    };
  }, [currentRuns]);
  return isNeeded ? found : undefined;
}

function title(host: string, run: Run | undefined): string {
  if (!run?.target) return host;
  return run.kind === "plan" ? `Plan ${run.target}` : ends(run, host);
}

/** A plan that runs: what its flows do now. */
function Plan({ plan: { frame } }: { plan: LivePlan }) {
  return (
    <>
      <div class="pairs">
        {frame.flows.slice(0, MAX_FLOWS).map(({ name, bitrate_bps }) => (
          <section key={name} class="pair">
            <h2>{name}</h2>
            <p class="digits">
              <Value text={rate(bitrate_bps)} />
            </p>
          </section>
        ))}
      </div>
      <p class="statement">{[planStage(frame), frame.trial].filter(Boolean).join(": ")}</p>
    </>
  );
}

function Clock() {
  const [now, setNow] = useState(() => new Date());
  useEffect(() => {
    const timer = setInterval(() => setNow(new Date()), 1000);
    return () => clearInterval(timer);
  }, []);
  return <p class="clock">{clock(now)}</p>;
}

function Measuring({ live }: { live: Live }) {
  const { frame } = live;
  return (
    <>
      <div class="pairs">
        {(frame.by_size ? [] : frame.flows.slice(0, MAX_FLOWS)).map((flow) => (
          <LivePair key={flow.flow} live={live} flow={flow} />
        ))}
      </div>
      <p class="statement">
        {stage(frame)} {frame.by_size ? `(${plural(live.sizes.length, "size")} so far)` : progress(frame)}
      </p>
    </>
  );
}

function LivePair({ live, flow }: { live: Live; flow: LiveFlow }) {
  const { bitrate, srtt, retransmits } = latest(live, flow);
  const share =
    flow.of_seconds && flow.elapsed_seconds !== undefined
      ? flow.elapsed_seconds / flow.of_seconds
      : undefined;
  return (
    <section class={`pair ${flow.direction} ${flow.state}`}>
      <h2>
        {ARROWS[flow.direction]} {flow.name}
      </h2>
      <p class="digits">
        <Value text={rate(bitrate)} />
      </p>
      <Bar share={flow.state === "planned" ? 0 : flow.state === "ended" ? 1 : share} quiet />
      <p>
        {retransmits === undefined ? NOTHING : retransmits} retransmitted · {time(srtt)}
      </p>
      <p class="faint">
        {[flow.transport?.toUpperCase(), flow.streams !== undefined && plural(flow.streams, "stream")]
          .filter(Boolean)
          .join(" · ")}
      </p>
    </section>
  );
}

function Latest({ result }: { result: Result }) {
  const verdicts = [...new Set(result.flows.flatMap(({ verdict }) => (verdict ? [verdict.text] : [])))];
  return (
    <>
      <div class="pairs">
        {result.flows.slice(0, MAX_FLOWS).map((flow) => (
          <ResultPair key={flow.name} flow={flow} />
        ))}
      </div>
      <p class="statement">{verdicts[0] ?? result.run.reason ?? "Not judged."}</p>
    </>
  );
}

function ResultPair({ flow }: { flow: Result["flows"][number] }) {
  const impossible = flow.receiver?.impossible;
  const lost = flow.sender?.retransmits;
  const share = flow.ceiling?.share;
  return (
    <section class={`pair ${flow.direction}`}>
      <h2>
        {ARROWS[flow.direction]} {flow.name}
      </h2>
      <p class={impossible ? "digits bad" : "digits"}>
        <Value text={rate(flow.receiver?.bitrate_bps)} />
      </p>
      {flow.ceiling && <Bar share={share ?? undefined} words={`of ${rate(flow.ceiling.bitrate_bps)}`} />}
      <p>
        {impossible && <span class="bad">impossible · </span>}
        {flow.transport === "udp" ? "" : `${lost ?? NOTHING} retransmitted`}
      </p>
      <p class="faint">{settings(flow)}</p>
    </section>
  );
}

/** Window, segment size and streams of a flow. */
function settings({ settings, streams, transport }: Result["flows"][number]): string {
  const window = settings?.window?.asked ?? settings?.window?.granted_snd_bytes;
  const mss = settings?.mss?.effective_bytes;
  const length = settings?.length_bytes;
  const pieces =
    transport === "udp"
      ? ["UDP", length && octets(length)]
      : [window && `window ${bytes(window)}`, mss && `MSS ${octets(mss)}`];
  return [...pieces, plural(streams, "stream")].filter(Boolean).join(" × ");
}

interface BarProps {
  share: number | undefined;
  words?: string;
  /** Time, not rate. */
  quiet?: boolean;
}

/** A share as a bar, and in words next to it. */
function Bar({ share, words, quiet }: BarProps) {
  const width = share === undefined ? 0 : Math.min(1, Math.max(0, share)) * 100;
  return (
    <div class={quiet ? "bar quiet" : "bar"}>
      <div class="track">
        <div class="fill" style={{ width: `${width}%` }} />
      </div>
      {words && (
        <p>
          {share === undefined
            ? NOTHING
            : `${share >= 0.1 ? Math.round(share * 100) : (share * 100).toFixed(1)} %`}{" "}
          {words}
        </p>
      )}
    </div>
  );
}
