// An emulated network while it is up: its parts as a drawing, and what its ports do now.

import { useEffect, useMemo, useState } from "preact/hooks";
import { Figure, useMedia } from "../charts/Figure";
import { bytes } from "../units";
import { labLiveUrl } from "./api";
import {
  drawingOf,
  fullestQueue,
  type Lab,
  type LabDirection,
  type Port,
  portsOf,
  type Queue,
  queueChartOf,
  queueOf,
  withLabMessage,
} from "./labs";
import { useProblem } from "./load";
import { listen } from "./stream";
import { Trouble } from "./Trouble";
import { NOTHING, plural, rate, time } from "./words";

const HEIGHTS: [number, number] = [180, 100];
const NO_CATALOGUE = new Map();
/** Below this share of its buffer, the time that a queue takes is not written into the drawing. */
const WRITTEN_FILL = 0.01;

/** Pause before a network that is down is looked for again: a plan starts its network anew under the same name. */
const RETRY_MS = 3000;

/** A network by its name, whenever it is up. */
export function LiveLab({ name }: { name: string }) {
  const [lab, setLab] = useState<Lab>();
  const [ended, setEnded] = useState<string>();
  const [problem, setProblem] = useProblem();
  useEffect(() => {
    let close = () => {};
    let timer: ReturnType<typeof setTimeout>;
    const again = (why: string) => {
      close();
      setEnded(why);
      timer = setTimeout(open, RETRY_MS);
    };
    const open = () => {
      close = listen(
        labLiveUrl(name),
        {
          message: (event, data) => {
            if (event === "end") return again((data as { reason: string }).reason);
            setLab((lab) => withLabMessage(lab, event, data));
            setEnded(undefined);
            setProblem(undefined);
          },
          refused: (problem) => {
            if (problem.status === 404) again(problem.text);
            else setProblem(problem);
          },
        },
        true,
      );
    };
    open();
    return () => {
      clearTimeout(timer);
      close();
    };
  }, [name]);
  return (
    <>
      <Trouble problem={problem} />
      {ended && !lab && (
        <p class="trouble" role="alert">
          {ended}
        </p>
      )}
      {ended && lab && (
        <p class="remark" role="status">
          <strong>Over:</strong> {ended}. You see its last state.
        </p>
      )}
      {lab && <LabView lab={lab} />}
      {!lab && !problem && !ended && <p>Loading…</p>}
    </>
  );
}

export function LabView({ lab }: { lab: Lab }) {
  const ports = portsOf(lab);
  const chart = useMemo(() => queueChartOf(lab), [lab.history]);
  const { switch: state } = lab.frame;
  return (
    <>
      <LabDrawing lab={lab} ports={ports} />
      {lab.backend === "kernel" ? (
        <p>The kernel carries this network. Its counters are not read, so there are no queues here.</p>
      ) : (
        <>
          <Ports ports={ports} />
          <h2>Queues of the last minute</h2>
          {chart ? (
            <figure class="live">
              <figcaption class="unseen">Bytes that waited at ports in the last minute</figcaption>
              <Figure chart={chart} catalogue={NO_CATALOGUE} heights={HEIGHTS} />
            </figure>
          ) : (
            <p class="faint">Nothing has waited at any port.</p>
          )}
        </>
      )}
      {state && (
        <p class={isLate(state) ? "remark" : "faint"}>
          The switch uses {Math.round(100 * state.cpu)} % of a core. Of {plural(state.frames, "frame")},{" "}
          {state.late} {state.late === 1 ? "was" : "were"} more than {time(state.late_bound_ns)} late
          {state.overrun > 0 && `, and ${plural(state.overrun, "packet")} came faster than it could read`}.
          {isLate(state) && " Figures from this network are doubtful."}
        </p>
      )}
      <Hosts hosts={lab.hosts} />
      {lab.notes.map((note) => (
        <p key={note} class="remark">
          {note}
        </p>
      ))}
    </>
  );
}

/** Whether the switch does not keep up, by the rule of `linerate lab status`. */
const isLate = ({ frames, late, overrun }: NonNullable<Lab["frame"]["switch"]>): boolean =>
  late * 1000 > frames || overrun > 0;

function Hosts({ hosts }: { hosts: Lab["hosts"] }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by keyboard
    <div class="scroll" tabIndex={0}>
      <table class="addresses">
        <caption class="unseen">The hosts and their addresses</caption>
        <thead>
          <tr>
            <th>Host</th>
            <th>IPv4</th>
            <th>IPv6</th>
          </tr>
        </thead>
        <tbody>
          {hosts.map(({ name, address, address6 }) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td>{address}</td>
              <td>{address6}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Sizes of a drawing, in CSS pixels: of a box, of a gauge, and between the middles of two boxes. */
const BOX = { width: 84, height: 40 };
const GAUGE = { width: 9, height: 26 };
/** From left to right, columns share the width of the page up to this. */
const WIDE = { page: 1000, column: 260, least: 210, row: 110 };
/** From top to bottom, for pages that are too narrow for a drawing from left to right. */
const NARROW_PAGE = "(max-width: 700px)";
const NARROW = { column: 156, row: 130 };
/** Room at the sides for what is written there. */
const ASIDE = 56;

function LabDrawing({ lab, ports }: { lab: Lab; ports: Port[] }) {
  const drawing = useMemo(() => drawingOf(lab), [lab.hosts, lab.switches, lab.links]);
  const narrow = useMedia(NARROW_PAGE);
  const size = narrow
    ? NARROW
    : {
        column: Math.max(WIDE.least, Math.min(WIDE.column, WIDE.page / Math.max(1, drawing.columns))),
        row: WIDE.row,
      };
  const along = (column: number) => size.column * (column + 0.5);
  const across = (row: number) => size.row * (row + 0.5);
  const places = new Map(
    drawing.places.map((place) => {
      const at = narrow
        ? { x: across(place.row), y: along(place.column) }
        : { x: along(place.column), y: across(place.row) };
      return [place.name, { ...place, ...at }];
    }),
  );
  const long = drawing.columns * size.column;
  const broad = drawing.rows * size.row;
  const [width, height] = narrow ? [broad, long] : [long, broad];
  const aside = narrow ? ASIDE : 0;
  const around = ports.map(({ link }) => link.ends.join(" to ")).filter((_, at) => at % 2 === 0);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by keyboard
    <div class="scroll" tabIndex={0}>
      <svg
        class="lab"
        role="img"
        aria-label={`The links: ${around.join(", ")}.`}
        viewBox={`${-aside} 0 ${width + 2 * aside} ${height}`}
        style={{ width: `${width + 2 * aside}px` }}
      >
        {lab.links.map((link, number) => {
          const [a, b] = [places.get(link.ends[0]), places.get(link.ends[1])];
          const [forth, back] = [ports[2 * number], ports[2 * number + 1]];
          if (!a || !b || !forth || !back) return null;
          const ends = { a, b, forth, back };
          const isTurned = a.x > b.x || (a.x === b.x && a.y > b.y);
          const drawn = isTurned ? { a: b, b: a, forth: back, back: forth } : ends;
          return <DrawnLink key={link.name} {...drawn} narrow={narrow} center={width / 2} />;
        })}
        {[...places.values()].map(({ name, isHost, x, y }) => (
          <g key={name} class={isHost ? "host" : "switch"}>
            <rect
              x={x - BOX.width / 2}
              y={y - BOX.height / 2}
              width={BOX.width}
              height={BOX.height}
              rx={isHost ? 6 : BOX.height / 2}
            />
            <text x={x} y={y + 5}>
              {short(name)}
            </text>
            <title>{addressOf(lab, name)}</title>
          </g>
        ))}
      </svg>
    </div>
  );
}

/** Names have up to 15 letters; what does not fit is in the tooltip and in the table. */
const short = (name: string) => (name.length > 10 ? `${name.slice(0, 9)}…` : name);

function addressOf(lab: Lab, name: string): string {
  const host = lab.hosts.find((host) => host.name === name);
  return host ? `${name}: ${host.address} ${host.address6}` : `${name}: a switch`;
}

interface Point {
  x: number;
  y: number;
}

interface DrawnLinkProps {
  /** The left end, or the upper one. */
  a: Point;
  b: Point;
  forth: Port;
  back: Port;
  narrow: boolean;
  /** The middle of the drawing. */
  center: number;
}

/** A link: a line for each direction, as thick as it is busy, the queues at both ends, and what it is. */
function DrawnLink({ a, b, forth, back, narrow, center }: DrawnLinkProps) {
  const length = Math.hypot(b.x - a.x, b.y - a.y) || 1;
  const unit = { x: (b.x - a.x) / length, y: (b.y - a.y) / length };
  const shifted = ({ x, y }: Point, by: number) => ({ x: x - unit.y * by, y: y + unit.x * by });
  const middle = { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
  const line = ({ now }: Port, by: number) => {
    const [from, to] = [shifted(a, by), shifted(b, by)];
    const busy = now?.busy ?? 0;
    return (
      <line
        x1={from.x}
        y1={from.y}
        x2={to.x}
        y2={to.y}
        class={now && now.wire_bps > 0 ? "busy" : "idle"}
        style={{ strokeWidth: 1.5 + 3 * busy }}
      />
    );
  };
  // Far enough from the box, in the direction of the link.
  const away = narrow ? BOX.height / 2 + GAUGE.height / 2 + 8 : BOX.width / 2 + 24;
  const near = Math.min(0.4, away / length);
  const between = (share: number) => ({ x: a.x + (b.x - a.x) * share, y: a.y + (b.y - a.y) * share });
  const arrows: Arrows =
    Math.abs(b.x - a.x) >= Math.abs(b.y - a.y) ? ["→", "←"] : b.y > a.y ? ["↓", "↑"] : ["↑", "↓"];
  const rates = inBoth(forth, back, arrows, ({ rate_bps }) =>
    rate_bps === undefined ? "endless" : rate(rate_bps),
  );
  const delays = inBoth(forth, back, arrows, ({ delay_ns }) => (delay_ns > 0 ? time(delay_ns) : ""));
  const members = forth.link.members > 1 ? `${forth.link.members} members` : "";
  const below = [members, ...delays].filter(Boolean);
  return (
    <g>
      {line(forth, -2.5)}
      {line(back, 2.5)}
      {narrow ? (
        <Lines
          x={middle.x + (middle.x < center - 1 ? -10 : 10)}
          y={middle.y + 4 - 7 * rates.length}
          side={middle.x < center - 1 ? "left" : "right"}
          lines={[...rates, ...below]}
        />
      ) : (
        <>
          <Lines x={middle.x} y={middle.y + 6 - 15 * rates.length} lines={rates} />
          <Lines x={middle.x} y={middle.y + 18} lines={below} />
        </>
      )}
      <Gauge port={forth} at={between(near)} narrow={narrow} />
      <Gauge port={back} at={between(1 - near)} narrow={narrow} />
    </g>
  );
}

/** The queue of a port: what waits now, and the most in the last second. */
function Gauge({ port, at, narrow }: { port: Port; at: Point; narrow: boolean }) {
  const { now, direction, drops } = port;
  if (!now) return null;
  const { width, height } = GAUGE;
  const [left, top] = [at.x - width / 2, at.y - height / 2];
  const { fill, wait: waitNow = 0 } = fullestQueue(port);
  // Of a LAG, only the sum of its members is known for the last second.
  const { fill: mostOfAll, wait: waitOfAll } = queueOf(now.queue_max_bytes, port);
  const most = Math.max(fill, mostOfAll);
  const wait = waitOfAll === undefined ? undefined : Math.max(waitNow, waitOfAll);
  const level = (share: number) => top + height * (1 - share);
  return (
    <g class={drops.queue > 0 ? "gauge full" : "gauge"}>
      <rect class="room" x={left} y={top} width={width} height={height} rx={2} />
      <rect class="waiting" x={left} y={level(fill)} width={width} height={height * fill} />
      {most > 0 && <line class="most" x1={left} x2={left + width} y1={level(most)} y2={level(most)} />}
      {most >= WRITTEN_FILL && wait !== undefined && (
        <text {...(narrow ? { class: "right", x: left + width + 5, y: at.y + 5 } : { x: at.x, y: top - 5 })}>
          {time(wait)}
        </text>
      )}
      <title>
        {`${port.from} → ${port.to}: ${bytes(now.queue_bytes)} of ${bytes(direction.buffer_bytes)} wait${drops.queue > 0 ? ", and packets are dropped" : ""}`}
      </title>
    </g>
  );
}

interface LinesProps {
  x: number;
  y: number;
  lines: string[];
  side?: "left" | "right";
}

/** Lines of text about a link. */
function Lines({ x, y, lines, side }: LinesProps) {
  return (
    <text class={`link ${side ?? ""}`} x={x} y={y}>
      {lines.map((line, number) => (
        <tspan key={line} x={x} dy={number > 0 ? 14 : 0}>
          {line}
        </tspan>
      ))}
    </text>
  );
}

type Arrows = [forth: string, back: string];

/** What a link is, or what both of its directions are if they differ. */
function inBoth(
  forth: Port,
  back: Port,
  arrows: Arrows,
  words: (direction: LabDirection) => string,
): string[] {
  const [one, other] = [words(forth.direction), words(back.direction)];
  if (one === other) return [one];
  return [one && `${one} ${arrows[0]}`, other && `${other} ${arrows[1]}`].filter(Boolean);
}

function Ports({ ports }: { ports: Port[] }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by keyboard
    <div class="scroll" tabIndex={0}>
      <table class="ports">
        <caption class="unseen">What the ports do now</caption>
        <thead>
          <tr>
            <th>Port</th>
            <th class="number">Line</th>
            <th class="number">On the wire</th>
            <th class="number">Busy</th>
            <th class="number">Waiting now</th>
            <th class="number">Most in the last second</th>
            <th class="number">Buffer</th>
            <th class="number">Dropped</th>
            <th class="number">Marked</th>
          </tr>
        </thead>
        <tbody>
          {ports.map((port) => (
            <PortRow key={`${port.link.name} ${port.from}`} port={port} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function PortRow({ port }: { port: Port }) {
  const { from, to, link, direction, now, drops } = port;
  const waiting = (count: number, { wait }: Queue) => {
    return count === 0 ? "0" : `${bytes(count)}${wait === undefined ? "" : `, ${time(wait)}`}`;
  };
  return (
    <tr>
      <th scope="row" title={`link ${link.name}`}>
        {from} → {to}
      </th>
      <td class="number">{direction.rate_bps === undefined ? "endless" : rate(direction.rate_bps)}</td>
      <td class="number">{now ? rate(now.wire_bps) : NOTHING}</td>
      <td class="number">
        {now && direction.rate_bps !== undefined ? `${Math.round(100 * now.busy)} %` : NOTHING}
      </td>
      <td class="number">{now ? waiting(now.queue_bytes, fullestQueue(port)) : NOTHING}</td>
      <td class="number">
        {now ? waiting(now.queue_max_bytes, queueOf(now.queue_max_bytes, port)) : NOTHING}
      </td>
      <td class="number">{bytes(direction.buffer_bytes)}</td>
      <td class={drops.all > 0 ? "number bad" : "number"}>
        {now?.dropped ?? NOTHING}
        {drops.all > 0 && " ▲"}
      </td>
      <td class="number">{now?.marked ?? NOTHING}</td>
    </tr>
  );
}
