import { afterEach, expect, test, vi } from "vitest";
import { getRun, startRun, uuid } from "./api";
import { asProblem, Problem, parsed, SILENT } from "./problem";

afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

const problemJson = (status: number, details: object) =>
  new Response(JSON.stringify(details), { status, headers: { "Content-Type": "application/problem+json" } });

async function failure(answer: () => Response): Promise<Problem> {
  vi.stubGlobal("fetch", async () => answer());
  const error = await getRun("x").catch((error) => error);
  expect(error).toBeInstanceOf(Problem);
  return error;
}

test("a problem has its status, its words, the setting to blame and when to try again", async () => {
  const details = { detail: "20000 streams", field: "test.traffic.streams", limit: 10000, retry_after: 12 };
  const problem = await failure(() => problemJson(422, details));
  expect(problem).toMatchObject({
    status: 422,
    message: "20000 streams",
    field: "test.traffic.streams",
    limit: 10000,
    retryAfter: 12,
  });
  expect(problem.text).toBe("20000 streams. Try again in 12 s.");
});

test("an answer that is no problem document has words too", async () => {
  expect((await failure(() => new Response("<html>", { status: 502 }))).text).toContain("502");
  expect((await failure(() => problemJson(500, { title: "Broken" }))).text).toBe("Broken");
  expect((await failure(() => problemJson(500, []))).text).toContain("500");
});

test("a server that does not answer is a problem without a status", () => {
  expect(asProblem(new TypeError("Failed to fetch"))).toMatchObject({ status: 0, message: SILENT });
});

test("a test whose answer was lost is sent again under the same key, so that it starts once", async () => {
  const keys: (string | undefined)[] = [];
  vi.stubGlobal("fetch", async (_: string, init: { headers: Record<string, string>; method: string }) => {
    keys.push(init.headers["Idempotency-Key"]);
    expect(init.headers["X-Linerate"]).toBe("1");
    expect(init.headers["Content-Type"]).toBe("application/json");
    if (keys.length === 1) throw new TypeError("Failed to fetch");
    return Response.json({ id: "1", place: 0 }, { status: 201 });
  });
  vi.useFakeTimers();
  const first = startRun({ to: "x", test: { traffic: {}, socket: {} } });
  await vi.runAllTimersAsync();
  await first;
  await startRun({ to: "x", test: { traffic: {}, socket: {} } });
  expect(keys[0]).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  expect(keys[1]).toBe(keys[0]);
  expect(keys[2]).not.toBe(keys[0]);
});

test("a refused test is not sent again", async () => {
  let sent = 0;
  vi.stubGlobal("fetch", async () => {
    sent += 1;
    return problemJson(429, { detail: "Too many tests." });
  });
  await expect(startRun({ to: "x", test: { traffic: {}, socket: {} } })).rejects.toMatchObject({
    status: 429,
  });
  expect(sent).toBe(1);
});

test("identifiers are there without HTTPS", () => {
  expect(new Set(Array.from({ length: 50 }, uuid)).size).toBe(50);
});

test("null is as absent as nothing at all, but keeps its place in a list", () => {
  expect(parsed('{"a": null, "b": [1, null], "c": {"d": null, "e": 0}}')).toStrictEqual({
    b: [1, null],
    c: { e: 0 },
  });
  expect(parsed("null")).toBeUndefined();
});
