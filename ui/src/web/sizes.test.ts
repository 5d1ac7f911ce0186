import { expect, test } from "vitest";
import type { Result } from "./api";
import { fieldOf, fromResult, requestOf } from "./sizes";

test("a request has what was typed", () => {
  expect(requestOf({ to: " far " })).toEqual({
    request: { to: "far", test: { sweep: {} } },
  });
  const typed = {
    to: "far",
    mode: "stream",
    from: "64",
    largest: "1M",
    time: "2 min",
    trials: "6",
    name: "n",
  };
  expect(requestOf(typed)).toMatchObject({
    request: {
      name: "n",
      test: {
        sweep: { stream: true, from_bytes: 64, to_bytes: 2 ** 20, time_ns: 120e9, trials: 6 },
      },
    },
  });
});

test("what cannot be read is said at its field", () => {
  expect(requestOf({ from: "many", trials: "2.5" })).toEqual({
    errors: {
      to: expect.stringContaining("other host"),
      from: expect.stringContaining("size"),
      trials: expect.stringContaining("whole number"),
    },
  });
  expect(fieldOf("test.sweep.to_bytes")).toBe("largest");
  expect(fieldOf("test.socket.window_bytes")).toBeUndefined();
});

test("a series is started again as it was, unless another tool has made it", () => {
  const result = (target: string, sweep?: Result["run"]["spec"]): Result => ({
    run: { target, name: "n", spec: sweep ?? null },
    flows: [],
  });
  const sweep = { bidir: true, from_bytes: 1, to_bytes: 8388608, trials: 7, time_ns: 30e9 };
  expect(fromResult(result("far", { sweep }))).toEqual({
    to: "far",
    name: "n",
    mode: "bidir",
    from: "1",
    largest: "8388608",
    trials: "7",
    time: "30",
  });
  expect(fromResult(result("far"))).toBeUndefined();
  expect(fromResult(result("far (netpipe)", { sweep }))).toBeUndefined();
  // As the program stores what the form has asked for.
  const traffic = { udp: false, streams: 1, interval_ns: 1e9, no_latency: true };
  const socket = { no_delay: true, ipv4: false };
  const stored = { ...sweep, perturb_bytes: 3, order: "ascending" };
  expect(fromResult(result("far", { sweep: stored, traffic, socket, host: {} }))).toBeDefined();
  // What the form has no field for.
  const others: Result["run"]["spec"][] = [
    { sweep, traffic: { ...traffic, udp: true } },
    { sweep, socket: { ...socket, window_bytes: 65536 } },
    { sweep, host: { affinity: 1 } },
    { sweep: { ...stored, perturb_bytes: 0 } },
    { sweep: { ...stored, sizes: "1,64" } },
  ];
  for (const other of others) expect(fromResult(result("far", other))).toBeUndefined();
});
