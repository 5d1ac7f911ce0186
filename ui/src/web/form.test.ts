import { expect, test } from "vitest";
import type { Result, Settings } from "./api";
import {
  about,
  EMPTY,
  type Form,
  fieldOf,
  fromQuery,
  fromResult,
  rateOf,
  requestOf,
  sizeOf,
  summary,
  timeOf,
  toQuery,
} from "./form";

const form = (more: Partial<Form>): Form => ({ ...EMPTY, to: "lund-2", ...more });

test("quantities are read as on the command line: rates decimal, sizes binary unless they have the SI's unit", () => {
  expect([rateOf("100M"), rateOf("1.5 Gb/s"), rateOf("64000"), rateOf("10kbps")]).toEqual([
    1e8, 1.5e9, 64000, 1e4,
  ]);
  expect([sizeOf("4M"), sizeOf("4 MiB"), sizeOf("1500"), sizeOf("64K"), sizeOf("64Ki")]).toEqual([
    4194304, 4194304, 1500, 65536, 65536,
  ]);
  expect([sizeOf("64kB"), sizeOf("64 MB"), sizeOf("1.5GB"), sizeOf("12B")]).toEqual([64e3, 64e6, 1.5e9, 12]);
  expect([timeOf("10"), timeOf("0.5 s"), timeOf("500 ms"), timeOf("2 min")]).toEqual([1e10, 5e8, 5e8, 12e10]);
  for (const read of [rateOf, sizeOf, timeOf])
    for (const text of ["fast", "-1", "1e3", "1,5", "4 parsecs"]) expect(read(text)).toBeUndefined();
});

test("an empty form asks for the program's own settings, and nothing that was not typed is sent", () => {
  expect(requestOf(form({ time: "" }))).toEqual({
    request: { to: "lund-2", test: { traffic: { streams: 1 }, socket: {} } },
  });
});

test("every field arrives under the name that the program has for it", () => {
  const full = form({
    time: "3",
    streams: "4",
    transport: "udp",
    directions: "upload",
    rate: "100M",
    congestion: "bbr",
    window: "4M",
    name: "before",
    notes: "cable: blue\nroom = 3\n",
    others: { "traffic.length_bytes": 1200, "socket.no_delay": true },
  });
  expect(requestOf(full)).toEqual({
    request: {
      to: "lund-2",
      name: "before",
      notes: { cable: "blue", room: "3" },
      test: {
        traffic: {
          duration_ns: 3e9,
          streams: 4,
          udp: true,
          upload: true,
          rate_bps: 1e8,
          length_bytes: 1200,
        },
        socket: { congestion: "bbr", window_bytes: 4194304, no_delay: true },
      },
    },
  });
  const both = requestOf(form({ transport: "mptcp", directions: "both" }));
  expect(both).toMatchObject({ request: { test: { traffic: { mptcp: true, bidir: true } } } });
});

test("mistakes are found per field, all of them at once", () => {
  const made = requestOf(form({ to: " ", time: "long", streams: "1.5", rate: "x", window: "y", notes: "z" }));
  expect(Object.keys("errors" in made ? made.errors : {}).sort()).toEqual(
    ["notes", "rate", "streams", "time", "to", "window"].sort(),
  );
});

test("a problem of the server belongs to the field that has its setting", () => {
  expect(fieldOf("test.traffic.streams")).toBe("streams");
  expect(fieldOf("$.test.traffic.bidir")).toBe("directions");
  expect(fieldOf("notes.cable")).toBe("notes");
  expect(fieldOf("test.socket.mss_bytes")).toBeUndefined();
  expect(fieldOf(undefined)).toBeUndefined();
});

test("the form survives the address of the page, which has only what differs from an empty one", () => {
  const typed = form({
    streams: "4",
    transport: "udp",
    notes: "a: 1\nb: 2",
    others: { "traffic.length_bytes": 1200, "socket.no_delay": true },
  });
  expect([...toQuery(typed).keys()]).toEqual([
    "to",
    "streams",
    "transport",
    "notes",
    "traffic.length_bytes",
    "socket.no_delay",
  ]);
  expect(fromQuery(new URLSearchParams(toQuery(typed).toString()))).toEqual(typed);
  expect(toQuery(EMPTY).toString()).toBe("");
});

test("an address cannot set what is no choice, nor a setting that has a field", () => {
  const read = fromQuery(
    new URLSearchParams("transport=carrier-pigeon&traffic.streams=9&host.affinity=1&traffic.x.y=1"),
  );
  expect(read).toEqual(EMPTY);
});

test("a finished run can be started again with the same settings", () => {
  const result: Result = {
    run: {
      target: "lund-2",
      name: "after",
      notes: { cable: "blue" },
      spec: {
        traffic: {
          udp: false,
          mptcp: false,
          upload: true,
          download: false,
          bidir: false,
          duration_ns: 2.5e9,
          streams: 4,
          rate_bps: 1e8,
          interval_ns: 1e9,
          no_latency: false,
          length_bytes: 1200,
        },
        socket: { no_delay: false, ipv4: true, ipv6: false, window_bytes: 4194304, congestion: "bbr" },
      },
    },
    flows: [],
  };
  const again = fromResult(result);
  expect(again).toEqual({
    to: "lund-2",
    time: "2500 ms",
    streams: "4",
    transport: "tcp",
    directions: "upload",
    rate: "100M",
    congestion: "bbr",
    window: "4M",
    name: "after",
    notes: "cable: blue",
    others: { "traffic.length_bytes": 1200, "socket.ipv4": true },
  });
  expect(again && requestOf(again)).toMatchObject({
    request: { test: { traffic: { duration_ns: 2.5e9, upload: true, length_bytes: 1200 } } },
  });
});

test("a test over loopback is started again over loopback, not against a server on its port", () => {
  expect(fromResult({ run: { spec: {}, target: "127.0.0.1" }, flows: [] })?.to).toBe("this host");
  expect(fromResult({ run: { spec: {}, target: "127.0.0.1:5300" }, flows: [] })?.to).toBe("127.0.0.1:5300");
});

test("neither a sweep nor a run without a specification can be started by the form", () => {
  expect(fromResult({ run: { spec: { sweep: {} } }, flows: [] })).toBeUndefined();
  expect(fromResult({ run: {}, flows: [] })).toBeUndefined();
  const spec = { traffic: {} };
  expect(fromResult({ run: { spec, target: "192.0.2.1" }, flows: [] })).toBeDefined();
  expect(fromResult({ run: { spec, target: "192.0.2.1 (iperf3)" }, flows: [] })).toBeUndefined();
});

test("a run that the form cannot ask for is not started again as another test with its name", () => {
  const of = (spec: NonNullable<Result["run"]["spec"]>) =>
    fromResult({ run: { spec, target: "lund-2", name: "rr" }, flows: [] });
  expect(of({ transactions: { workload: "rr", pipeline: 1, spin: false } })).toBeUndefined();
  const hosts: Settings[] = [{ affinity: 3 }, { link_bps: 1e9 }, { no_sampling: true }];
  for (const host of hosts) expect(of({ host })).toBeUndefined();
  expect(of({ host: {}, traffic: {}, socket: {} })).toBeDefined();
});

test("a run that ended after some bytes is started again without a time", () => {
  const again = fromResult({
    run: { spec: { traffic: { bytes: 1048576, streams: 1, interval_ns: 1e9 } }, target: "lund-2" },
    flows: [],
  });
  expect(again?.time).toBe("");
  const read = again && fromQuery(new URLSearchParams(toQuery(again).toString()));
  expect(read).toEqual(again);
  expect(read && requestOf(read)).toEqual({
    request: { to: "lund-2", test: { traffic: { streams: 1, bytes: 1048576 }, socket: {} } },
  });
  expect(read && [summary(read), about(read)]).toEqual(["1 stream · TCP · download, then upload", undefined]);
});

test("the settings are said in a line, and how long they take", () => {
  expect(summary(form({ streams: "4", rate: "100M" }))).toBe(
    "10 s · 4 streams · TCP · download, then upload · at 100M",
  );
  expect(summary(form({ time: "" }))).toMatch(/^10 s/);
  expect([about(form({})), about(form({ directions: "both" })), about(form({ time: "?" }))]).toEqual([
    22,
    12,
    undefined,
  ]);
});
