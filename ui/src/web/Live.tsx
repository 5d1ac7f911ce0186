// A run while it is measured: figures, stage, and charts that grow.

import { useEffect, useMemo, useState } from "preact/hooks";
import { Figure } from "../charts/Figure";
import { octets } from "../units";
import { streamsUrl } from "./api";
import {
  chartOf,
  type Frame,
  flowsOf,
  type Live,
  type LiveFlow,
  latest,
  progress,
  sizesChartOf,
  stage,
} from "./live";
import { countsStreams, type Streams, streamsChartOf, withStreams } from "./liveStreams";
import type { Problem } from "./problem";
import { listen } from "./stream";
import { Trouble } from "./Trouble";
import { ARROWS, NOTHING, parts, plural, rate, time } from "./words";

const HEIGHTS: [number, number] = [170, 100];
const NO_CATALOGUE = new Map();

interface LiveRunProps {
  live: Live;
  /** A browser knows neither the latency of the idle path nor retransmissions. */
  fromBrowser?: boolean;
  /** The run, if the server can tell its single streams. */
  id?: string;
}

/** The figures and the charts of a run. Everything has its room from the start. */
export function LiveRun({ live, fromBrowser = false, id }: LiveRunProps) {
  if (live.frame.by_size) return <LiveSizes live={live} />;
  return (
    <>
      <LiveFlows live={live} fromBrowser={fromBrowser} />
      {id !== undefined && countsStreams(live.frame) && <LiveStreams id={id} live={live} />}
    </>
  );
}

/** What each stream moves, fetched only while it is open. */
function LiveStreams({ id, live }: { id: string; live: Live }) {
  const [isOpen, setOpen] = useState(false);
  const [streams, setStreams] = useState<Streams[]>();
  const [problem, setProblem] = useState<Problem>();
  useEffect(() => {
    setProblem(undefined);
    setStreams(undefined);
    if (!isOpen) return;
    const close = listen(
      streamsUrl(id),
      {
        message: (event, data) => {
          setStreams((known) => withStreams(known, event, data));
          if (event === "end") close();
        },
        refused: setProblem,
      },
      true,
    );
    return close;
  }, [isOpen, id]);
  // Frames without news of the streams draw nothing.
  const chart = useMemo(() => streams && streamsChartOf(live, streams), [streams, live.reach]);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Each stream</summary>
      <Trouble problem={problem} />
      {chart ? (
        <figure class="live">
          <figcaption class="unseen">Bit rate of each stream so far</figcaption>
          <Figure chart={chart} catalogue={NO_CATALOGUE} heights={HEIGHTS} />
        </figure>
      ) : (
        !problem && <p class="faint">Nothing is counted yet.</p>
      )}
    </details>
  );
}

/** A series over message sizes: the curves grow from the smallest size on. */
function LiveSizes({ live }: { live: Live }) {
  const chart = useMemo(() => sizesChartOf(live), [live.sizes]);
  const last = live.sizes.at(-1);
  return (
    <>
      <Stage frame={live.frame} />
      <p>
        {last
          ? `${plural(live.sizes.length, "size")} up to ${octets(last.message_bytes)}`
          : "No size is measured yet."}
      </p>
      {chart && (
        <figure class="live">
          <figcaption class="unseen">Rate and time over message size so far</figcaption>
          <Figure chart={chart} catalogue={NO_CATALOGUE} heights={HEIGHTS} />
        </figure>
      )}
    </>
  );
}

function LiveFlows({ live, fromBrowser }: { live: Live; fromBrowser: boolean }) {
  const chart = useMemo(() => chartOf(live), [live]);
  return (
    <>
      <Figures live={live} hasIdle={!fromBrowser} />
      <Stage frame={live.frame} />
      <figure class="live">
        <figcaption class="unseen">Rate and round-trip time so far</figcaption>
        <Figure chart={chart} catalogue={NO_CATALOGUE} heights={HEIGHTS} />
        {!fromBrowser && <p class="faint">{retransmissions(live)}</p>}
      </figure>
    </>
  );
}

function Figures({ live, hasIdle }: { live: Live; hasIdle: boolean }) {
  const { idle_rtt_ns: idle } = live.frame;
  const flows = flowsOf(live.frame);
  const running = flows.filter((flow) => flow.state === "running");
  const srtt = running.map((flow) => latest(live, flow).srtt).find((value) => value !== undefined);
  return (
    <div class="figures">
      {flows.map((flow) => (
        <FlowFigure key={flow.flow} live={live} flow={flow} />
      ))}
      <div class="big latency">
        <h2>Round-trip time</h2>
        {hasIdle && (
          <p>
            <span class="faint what">idle</span> <Value text={time(idle)} />
          </p>
        )}
        <p>
          <span class="faint what">now</span> <Value text={time(srtt)} />
        </p>
      </div>
    </div>
  );
}

function FlowFigure({ live, flow }: { live: Live; flow: LiveFlow }) {
  const now = latest(live, flow);
  const mean = flow.state === "ended" ? flow.mean_bps : undefined;
  const ending = mean === undefined ? "at its end" : "mean";
  const state = flow.state === "running" ? "now" : flow.state === "ended" ? ending : "to come";
  return (
    <div class={`big ${flow.direction} ${flow.state}`}>
      <h2>
        {ARROWS[flow.direction]} {flow.name}
      </h2>
      <p class="huge">
        <Value text={rate(mean ?? now.bitrate)} />
      </p>
      <p class="faint">
        {state}
        {flow.streams !== undefined && flow.streams > 1 ? `, ${plural(flow.streams, "stream")}` : ""}
      </p>
    </div>
  );
}

/** A quantity, its unit smaller than its number. */
export function Value({ text }: { text: string }) {
  const [number, unit] = parts(text);
  return (
    <span class="value">
      <b>{number}</b>
      {unit && <span class="unit"> {unit}</span>}
    </span>
  );
}

/** What the run is doing; only a change of it is read aloud. */
function Stage({ frame }: { frame: Frame }) {
  const left = frame.left_seconds;
  const running = frame.flows.find((flow) => flow.state === "running");
  const known = running?.elapsed_seconds !== undefined && running.of_seconds !== undefined;
  return (
    <div class="stage">
      <p>
        <strong>{stage(frame)}</strong> <span class="number">{frame.by_size ? "" : progress(frame)}</span>{" "}
        <span class="faint number">
          {left !== undefined && left > 0 && frame.state !== "ended"
            ? `${frame.at_most ? "at most" : "about"} ${Math.ceil(left)} s left`
            : ""}
        </span>
      </p>
      <progress
        class={running?.direction ?? ""}
        aria-hidden="true"
        max={known ? running.of_seconds : 1}
        value={known ? Math.min(running.elapsed_seconds ?? 0, running.of_seconds ?? 0) : 0}
      />
    </div>
  );
}

function retransmissions(live: Live): string {
  const counted = live.frame.flows.flatMap((flow) => {
    const count = latest(live, flow).retransmits;
    return count === undefined ? [] : [{ name: flow.name, count }];
  });
  if (counted.length === 0) return `Retransmissions: ${NOTHING}`;
  if (counted.every(({ count }) => count === 0)) return "No segment was retransmitted.";
  const words = counted.map(({ name, count }) => `${name} ${count}`).join(", ");
  return `Retransmitted segments, ticks at the foot of the rate: ${words}`;
}
