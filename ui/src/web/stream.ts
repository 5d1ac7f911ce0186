// Server-sent events, read with `fetch` instead of EventSource: only so can a page tell why a stream ended (a
// session that needs a token, a run that was deleted), and notice a connection that is silent without being closed.

import { useEffect, useState } from "preact/hooks";
import { asProblem, type Problem, parsed, problemOf } from "./problem";

export interface Message {
  event: string;
  data: string;
  id?: string;
}

/** Splits a stream of text, in pieces of any size, into messages (HTML standard, section 9.2.6). */
export class Parser {
  private rest = "";
  private event = "";
  private data: string[] = [];
  private id: string | undefined;

  push(piece: string): Message[] {
    const lines = (this.rest + piece).split("\n");
    this.rest = lines.pop() ?? "";
    return lines.flatMap((line) => this.line(line.endsWith("\r") ? line.slice(0, -1) : line));
  }

  private line(line: string): Message[] {
    if (line === "") {
      const { event, data, id } = this;
      this.event = "";
      this.data = [];
      if (data.length === 0) return [];
      return [{ event: event || "message", data: data.join("\n"), ...(id === undefined ? {} : { id }) }];
    }
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "event") this.event = value;
    if (name === "data") this.data.push(value);
    if (name === "id") this.id = value;
    return [];
  }
}

/** The server sends a comment every 15 s: without one for this long, the connection is gone. */
const SILENCE_MS = 40_000;
/** Pauses between attempts to connect. */
const PAUSES_MS = [500, 1000, 2000, 5000];
/** Answers after which another attempt gives the same answer. */
const FINAL = new Set([400, 401, 403, 404, 410]);

export interface Listener {
  message(event: string, data: unknown): void;
  /** The stream cannot be had. */
  refused?(problem: Problem): void;
}

/** Streams without a connection, and when each was heard last. */
const lost = new Map<object, Date>();
const watchers = new Set<() => void>();

function setLost(stream: object, since: Date | undefined): void {
  if (since === undefined ? !lost.delete(stream) : lost.get(stream) === since) return;
  if (since) lost.set(stream, since);
  for (const watcher of watchers) watcher();
}

/** Since when the connection to the server has been lost; undefined if it is not. */
export function useLostSince(): Date | undefined {
  const earliest = () => [...lost.values()].sort((a, b) => a.getTime() - b.getTime())[0];
  const [since, setSince] = useState(earliest);
  useEffect(() => {
    const changed = () => setSince(earliest());
    watchers.add(changed);
    changed();
    return () => {
      watchers.delete(changed);
    };
  }, []);
  return since;
}

/**
 * Listens to a stream until the returned function is called. A lost connection is opened again. With `pauses`, a
 * page in the background has no connection: browsers allow six to a server, and they belong to the visible pages.
 */
export function listen(url: string, listener: Listener, pauses = false): () => void {
  const stream = {};
  let closed = false;
  let connection = new AbortController();
  let wake = () => {};
  let heard = new Date();
  let lastId: string | undefined;
  const hidden = () => pauses && document.hidden;
  const visibility = () => {
    if (hidden()) connection.abort();
    wake();
  };

  async function connect(): Promise<void> {
    connection = new AbortController();
    const { signal } = connection;
    const headers: Record<string, string> = { Accept: "text/event-stream" };
    if (lastId !== undefined) headers["Last-Event-ID"] = lastId;
    const timeout = setTimeout(() => connection.abort(), SILENCE_MS);
    const answer = await fetch(url, {
      headers,
      signal,
      credentials: "same-origin",
      cache: "no-store",
    }).finally(() => clearTimeout(timeout));
    if (!answer.ok || !answer.body) throw await problemOf(answer);
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    const parser = new Parser();
    for (;;) {
      const watchdog = setTimeout(() => connection.abort(), SILENCE_MS);
      const { value, done } = await reader.read().finally(() => clearTimeout(watchdog));
      if (done || closed) return;
      heard = new Date();
      attempts = 0;
      setLost(stream, undefined);
      for (const message of parser.push(value)) {
        if (message.id !== undefined) lastId = message.id;
        if (!closed) listener.message(message.event, parsed(message.data));
      }
    }
  }

  let attempts = 0;
  async function keep(): Promise<void> {
    while (!closed) {
      if (hidden()) {
        await new Promise<void>((done) => {
          wake = done;
        });
        continue;
      }
      const problem = await connect().then(
        () => undefined,
        (error) => asProblem(error),
      );
      if (closed || hidden()) continue;
      if (problem && FINAL.has(problem.status)) {
        close();
        listener.refused?.(problem);
        return;
      }
      setLost(stream, heard);
      const pause = (problem?.retryAfter ?? 0) * 1000 || PAUSES_MS[Math.min(attempts, PAUSES_MS.length - 1)];
      attempts += 1;
      await new Promise<void>((done) => {
        const timer = setTimeout(done, pause);
        wake = () => {
          clearTimeout(timer);
          done();
        };
      });
    }
  }

  function close(): void {
    closed = true;
    setLost(stream, undefined);
    document.removeEventListener("visibilitychange", visibility);
    connection.abort();
    wake();
  }

  document.addEventListener("visibilitychange", visibility);
  void keep();
  return close;
}
