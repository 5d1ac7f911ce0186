// A stand-in for the measuring port of a host: tests from a browser, over HTTP and WebSockets.

import { createHash, randomBytes } from "node:crypto";
import { createServer } from "node:http";

const PROTOCOL = "linerate.browser.1";
const OPENING_MS = 10_000;
const PROGRESS_MS = 250;
const NOTE_MS = 500;
const PIECE = randomBytes(256 * 1024);
const [TEXT, CLOSE, PING, PONG] = [1, 8, 9, 10];

/** All tests by their names. */
const tests = new Map();

const now = () => process.hrtime.bigint();

/** Listens. `archive` gets what was measured, and says the name of the run. */
export function measuringPort(port, { isBusy, archive }) {
  const server = createServer((request, answer) => {
    const { test, what, query } = partsOf(request);
    answer.setHeader("Access-Control-Allow-Origin", "*");
    const phase = tests.get(test)?.phase;
    if (what !== "down" || phase?.direction !== "download") {
      answer.writeHead(404);
      return answer.end();
    }
    answer.writeHead(200, { "Content-Type": "application/octet-stream", "Cache-Control": "no-store" });
    answer.flushHeaders();
    phase.join(query.get("stream"), {
      begin: () => pour(answer, phase),
      end: () => answer.end(),
    });
  });
  server.on("upgrade", (request, socket) => {
    const { test, what, query } = partsOf(request);
    socket.on("error", () => undefined);
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Protocol: ${PROTOCOL}\r\nSec-WebSocket-Accept: ${createHash(
        "sha1",
      )
        .update(`${request.headers["sec-websocket-key"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
        .digest("base64")}\r\n\r\n`,
    );
    if (what === "control") return control(socket, test, query, isBusy, archive);
    const phase = tests.get(test)?.phase;
    if (what !== "up" || phase?.direction !== "upload") return socket.destroy();
    const frames = new Frames((_, bytes) => phase.count(bytes));
    socket.on("data", (data) => frames.push(data));
    phase.join(query.get("stream"), {
      begin: () => undefined,
      end: () => {
        socket.end(frame(CLOSE, Buffer.from([3, 232])));
        // What is still on its way has nobody to read it.
        setTimeout(() => socket.destroy(), 200);
      },
    });
  });
  server.listen(port);
}

function partsOf({ url }) {
  const { pathname, searchParams } = new URL(url, "http://localhost");
  const [, test, what] = /^\/linerate\/browser\/([0-9a-f]{32})\/(\w+)$/.exec(pathname) ?? [];
  return { test, what, query: searchParams };
}

function pour(answer, phase) {
  const more = () => {
    while (!phase.over) {
      phase.count(PIECE.length);
      if (!answer.write(PIECE)) return;
    }
  };
  answer.on("drain", more);
  more();
}

function control(socket, name, query, isBusy, archive) {
  const say = (message) => socket.writable && socket.write(frame(TEXT, Buffer.from(JSON.stringify(message))));
  const close = (code) => socket.end(frame(CLOSE, Buffer.from([code >> 8, code & 255])));
  if (isBusy() || tests.size > 0) {
    say({ kind: "busy", why: "another run is in progress" });
    return close(1013);
  }
  const test = {};
  tests.set(name, test);
  let note = () => undefined;
  let pinged;
  let rtt;
  const frames = new Frames((kind, _, payload) => {
    if (kind === PONG && pinged) rtt = Number(now() - pinged);
    if (kind !== TEXT) return;
    const message = JSON.parse(payload);
    console.log(JSON.stringify(message));
    if (message.kind === "cancel") socket.destroy();
    else note();
  });
  socket.on("data", (data) => frames.push(data));
  const pings = setInterval(() => {
    pinged = now();
    if (socket.writable) socket.write(frame(PING, Buffer.alloc(0)));
  }, PROGRESS_MS);
  socket.on("close", () => {
    clearInterval(pings);
    test.phase?.end();
    tests.delete(name);
  });
  const streams = Number(query.get("streams"));
  const seconds = Number(query.get("seconds"));
  const measure = async (direction) => {
    const phase = new Phase(direction, streams);
    test.phase = phase;
    say({ kind: "open", phase: direction, streams });
    await phase.joined;
    say({ kind: "go", phase: direction, seconds });
    const began = now();
    const elapsed = () => Number(now() - began);
    phase.begin();
    const points = { direction, seconds, at_seconds: [], bitrate_bps: [] };
    let [lastBytes, lastAt] = [0, 0];
    while (elapsed() < seconds * 1e9 && !socket.destroyed) {
      await pause(PROGRESS_MS);
      const at = elapsed();
      const bitrate = ((phase.bytes - lastBytes) * 8e9) / (at - lastAt);
      [lastBytes, lastAt] = [phase.bytes, at];
      points.at_seconds.push(at / 1e9);
      points.bitrate_bps.push(bitrate);
      say({
        kind: "progress",
        phase: direction,
        elapsed_ns: at,
        bytes: phase.bytes,
        bitrate_bps: bitrate,
        ...(rtt === undefined ? {} : { rtt_ns: rtt }),
      });
    }
    const [bytes, at] = [phase.bytes, elapsed()];
    phase.end();
    const noted = new Promise((done) => {
      note = done;
    });
    say({ kind: "ended", phase: direction, bytes, elapsed_ns: at, bitrate_bps: (bytes * 8e9) / at });
    await Promise.race([noted, pause(NOTE_MS)]);
    return points;
  };
  const story = async () => {
    const flows = [];
    for (const direction of query.get("directions").split(",")) {
      flows.push(await measure(direction));
      if (socket.destroyed) return;
    }
    say({ kind: "finished", run: archive(flows, streams) });
    close(1000);
  };
  story().catch((error) => {
    say({ kind: "failed", why: error.message });
    close(1000);
  });
}

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

/** One direction: its connections, and the bytes of all of them. */
class Phase {
  constructor(direction, streams) {
    this.direction = direction;
    this.bytes = 0;
    this.over = false;
    this.streams = new Map();
    this.joined = new Promise((done, fail) => {
      this.join = (stream, connection) => {
        this.streams.set(stream, connection);
        if (this.streams.size === streams) done();
      };
      setTimeout(
        () => fail(new Error(`${this.streams.size} of ${streams} connections were opened`)),
        OPENING_MS,
      );
    });
  }

  count(bytes) {
    if (!this.over) this.bytes += bytes;
  }

  begin() {
    for (const { begin } of this.streams.values()) begin();
  }

  end() {
    if (this.over) return;
    this.over = true;
    for (const { end } of this.streams.values()) end();
  }
}

/** A frame from the server (RFC 6455, section 5.2), of a short payload. */
function frame(kind, payload) {
  const head =
    payload.length < 126
      ? [0x80 | kind, payload.length]
      : [0x80 | kind, 126, payload.length >> 8, payload.length & 255];
  return Buffer.concat([Buffer.from(head), payload]);
}

/** Takes a stream of frames of a browser apart; the payload is kept only if it is short. */
class Frames {
  constructor(heard) {
    this.heard = heard;
    this.rest = Buffer.alloc(0);
    this.skip = 0;
  }

  push(data) {
    if (this.skip >= data.length) {
      this.skip -= data.length;
      return;
    }
    this.rest = Buffer.concat([this.rest, data.subarray(this.skip)]);
    this.skip = 0;
    for (;;) {
      if (this.rest.length < 2) return;
      const kind = this.rest[0] & 15;
      const short = this.rest[1] & 127;
      const head = short === 127 ? 10 : short === 126 ? 4 : 2;
      if (this.rest.length < head + 4) return;
      const length =
        short === 127
          ? Number(this.rest.readBigUInt64BE(2))
          : short === 126
            ? this.rest.readUInt16BE(2)
            : short;
      const mask = this.rest.subarray(head, head + 4);
      const begin = head + 4;
      if (kind === 2 || kind === 0) {
        this.heard(kind, length);
        this.skip = Math.max(0, begin + length - this.rest.length);
        this.rest = this.rest.subarray(Math.min(this.rest.length, begin + length));
        if (this.skip > 0) return;
        continue;
      }
      if (this.rest.length < begin + length) return;
      const payload = this.rest.subarray(begin, begin + length).map((byte, at) => byte ^ mask[at % 4]);
      this.rest = this.rest.subarray(begin + length);
      this.heard(kind, length, Buffer.from(payload).toString());
    }
  }
}
