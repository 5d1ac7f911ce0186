// A test from this browser to the host of the pages: the dialogue with the measuring port of the host. The host
// counts the bytes and says the figures; the workers of this page only send and receive.

import type { Direction } from "./api";
import type { BrowserSettings } from "./browserForm";
import { type Frame, fromSnapshot, type Live, type LiveFlow, withFrame } from "./live";
import {
  type FromWorker,
  PROTOCOL,
  type Report,
  sharedEmptyShare,
  type ToWorker,
  wallClock,
} from "./measuring";
import { asProblem, parsed } from "./problem";

/** From the host. */
type FromHost =
  | { kind: "busy"; why?: string }
  | { kind: "open"; phase: Direction; streams: number }
  | { kind: "go"; phase: Direction; seconds: number }
  | {
      kind: "progress";
      phase: Direction;
      elapsed_ns: number;
      bytes: number;
      bitrate_bps: number;
      rtt_ns?: number;
    }
  | { kind: "ended"; phase: Direction; bytes: number; elapsed_ns: number; bitrate_bps: number }
  | { kind: "finished"; run?: string }
  | { kind: "failed"; why?: string };

/** To the host, after each phase: how well the browser kept up. */
interface Note {
  kind: "note";
  phase: Direction;
  /** Share of the time in which the send buffers of all connections were empty; only of uploads. */
  starved_share?: number;
  longest_lag_ns: number;
  hidden: boolean;
  clock_resolution_ns?: number;
}

export interface BrowserTest {
  state: "connecting" | "busy" | "measuring" | "finished" | "failed";
  /** Why the host is busy, or why the test failed. */
  why?: string;
  /** After which time a busy host is asked again. */
  retryMs?: number;
  /** The run in the archive. */
  run?: string;
  live: Live;
  /** Since when the host has said nothing, if that is unusually long. */
  silentSince?: Date;
  /** Whether the page was in the background while something was measured. */
  wasHidden: boolean;
}

interface Phase {
  direction: Direction;
  workers: Worker[];
  reports: Report[];
  goAt?: number;
  endedAt?: number;
  hidden: boolean;
  /** Called when every worker has reported. */
  reported?: () => void;
}

export const WORKER_URL = "/assets/worker.js";
export const RETRY_MS = 2000;
/** The host waits 500 ms for the note of a phase. */
export const REPORT_MS = 300;
/** While it measures, the host says something four times a second. */
const SILENT_MS = 3000;
const LOST_MS = 20_000;
const WATCH_MS = 1000;
const TRY_AGAIN_LATER = 1013;
/** Bytes in the send buffers: of one connection, and of all of them. */
const MAX_UNSENT_BYTES = 4 * 2 ** 20;
const MAX_ALL_UNSENT_BYTES = 8 * 2 ** 20;

/** Where the page measures to. Each attempt needs a ticket, which the service of the page gives. */
export interface TestHost {
  name: string;
  port: number;
  /** Whether its connections are encrypted. */
  encrypted: boolean;
  ticket: () => Promise<string>;
}

/** Why there may be no connection to a host, of which browsers say nothing. */
function noConnection({ name, port, encrypted }: TestHost): string {
  const here = `There is no connection to port ${port} of ${name}.`;
  if (!encrypted) return `${here} A firewall or a proxy on the way may not let it through.`;
  // Some browsers trust a certificate that nobody has signed at one port only.
  return `${here} Open https://${name}:${port}/ in another tab: if the browser warns of the certificate, accept it there as you did for this page, and start again. Otherwise a firewall or a proxy on the way may not let it through.`;
}

/** Measures until the returned function is called. `show` gets every new state. */
export function startBrowserTest(
  host: TestHost,
  settings: BrowserSettings,
  show: (test: BrowserTest) => void,
): () => void {
  let path = "";
  const [http, ws] = host.encrypted ? ["https:", "wss:"] : ["http:", "ws:"];
  const query = new URLSearchParams({
    streams: String(settings.connections),
    seconds: String(settings.seconds),
  });
  let test: BrowserTest = { state: "connecting", live: planned(settings), wasHidden: false };
  let socket: WebSocket | undefined;
  let phase: Phase | undefined;
  const workers = new Set<Worker>();
  let over = false;
  let heardAt = new Date();
  let watchdog: ReturnType<typeof setInterval> | undefined;
  let retry: ReturnType<typeof setTimeout> | undefined;

  const set = (change: Partial<BrowserTest>) => {
    test = { ...test, ...change };
    show(test);
  };

  async function connect(): Promise<void> {
    let ticket: string;
    try {
      ticket = await host.ticket();
    } catch (error) {
      if (over) return;
      const problem = asProblem(error);
      if (problem.retryAfter === undefined) return fail(problem.message);
      return busy(problem.message, problem.retryAfter * 1000);
    }
    if (over) return;
    path = `//${host.name}:${host.port}/linerate/browser/${ticket}`;
    const control = `${ws}${path}/control?${query}&directions=${settings.directions.join(",")}`;
    let opened = false;
    const mine = new WebSocket(control, PROTOCOL);
    socket = mine;
    heard();
    watchdog = setInterval(watch, WATCH_MS);
    mine.onopen = () => {
      opened = true;
    };
    mine.onmessage = ({ data }) => {
      if (over || socket !== mine) return;
      heard();
      let message: FromHost;
      try {
        message = parsed(String(data)) as FromHost;
      } catch {
        return fail("The host sent something that this page does not understand.");
      }
      receive(message);
    };
    mine.onclose = ({ code }) => {
      if (over || socket !== mine) return;
      if (code === TRY_AGAIN_LATER) return busy(undefined);
      fail(opened ? "The connection to the host is lost." : noConnection(host));
    };
  }

  function heard(): void {
    heardAt = new Date();
    if (test.silentSince) {
      const { silentSince: _, ...rest } = test;
      test = rest;
    }
  }

  function watch(): void {
    const silence = Date.now() - heardAt.getTime();
    if (silence >= LOST_MS) fail("The connection to the host is lost: it says nothing any more.");
    else if (silence >= SILENT_MS) set({ silentSince: heardAt });
  }

  function receive(message: FromHost): void {
    if (message.kind === "busy") busy(message.why);
    if (message.kind === "open") open(message.phase, message.streams);
    if (message.kind === "go") go(message.phase, message.seconds);
    if (message.kind === "progress") set({ live: progressed(test.live, message) });
    if (message.kind === "ended") ended(message);
    if (message.kind === "finished") finish(message.run);
    if (message.kind === "failed") fail(message.why ?? "The host ended the test.");
  }

  /** The host measures something else, or gives no ticket now: another attempt in a moment. */
  function busy(why: string | undefined, afterMs = RETRY_MS): void {
    clearInterval(watchdog);
    const old = socket;
    socket = undefined;
    old?.close();
    const because = why ?? test.why;
    set({ state: "busy", retryMs: afterMs, ...(because ? { why: because } : {}), live: waiting(test.live) });
    retry = setTimeout(connect, afterMs);
  }

  function open(direction: Direction, streams: number): void {
    const opened: Phase = { direction, workers: [], reports: [], hidden: false };
    phase = opened;
    const { why: _, ...rest } = test;
    test = { ...rest, state: "measuring", live: withState(test.live, "connecting") };
    const limit = Math.min(MAX_UNSENT_BYTES, Math.floor(MAX_ALL_UNSENT_BYTES / streams));
    const url = direction === "download" ? `${http}${path}/down` : `${ws}${path}/up`;
    for (let stream = 0; stream < streams; stream += 1) {
      const worker = new Worker(WORKER_URL);
      workers.add(worker);
      opened.workers.push(worker);
      worker.onmessage = ({ data }: MessageEvent<FromWorker>) => {
        if (over) return;
        if (data.kind === "report") report(opened, data);
        // Afterwards it may only be the end of the phase, or the host says what is wrong.
        else if (opened.goAt === undefined)
          fail(`A connection for the ${direction} could not be opened: ${data.why}.`);
      };
      worker.onerror = () => !over && fail("This browser could not start a worker for the measurement.");
      tell(worker, {
        kind: "open",
        phase: direction,
        url: `${url}?stream=${stream}`,
        limit,
        clock: stream === 0,
      });
    }
    show(test);
  }

  function go(direction: Direction, seconds: number): void {
    if (phase?.direction !== direction) return;
    phase.goAt = wallClock();
    phase.hidden = document.hidden;
    for (const worker of phase.workers) tell(worker, { kind: "go", at: phase.goAt });
    set({
      live: withFlow(test.live, direction, { state: "running", elapsed_seconds: 0, of_seconds: seconds }),
      wasHidden: test.wasHidden || phase.hidden,
    });
  }

  function ended(message: FromHost & { kind: "ended" }): void {
    const concluded = phase;
    phase = undefined;
    if (concluded?.direction === message.phase) conclude(concluded);
    set({
      live: withFlow(test.live, message.phase, {
        state: "ended",
        elapsed_seconds: message.elapsed_ns / 1e9,
        mean_bps: message.bitrate_bps,
      }),
    });
  }

  /** Collects the reports of the workers, and sends the note. */
  function conclude(concluded: Phase): void {
    concluded.endedAt = wallClock();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let noted = false;
    concluded.reported = () => {
      if (noted) return;
      noted = true;
      clearTimeout(timer);
      retire(concluded.workers);
      if (!over && socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(noteOf(concluded)));
    };
    timer = setTimeout(concluded.reported, REPORT_MS);
    for (const worker of concluded.workers) tell(worker, { kind: "stop" });
  }

  function report(of: Phase, data: Report): void {
    of.reports.push(data);
    if (of.reports.length === of.workers.length) of.reported?.();
  }

  function retire(some: Iterable<Worker>): void {
    for (const worker of some) {
      worker.terminate();
      workers.delete(worker);
    }
  }

  const visibility = () => {
    if (!document.hidden || phase?.goAt === undefined) return;
    phase.hidden = true;
    set({ wasHidden: true });
  };

  function finish(run: string | undefined): void {
    stop();
    set({ state: "finished", ...(run ? { run } : {}), live: halted(test.live) });
  }

  function fail(why: string): void {
    stop();
    set({ state: "failed", why, live: halted(test.live) });
  }

  /** Ends everything. Without a word, the host takes a closed connection for the end of the test too. */
  function stop(): void {
    over = true;
    clearInterval(watchdog);
    clearTimeout(retry);
    document.removeEventListener("visibilitychange", visibility);
    retire([...workers]);
    socket?.close();
  }

  document.addEventListener("visibilitychange", visibility);
  show(test);
  connect();
  return () => {
    if (over) return;
    if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ kind: "cancel" }));
    stop();
  };
}

const tell = (worker: Worker, message: ToWorker) => worker.postMessage(message);

function noteOf({ direction, workers, reports, goAt = 0, endedAt = 0, hidden }: Phase): Note {
  const complete = reports.length === workers.length;
  // A worker that has not reported by now is as late as that.
  const lags = [...reports.map(({ longestLagMs }) => longestLagMs), complete ? 0 : wallClock() - endedAt];
  const clock = reports.find(({ clockResolutionMs }) => clockResolutionMs !== undefined)?.clockResolutionMs;
  const empty = reports.map(({ empty }) => empty);
  return {
    kind: "note",
    phase: direction,
    ...(direction === "upload" && complete ? { starved_share: sharedEmptyShare(empty, goAt, endedAt) } : {}),
    longest_lag_ns: nanoseconds(Math.max(...lags)),
    hidden,
    ...(clock === undefined ? {} : { clock_resolution_ns: nanoseconds(clock) }),
  };
}

const nanoseconds = (ms: number) => Math.round(ms * 1e6);

/** The picture before anything is known: every direction has its place. */
function planned({ directions, seconds, connections }: BrowserSettings): Live {
  const flows = directions.map(
    (direction, flow): LiveFlow => ({
      flow,
      name: direction,
      direction,
      streams: connections,
      state: "planned",
      of_seconds: seconds,
    }),
  );
  return fromSnapshot({ frame: timed({ state: "connecting", at_seconds: 0, flows }), series: [] });
}

/** A frame with its times, which follow from those of its flows. */
function timed(frame: Frame): Frame {
  let at = 0;
  let left = 0;
  for (const { state, elapsed_seconds: elapsed = 0, of_seconds: of = 0 } of frame.flows) {
    at += elapsed;
    if (state !== "ended") left += Math.max(0, of - elapsed);
  }
  return { ...frame, at_seconds: at, left_seconds: left };
}

function withState(live: Live, state: Frame["state"]): Live {
  return withFrame(live, timed({ ...live.frame, state }));
}

function waiting(live: Live): Live {
  const { left_seconds: _, ...frame } = live.frame;
  return withFrame(live, { ...frame, state: "queued" });
}

/** Nothing runs any more. */
function halted(live: Live): Live {
  const flows = live.frame.flows.map((flow) =>
    flow.state === "running" ? { ...flow, state: "ended" as const } : flow,
  );
  return withFrame(live, { ...timed({ ...live.frame, flows }), state: "ended", left_seconds: 0 });
}

function withFlow(live: Live, direction: Direction, change: Partial<LiveFlow>): Live {
  const flows = live.frame.flows.map((flow) =>
    flow.direction === direction ? { ...flow, ...change } : flow,
  );
  return withFrame(live, timed({ ...live.frame, state: "measuring", flows }));
}

function progressed(live: Live, message: FromHost & { kind: "progress" }): Live {
  const { phase, elapsed_ns, bitrate_bps, rtt_ns } = message;
  return withFlow(live, phase, {
    elapsed_seconds: elapsed_ns / 1e9,
    bitrate_bps,
    ...(rtt_ns === undefined ? {} : { srtt_ns: rtt_ns }),
  });
}
