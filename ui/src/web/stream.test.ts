import { afterEach, expect, test, vi } from "vitest";
import { listen, Parser } from "./stream";

test("messages are found wherever the stream is cut", () => {
  const text =
    ': hello\n\nid: 7\nevent: frame\ndata: {"a":\ndata: 1}\n\nevent: end\r\ndata:{}\r\n\r\ndata: x\n\n';
  const wanted = [
    { event: "frame", data: '{"a":\n1}', id: "7" },
    { event: "end", data: "{}", id: "7" },
    { event: "message", data: "x", id: "7" },
  ];
  for (const size of [1, 2, 7, text.length]) {
    const parser = new Parser();
    const found = [];
    for (let at = 0; at < text.length; at += size) found.push(...parser.push(text.slice(at, at + size)));
    expect(found).toEqual(wanted);
  }
});

afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

const answer = (text: string) =>
  new Response(text, { status: 200, headers: { "Content-Type": "text/event-stream" } });

function stubbed(answers: (() => Response)[]) {
  const asked: Record<string, string>[] = [];
  vi.stubGlobal("document", { hidden: false, addEventListener() {}, removeEventListener() {} });
  vi.stubGlobal("fetch", async (_: string, init: { headers: Record<string, string> }) => {
    asked.push(init.headers);
    const next = answers.shift();
    if (!next) throw new TypeError("no server");
    return next();
  });
  return asked;
}

test("a stream that breaks is opened again, from the last message on", async () => {
  const asked = stubbed([
    () => answer("id: 3\nevent: snapshot\ndata: 1\n\n"),
    () => answer("id: 4\nevent: frame\ndata: 2\n\n"),
  ]);
  const heard: unknown[] = [];
  vi.useFakeTimers();
  const closed = new Promise<void>((done) => {
    const close = listen("/x", {
      message: (event, data) => {
        heard.push([event, data]);
        if (event !== "frame") return;
        close();
        done();
      },
    });
  });
  // The pause before the second attempt.
  await vi.waitFor(() => vi.getTimerCount() > 0 || Promise.reject());
  await vi.advanceTimersByTimeAsync(10_000);
  await closed;
  expect(heard).toEqual([
    ["snapshot", 1],
    ["frame", 2],
  ]);
  expect(asked.map((headers) => headers["Last-Event-ID"])).toEqual([undefined, "3"]);
});

test("a stream that needs a token says so once, and is not asked for again", async () => {
  const asked = stubbed([() => Response.json({ detail: "Sign in first." }, { status: 401 })]);
  const problem = await new Promise<{ status: number }>((refused) => {
    listen("/x", { message: () => undefined, refused });
  });
  vi.useFakeTimers();
  await vi.advanceTimersByTimeAsync(60_000);
  expect([problem.status, asked.length]).toEqual([401, 1]);
});

test("a server that accepts and does not answer is asked again", async () => {
  let asked = 0;
  vi.stubGlobal("document", { hidden: false, addEventListener() {}, removeEventListener() {} });
  vi.stubGlobal("fetch", (_: string, { signal }: { signal: AbortSignal }) => {
    asked += 1;
    return new Promise((_, fail) => signal.addEventListener("abort", () => fail(signal.reason)));
  });
  vi.useFakeTimers();
  const close = listen("/x", { message: () => undefined });
  await vi.advanceTimersByTimeAsync(60_000);
  expect(asked).toBe(2);
  close();
});
