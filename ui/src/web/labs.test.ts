import { expect, test } from "vitest";
import {
  drawingOf,
  fullestQueue,
  type LabFrame,
  type LabLink,
  type LabPort,
  type LabSnapshot,
  type Port,
  portsOf,
  queueChartOf,
  queueOf,
  withLabMessage,
} from "./labs";

const direction = { rate_bps: 1e9, drain_bps: 1e8, buffer_bytes: 100_000, delay_ns: 0 };
const link = (a: string, b: string): LabLink => ({
  name: `${a}-${b}`,
  ends: [a, b],
  members: 1,
  directions: [direction, { ...direction, rate_bps: 1e8 }],
});
const port = (queue: number, dropped = 0): LabPort => ({
  wire_bps: 0,
  pps: 0,
  busy: 0,
  queue_bytes: queue,
  queue_max_bytes: queue,
  dropped,
  dropped_queue: dropped,
  marked: 0,
});
const frame = (seconds: number, ...queues: number[]): LabFrame => ({
  up_ns: seconds * 1e9,
  ports: queues.map((queue) => port(queue)),
});
const network = (hosts: string[], switches: string[], links: LabLink[]) => ({
  hosts: hosts.map((name) => ({ name, address: "", address6: "" })),
  switches,
  links,
});
const pair: LabSnapshot = {
  name: "pair",
  topology: "pair",
  seed: 1,
  backend: "switch",
  ...network(["a", "b"], ["s"], [link("a", "s"), link("b", "s")]),
  notes: [],
  frame: frame(10, 0, 0, 0, 0),
  history: {
    at_ns: [9.5e9, 10e9],
    queue_max_bytes: [
      [0, 0],
      [0, 0],
      [0, 0],
      [0, 0],
    ],
  },
};

/** Names by column, from top to bottom. */
function columns(lab: Parameters<typeof drawingOf>[0]): string[][] {
  const { places, columns } = drawingOf(lab);
  return Array.from({ length: columns }, (_, column) =>
    places
      .filter((place) => place.column === column)
      .sort((a, b) => a.row - b.row)
      .map((place) => place.name),
  );
}

test("hosts are on the outside and switches between them", () => {
  expect(columns(pair)).toEqual([["a"], ["s"], ["b"]]);
  const four = network(
    ["a", "b", "c", "d"],
    ["s"],
    ["a", "b", "c", "d"].map((host) => link(host, "s")),
  );
  expect(columns(four)).toEqual([["a", "b"], ["s"], ["c", "d"]]);
  const two = network(
    ["a", "b", "c", "d"],
    ["s1", "s2"],
    [link("a", "s1"), link("b", "s1"), link("c", "s2"), link("d", "s2"), link("s1", "s2")],
  );
  expect(columns(two)).toEqual([["a", "b"], ["s1"], ["s2"], ["c", "d"]]);
  const line = network(["a", "b"], ["r2", "r1"], [link("r1", "r2"), link("r2", "b"), link("a", "r1")]);
  expect(columns(line)).toEqual([["a"], ["r1"], ["r2"], ["b"]]);
});

test("hosts without a switch, hosts of a middle switch, and parts that nothing joins have a place", () => {
  expect(columns(network(["a", "b"], [], [link("a", "b")]))).toEqual([["a"], ["b"]]);
  const chain = (...middle: string[]) =>
    network(
      ["a", ...middle, "z"],
      ["s1", "s2", "s3"],
      [
        link("a", "s1"),
        link("s1", "s2"),
        ...middle.map((host) => link(host, "s2")),
        link("s2", "s3"),
        link("s3", "z"),
      ],
    );
  const rows = (lab: ReturnType<typeof network>) =>
    Object.fromEntries(drawingOf(lab).places.map(({ name, row }) => [name, row]));
  // The path through the switches is straight, and no host is on it.
  expect(columns(chain("b"))).toEqual([["a"], ["s1"], ["b", "s2"], ["s3"], ["z"]]);
  expect(columns(chain("b", "c"))[2]).toEqual(["b", "s2", "c"]);
  expect(columns(chain("b", "c", "d")).slice(2)).toEqual([["s2"], ["b", "c", "d"], ["s3"], ["z"]]);
  for (const middle of [["b"], ["b", "c"], ["b", "c", "d"], ["b", "c", "d", "e"]]) {
    const { a, z, s1, s2, s3, ...hosts } = rows(chain(...middle));
    expect(new Set([a, z, s1, s2, s3]).size, `${middle}`).toBe(1);
    expect(Object.values(hosts), `${middle}`).not.toContain(s2);
  }
  const apart = drawingOf(network(["a", "b"], ["s", "t"], [link("a", "s"), link("b", "t")]));
  const places = apart.places.map(({ column, row }) => `${column} ${row}`);
  expect(new Set(places).size).toBe(4);
  expect(drawingOf(network([], [], []))).toEqual({ places: [], columns: 0, rows: 1 });
});

test("rows follow the column before, so that links do not cross", () => {
  const crossed = network(
    ["a", "c", "d"],
    ["s0", "s1", "s2", "s3"],
    [link("a", "s0"), link("s0", "s1"), link("s1", "s2"), link("s1", "s3"), link("d", "s2"), link("c", "s3")],
  );
  expect(columns(crossed).slice(0, -1)).toEqual([["a"], ["s0"], ["s1"], ["s2", "s3"]]);
  expect(columns(crossed).at(-1)).toEqual(["d", "c"]);
});

test("a frame replaces the counts, adds to the history and says what was lost since", () => {
  let lab = withLabMessage(undefined, "frame", frame(1));
  expect(lab).toBeUndefined();
  lab = withLabMessage(undefined, "snapshot", pair);
  expect(lab?.drops.map(({ all }) => all)).toEqual([0, 0, 0, 0]);
  // What the snapshot had already.
  lab = withLabMessage(lab, "frame", frame(10, 0, 0, 0, 0));
  expect(lab?.history.at_ns).toHaveLength(2);
  const next = frame(10.5, 0, 0, 0, 5000);
  next.ports[2] = { ...port(0, 3), dropped_queue: 0 };
  next.ports[3] = port(5000, 7);
  lab = withLabMessage(lab, "frame", next);
  expect(lab?.drops[2]).toEqual({ all: 3, queue: 0 });
  expect(lab?.drops[3]).toEqual({ all: 7, queue: 7 });
  expect(lab?.history.at_ns).toEqual([9.5e9, 10e9, 10.5e9]);
  expect(lab?.history.queue_max_bytes[3]).toEqual([0, 0, 5000]);
  // After a pause nobody knows when it was dropped.
  const later = frame(20, 0, 0, 0, 0);
  later.ports[3] = port(0, 9);
  lab = withLabMessage(lab, "frame", later);
  expect(lab?.drops[3]?.all).toBe(0);
  for (let at = 0; at < 200; at += 1) lab = withLabMessage(lab, "frame", frame(21 + at, 0, 0, 0, 0));
  expect(lab?.history.at_ns).toHaveLength(120);
  expect(lab?.history.queue_max_bytes[3]).toHaveLength(120);
});

test("a port is one direction of a link, with the time that its queue takes", () => {
  const lab = withLabMessage(undefined, "snapshot", { ...pair, frame: frame(10, 0, 0, 0, 50_000) });
  const ports = lab ? portsOf(lab) : [];
  expect(ports.map(({ from, to }) => `${from}>${to}`)).toEqual(["a>s", "s>a", "b>s", "s>b"]);
  const last = ports[3] as Port;
  expect(queueOf(50_000, last)).toEqual({ fill: 0.5, wait: 4e6 });
  expect(fullestQueue(last)).toEqual({ fill: 0.5, wait: 4e6 });
  const endless = { buffer_bytes: 1, delay_ns: 0 };
  expect(queueOf(1, { ...last, direction: endless }).wait).toBeUndefined();
});

test("the queue of a LAG is that of its fullest member", () => {
  const lag = {
    ...link("s", "t"),
    members: 2,
    directions: [
      { rate_bps: 2e8, drain_bps: 2e8, buffer_bytes: 200_000, delay_ns: 0 },
      { rate_bps: 2e8, drain_bps: 2e8, buffer_bytes: 200_000, delay_ns: 0 },
    ] as LabLink["directions"],
  };
  const now = { ...port(100_000), members_queue_bytes: [100_000, 0] };
  const one = {
    from: "s",
    to: "t",
    link: lag,
    direction: lag.directions[0],
    now,
    drops: { all: 0, queue: 0 },
  };
  expect(fullestQueue(one)).toEqual({ fill: 1, wait: 8e6 });
  expect(queueOf(100_000, one).fill).toBe(0.5);
});

test("the chart has the longest queues, in the order of the ports", () => {
  const lab = withLabMessage(undefined, "snapshot", pair);
  expect(lab && queueChartOf(lab)).toBeUndefined();
  const busy = withLabMessage(lab, "frame", frame(10.5, 100, 0, 0, 300));
  const chart = busy && queueChartOf(busy);
  expect(chart?.panels[0]?.lines.map((line) => line.label)).toEqual(["a → s", "s → b"]);
  expect(chart?.panels[0]?.lines[1]?.x).toEqual([-1, -0.5, 0]);
  expect(chart?.panels[0]?.lines[1]?.y).toEqual([0, 0, 300]);
});

test("what one network has dropped is not counted for another one", () => {
  const lab = withLabMessage(undefined, "snapshot", pair);
  const dropping = { ...pair, frame: { up_ns: 10.5e9, ports: [port(0, 3), port(0), port(0), port(0)] } };
  expect(withLabMessage(lab, "snapshot", dropping)?.drops[0]).toEqual({ all: 3, queue: 3 });
  expect(withLabMessage(lab, "snapshot", { ...dropping, name: "other" })?.drops[0]).toEqual({
    all: 0,
    queue: 0,
  });
});
