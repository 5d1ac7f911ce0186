import { expect, test } from "vitest";
import type { Result, Run } from "./api";
import { ends, isFromHere } from "./source";

const HERE = "ams-1";

function run(target: string, hosts: string[], more: Partial<Result> = {}): Run {
  const result: Result = { run: { target }, hosts: hosts.map((name) => ({ name })), flows: [], ...more };
  return { id: "1", kind: "test", state: "ended", target, result };
}

const flow = { name: "upload", direction: "upload", transport: "tcp", streams: 1 } as const;

test("a run is between the hosts that have measured it", () => {
  expect(ends(run("192.0.2.7", [HERE, "oslo"]), HERE)).toBe("ams-1 → 192.0.2.7");
  expect(ends(run("oslo", ["lund-2", "oslo"]), HERE)).toBe("lund-2 → oslo");
  // A client of another program, and a browser: their runs have them as the target.
  expect(ends(run("192.0.2.9 (iperf3)", ["192.0.2.9", HERE]), HERE)).toBe("192.0.2.9 (iperf3) → ams-1");
  expect(ends(run("oslo (iperf3)", [HERE, "oslo"]), HERE)).toBe("ams-1 → oslo (iperf3)");
  // It waits, or runs.
  expect(ends({ id: "1", kind: "test", state: "running", target: "oslo" }, HERE)).toBe("ams-1 → oslo");
});

test("only a run from this host can be made again by it", () => {
  const from = (run: Run) => run.result && isFromHere(run.result, HERE);
  expect(from(run("oslo", [HERE, "oslo"]))).toBe(true);
  expect(from(run("oslo", ["lund-2", "oslo"]))).toBe(false);
  const imported = run("oslo", [], { flows: [{ ...flow, caveats: [{ kind: "imported" }] }] });
  expect([from(imported), ends(imported, HERE)]).toEqual([false, "oslo"]);
  const empty = run("oslo", [], { caveats: [{ kind: "imported" }] });
  expect(from(empty)).toBe(false);
  // It reached nobody.
  const refused = run("oslo", []);
  expect([from(refused), ends(refused, HERE)]).toEqual([true, "ams-1 → oslo"]);
  const ofPlan = run("oslo", [], { run: { target: "oslo", group: {} } });
  expect([from(ofPlan), ends(ofPlan, HERE)]).toEqual([false, "oslo"]);
});
