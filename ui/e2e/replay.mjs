// A stand-in for the web service, out of memory: the pages of dist/ and the whole interface, with runs that are made
// up. For developing the pages, and for testing the tests.
//
//   node e2e/replay.mjs [--port 8080] [--token WORD] [--archive "WHAT IS WRONG"]
//                       [--report PAGE.html] [--comparison PAGE.html] [--browser PORT]
//
// --report and --comparison name pages that `linerate report` and `linerate compare` wrote: their content is then
// what every finished run and every comparison shows. Tests to "nowhere" fail. --browser is the measuring port for
// tests from a browser, which send and receive as fast as they can.

import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { measuringPort } from "./measuring-port.mjs";
import { lab, labs, watchLab } from "./replay-labs.mjs";

const option = (name) => {
  const at = process.argv.indexOf(`--${name}`);
  return at < 0 ? undefined : process.argv[at + 1];
};
const PORT = Number(option("port") ?? 8080);
const TOKEN = option("token");
const BROWSER = option("browser") === undefined ? undefined : Number(option("browser"));
const HOST = "ams-1";
const FRAME_MS = 200;
const IDLE_SECONDS = 0.6;
const MEASURING = BROWSER === undefined ? "" : ` http://*:${BROWSER} ws://*:${BROWSER}`;
const POLICY = `default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; img-src 'self' data: blob:; connect-src 'self'${MEASURING}; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`;
const SHELL = `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark"><title>linerate</title><link rel="stylesheet" href="/assets/web.css"><link rel="icon" href="data:,"></head><body><div id="app"></div><noscript>This page needs JavaScript.</noscript><script src="/assets/web.js" defer></script></body></html>`;

/** All runs, newest first. */
let runs = [];
const listeners = new Set();
const keys = new Map();

const escaped = (text) =>
  String(text).replace(
    /[&<>"]/g,
    (letter) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[letter],
  );
const mbps = (bps) => (bps >= 1e9 ? `${(bps / 1e9).toFixed(3)} Gb/s` : `${(bps / 1e6).toFixed(1)} Mb/s`);

// Runs

function create(to, { name, notes = {}, test = {} } = {}, started = new Date()) {
  const { traffic = {}, socket = {} } = test;
  const both = !traffic.upload && !traffic.download;
  const directions = ["download", "upload"].filter(
    (direction) => both || traffic.bidir || traffic[direction],
  );
  const transport = traffic.udp ? "udp" : traffic.mptcp ? "mptcp" : "tcp";
  const seconds = (traffic.duration_ns ?? 10e9) / 1e9;
  const run = {
    id: randomBytes(8).toString("hex"),
    state: "waiting",
    started_at: started.toISOString(),
    to,
    name,
    notes,
    test: { traffic, socket },
    seconds,
    seq: 0,
    watchers: new Set(),
    loopback: to === "this host",
    flows: directions.map((direction, flow) => ({
      flow,
      name: direction,
      direction,
      transport,
      streams: traffic.streams ?? 1,
      state: "planned",
      elapsed_seconds: 0,
      of_seconds: seconds,
    })),
    series: directions.map((_, flow) => ({
      flow,
      at_seconds: [],
      bitrate_bps: [],
      srtt_ns: [],
      retransmits: [],
    })),
    frame: { state: "connecting", at_seconds: 0 },
  };
  runs.unshift(run);
  return run;
}

/** What a run measures at a time. */
function measured(run, flow, elapsed) {
  const offered = (run.test.traffic.rate_bps || Number.POSITIVE_INFINITY) * flow.streams;
  const ceiling = run.loopback ? 34e9 : 941.5e6;
  const ramp = Math.min(1, 0.3 + elapsed);
  const dip = Math.random() < 0.04 ? 0.8 : 1;
  const bitrate = Math.min(offered, ceiling * ramp * dip * (0.985 + Math.random() * 0.015));
  return {
    bitrate,
    srtt: (run.loopback ? 30e3 : 3.2e6) * (0.8 + 0.4 * Math.random()),
    lost: dip < 1 ? 7 : 0,
  };
}

/** Goes on with a run by some time; whether it goes on after that. */
function step(run, seconds) {
  const at = (run.frame.at_seconds ?? 0) + seconds;
  run.seq += 1;
  if (at < 0.3) run.frame = { state: "connecting", at_seconds: at };
  else if (at < 0.3 + IDLE_SECONDS) run.frame = { state: "idle_latency", at_seconds: at };
  else {
    run.idle = run.loopback ? 24_500 : 412_000;
    run.frame = { state: "measuring", at_seconds: at };
    const together = run.test.traffic.bidir;
    const running = run.flows.filter((flow) => flow.state !== "ended").slice(0, together ? 2 : 1);
    for (const flow of running) {
      flow.state = "running";
      flow.elapsed_seconds = Math.min(flow.of_seconds, flow.elapsed_seconds + seconds);
      const { bitrate, srtt, lost } = measured(run, flow, flow.elapsed_seconds);
      const tcp = flow.transport !== "udp";
      Object.assign(flow, { bitrate_bps: bitrate, ...(tcp ? { srtt_ns: Math.round(srtt) } : {}) });
      if (tcp) flow.retransmits = (flow.retransmits ?? 0) + lost;
      const series = run.series[flow.flow];
      series.at_seconds.push(at);
      series.bitrate_bps.push(bitrate);
      series.srtt_ns.push(flow.srtt_ns ?? null);
      series.retransmits.push(flow.retransmits ?? null);
      if (flow.elapsed_seconds >= flow.of_seconds) flow.state = "ended";
    }
  }
  const left = run.flows.map((flow) => flow.of_seconds - flow.elapsed_seconds);
  run.frame.left_seconds =
    (run.test.traffic.bidir ? Math.max(...left) : left.reduce((a, b) => a + b, 0)) +
    Math.max(0, 0.3 + IDLE_SECONDS - at);
  return run.flows.some((flow) => flow.state !== "ended");
}

function frame(run) {
  return {
    ...run.frame,
    ...(run.idle ? { idle_rtt_ns: run.idle } : {}),
    flows: run.flows.map(({ bitrate_bps, ...flow }) => ({
      ...flow,
      ...(flow.state === "running" ? { bitrate_bps } : {}),
    })),
  };
}

function begin() {
  const run = runs.findLast((run) => run.state === "waiting");
  if (!run || runs.some((run) => run.state === "running")) return tell();
  run.state = "running";
  run.started_at = new Date().toISOString();
  tell();
  const timer = setInterval(() => {
    if (run.to === "nowhere" && (run.frame.at_seconds ?? 0) > 0.3)
      return end(
        run,
        "failed",
        `connecting to ${run.to}: there is no host of this name; check the name, or give an address`,
      );
    if (run.cancelled) return end(run, "interrupted", "stopped by the user");
    const goesOn = step(run, FRAME_MS / 1000);
    for (const watcher of run.watchers) send(watcher, "frame", frame(run), run.seq);
    if (!goesOn) end(run, "completed");
  }, FRAME_MS);
  run.timer = timer;
}

function end(run, outcome, reason) {
  clearInterval(run.timer);
  run.state = "ended";
  run.outcome = outcome;
  run.reason = reason;
  run.frame = { state: "ended", at_seconds: run.frame.at_seconds };
  for (const watcher of run.watchers) {
    send(watcher, "end", { outcome, ...(reason ? { reason } : {}) }, run.seq);
    watcher.end();
  }
  run.watchers.clear();
  begin();
}

/** A run that was measured earlier. */
function past(hours, to, request, outcome = "completed", reason = undefined) {
  const run = create(to, request, new Date(Date.now() - hours * 3600e3));
  if (outcome !== "failed") {
    let steps = outcome === "interrupted" ? 30 : Number.POSITIVE_INFINITY;
    while (step(run, FRAME_MS / 1000) && steps > 0) steps -= 1;
  } else run.flows = [];
  Object.assign(run, {
    state: "ended",
    outcome,
    reason,
    frame: { state: "ended", at_seconds: run.frame.at_seconds },
  });
}

const mean = (run, flow) => {
  const values = run.series[flow.flow].bitrate_bps;
  return values.length > 0 ? values.reduce((a, b) => a + b, 0) / values.length : undefined;
};

// What the interface answers

function row(run) {
  const { id, state, started_at, name, outcome } = run;
  const flows = run.flows.map((flow) => ({
    name: flow.name,
    direction: flow.direction,
    transport: flow.transport,
    ...(state === "ended" ? { bitrate_bps: mean(run, flow), cause: cause(run) } : {}),
  }));
  return {
    id,
    state,
    started_at,
    target: run.to,
    world: "hosts",
    linerate: "0.1.0",
    outcome,
    name,
    kind: "test",
    events: run.seq,
    flows,
  };
}

const cause = (run) => (run.test.traffic.rate_bps ? "application" : run.loopback ? "cpu_receiver" : "link");
const verdict = (run) =>
  run.test.traffic.rate_bps
    ? "The test offered only what was asked for, and all of it arrived."
    : run.loopback
      ? "One core of this host is full."
      : "The slowest link of the path, 1 Gb/s, is full.";

function result(run) {
  return {
    schema: "linerate.result/2",
    run: {
      id: run.id,
      started_at: run.started_at,
      outcome: run.outcome,
      reason: run.reason,
      name: run.name,
      notes: run.notes,
      target: run.to,
      world: "hosts",
      spec: { ...run.test, host: {} },
    },
    flows: run.flows.map((flow) => ({
      flow: flow.flow,
      name: flow.name,
      direction: flow.direction,
      transport: flow.transport,
      streams: flow.streams,
      receiver: { bitrate_bps: mean(run, flow) },
      sender: { retransmits: flow.retransmits },
      settings: {
        window: { asked: run.test.socket.window_bytes, granted_snd_bytes: 4194304 },
        mss: { effective_bytes: 1448 },
        length_bytes: 131072,
      },
      ceiling: run.loopback
        ? undefined
        : {
            limit: "link",
            bitrate_bps: 941.5e6,
            share: mean(run, flow) / 941.5e6,
            because: "1 Gb/s link eth0",
          },
      verdict: { cause: cause(run), rule: "V01", confidence: "confirmed", text: verdict(run), evidence: {} },
    })),
  };
}

function details(run) {
  const before = runs.filter((other) => other.state === "running" || other.state === "waiting").reverse();
  return {
    id: run.id,
    state: run.state,
    target: run.to,
    name: run.name,
    ...(run.state === "waiting"
      ? { place: before.indexOf(run), wait_seconds: 20 * before.indexOf(run) }
      : {}),
    ...(run.outcome === "failed" ? { problem: run.reason } : {}),
    ...(run.state === "ended" ? { result: result(run) } : {}),
  };
}

const figure = (number, caption) =>
  `<figure class="chart" data-chart="${number}"><figcaption>${caption}</figcaption><div class="plot"></div></figure>`;
const wide = (caption, head, rows) =>
  `<div class="wide"><table><caption>${caption}</caption><thead><tr>${head.map((cell, at) => `<th class="${at ? "number" : ""}" scope="col">${cell}</th>`).join("")}</tr></thead><tbody>${rows.map((cells) => `<tr>${cells.map((cell, at) => `<td class="${at ? "number" : ""}">${cell}</td>`).join("")}</tr>`).join("")}</tbody></table></div>`;
const panel = (label, unit, lines) => ({ y: { label, unit, log: false }, lines });

function view(run) {
  const chart = (flow) => {
    const { at_seconds: x, bitrate_bps, srtt_ns } = run.series[flow.flow];
    return {
      kind: "time",
      title: `${flow.name} over time`,
      x: { label: "time", unit: "s", log: false },
      panels: [
        panel("rate", "bit/s", [
          { label: "receiver", style: "line", hue: flow.direction, x, y: bitrate_bps },
        ]),
        panel("round-trip time", "ns", [{ label: "smoothed", style: "line", hue: "latency", x, y: srtt_ns }]),
      ],
    };
  };
  const cards = run.flows.map(
    (flow) =>
      `<div class="verdict confirmed"><h3>${flow.name}</h3><p class="figure"><strong>${mbps(mean(run, flow) ?? 0)}</strong><span class="range"> (95 % interval)</span></p><p class="statement">${verdict(run)}</p><p class="cause">limited by: ${cause(run)}, confirmed</p></div>`,
  );
  const title = `${HOST} → ${run.to}`;
  return {
    title,
    html: `<section class="run"><h1>${escaped(title)}</h1><p class="faint">${run.started_at}</p><div id="verdict"><div class="verdicts">${cards.join("")}</div>${run.reason ? `<p class="warn">⚠ ${escaped(run.reason)}</p>` : ""}</div>${wide(
      "Results, counted at the receiver",
      ["", "bitrate", "retr"],
      run.flows.map((flow) => [flow.name, mbps(mean(run, flow) ?? 0), flow.retransmits ?? "—"]),
    )}${run.flows.map((flow) => figure(flow.flow, `${flow.name} over time`)).join("")}</section>`,
    charts: { schema: "linerate.charts/1", catalogue: [], charts: run.flows.map(chart) },
  };
}

function comparison(groups) {
  const rates = groups.map((group) => group.flatMap((run) => run.flows.map((flow) => mean(run, flow))));
  const title = `${groups[1][0].name ?? groups[1][0].id.slice(0, 4)} compared with ${groups[0][0].name ?? groups[0][0].id.slice(0, 4)}`;
  return {
    title,
    html: `<h1>${escaped(title)}</h1><div id="verdict"><div class="verdict"><h3>goodput</h3><p class="figure"><strong>No difference could be seen</strong></p><p class="cause">${rates[0].length} and ${rates[1].length} repeats</p></div></div>${figure(0, "All repeats")}`,
    charts: {
      schema: "linerate.charts/1",
      catalogue: [],
      charts: [
        {
          kind: "sweep",
          title: "All repeats",
          x: {
            label: "",
            unit: "words",
            log: false,
            marks: [
              { at: 0, label: "before" },
              { at: 1, label: "after" },
            ],
          },
          panels: [
            panel(
              "goodput",
              "bit/s",
              rates.map((values, at) => ({
                label: at ? "after" : "before",
                style: "dots",
                x: values.map(() => at),
                y: values,
              })),
            ),
          ],
        },
      ],
    },
  };
}

/** The content of a page that the program wrote. */
function recorded(path) {
  if (!path) return undefined;
  const page = readFileSync(path, "utf8");
  const [, html] = /<main>(.*)<\/main>/s.exec(page) ?? [];
  const [, charts] = /<script type="application\/json" id="charts">(.*?)<\/script>/s.exec(page) ?? [];
  const [, title] = /<title>(.*?)<\/title>/s.exec(page) ?? [];
  return {
    title: title.replace("&gt;", ">"),
    html: html.replace(/<p class="raw">.*?<\/p>/s, ""),
    charts: JSON.parse(charts),
  };
}
const REPORT = recorded(option("report"));
const COMPARISON = recorded(option("comparison"));

// The server

const send = (to, event, data, id) =>
  to.write(`${id === undefined ? "" : `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);

function currentRuns() {
  const running = runs.find((run) => run.state === "running");
  const latest = runs.find((run) => run.state === "ended");
  const waiting = runs.filter((run) => run.state === "waiting").map((run) => run.id);
  return { waiting, ...(running ? { running: running.id } : {}), ...(latest ? { latest: latest.id } : {}) };
}

function tell() {
  for (const watcher of listeners) send(watcher, "runs", currentRuns());
}

class Refused extends Error {
  constructor(status, detail, more = {}) {
    super(detail);
    this.problem = { type: `/problems/${status}`, title: detail, status, detail, ...more };
  }
}

function find(id) {
  const run =
    id === "latest" ? runs.find((run) => run.state === "ended") : runs.find((run) => run.id.startsWith(id));
  if (!run) throw new Refused(404, `There is no run ${id}.`);
  return run;
}

function start(body, key) {
  if (keys.has(key)) return keys.get(key);
  const streams = body.test?.traffic?.streams ?? 1;
  if (streams < 1 || streams > 10000)
    throw new Refused(422, `--parallel: ${streams} streams; give 1 to 10000`, {
      field: "test.traffic.streams",
      limit: 10000,
    });
  if (/\s/.test(body.to) && body.to !== "this host")
    throw new Refused(422, "a host name has no spaces", { field: "to" });
  const run = create(body.to, body);
  begin();
  const answer = { id: run.id, place: details(run).place ?? 0 };
  keys.set(key, answer);
  return answer;
}

function list(query) {
  const limit = Number(query.get("limit") ?? 50);
  const has = (name, value) => !query.get(name) || String(value ?? "").includes(query.get(name));
  const day = (name) => (query.get(name) ? new Date(query.get(name)).getTime() : undefined);
  const found = runs.filter(
    (run) =>
      has("target", run.to) &&
      has("name", run.name) &&
      (!query.get("verdict") || (run.state === "ended" && cause(run) === query.get("verdict"))) &&
      (!query.get("world") || query.get("world") === "hosts") &&
      new Date(run.started_at).getTime() >= (day("since") ?? 0) &&
      new Date(run.started_at).getTime() <= (day("until") ?? Number.POSITIVE_INFINITY),
  );
  const from = Number(query.get("after") ?? 0);
  const next = from + limit < found.length ? String(from + limit) : undefined;
  return { runs: found.slice(from, from + limit).map(row), next };
}

function group(query, name) {
  const found = query.getAll(name).flatMap((word) => {
    const named = runs.filter((run) => run.name === word);
    return named.length > 0 ? named : [find(word)];
  });
  if (found.some((run) => run.outcome === "failed"))
    throw new Refused(422, `${name}: a run that failed has nothing to compare`);
  return found;
}

function follow(answer, watchers, first) {
  answer.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
  first();
  watchers.add(answer);
  const timer = setInterval(() => answer.write(":\n\n"), 15_000);
  answer.on("close", () => {
    clearInterval(timer);
    watchers.delete(answer);
  });
}

async function read(request) {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  return JSON.parse(Buffer.concat(pieces).toString() || "{}");
}

const signedIn = (request) => !TOKEN || (request.headers.cookie ?? "").includes("linerate=in");

async function api(request, answer, path, query) {
  const json = (value, status = 200, headers = {}) => {
    answer.writeHead(status, { "Content-Type": "application/json", "Cache-Control": "no-store", ...headers });
    answer.end(value === undefined ? undefined : JSON.stringify(value));
  };
  const { method } = request;
  if (method !== "GET" && request.headers["x-linerate"] !== "1")
    throw new Refused(403, "The header X-Linerate is missing.");
  const body = method === "GET" ? {} : await read(request);
  if (path === "/session") {
    if (method === "GET")
      return json({
        needs_token: Boolean(TOKEN),
        signed_in: Boolean(TOKEN) && signedIn(request),
        abilities: signedIn(request) ? ["view", "run", "admin"] : [],
        host: HOST,
        linerate: "0.1.0",
        archive: option("archive") ?? "ok",
        ...(BROWSER === undefined ? {} : { browser_test: { port: BROWSER, tls: false } }),
      });
    if (method === "POST" && body.token !== TOKEN) throw new Refused(401, "This token is not known.");
    return json(undefined, 204, {
      "Set-Cookie": `linerate=${method === "POST" ? "in" : "out"}; HttpOnly; SameSite=Strict; Path=/`,
    });
  }
  if (!signedIn(request)) throw new Refused(401, "Sign in first.");
  if (path === "/hosts") {
    const targets = [...new Set(runs.map((run) => run.to))].filter(
      (to) => to !== "this host" && to !== "nowhere",
    );
    const known = targets.map((target) => {
      const run = runs.find((run) => run.to === target);
      return { target, last_run: run.id, last_at: run.started_at };
    });
    const { running, waiting } = currentRuns();
    return json({
      this_host: HOST,
      known,
      queue: { waiting: waiting.length, measured: running ? 1 : 0, ...(running ? { running } : {}) },
    });
  }
  if (path === "/labs") return json(labs());
  const [, network, isLive] = /^\/labs\/([^/]+)(\/live)?$/.exec(path) ?? [];
  if (network !== undefined) {
    if (!lab(network)) throw new Refused(404, "no emulated network with this name is up on this host");
    if (!isLive) return json(lab(network));
    let timer;
    follow(answer, new Set(), () => {
      timer = watchLab(network, (event, data) => send(answer, event, data));
    });
    answer.on("close", () => clearInterval(timer));
    return;
  }
  if (path === "/live") return follow(answer, listeners, () => send(answer, "runs", currentRuns()));
  if (path === "/compare/view")
    return json(COMPARISON ?? comparison([group(query, "before"), group(query, "after")]));
  if (path === "/runs" && method === "GET") return json(list(query));
  if (path === "/runs") return json(start(body, request.headers["idempotency-key"]), 201);
  const [, id, part = "", format] = /^\/runs\/([^/]+)(?:\/([^/]+))?(?:\/([^/]+))?$/.exec(path) ?? [];
  if (!id) throw new Refused(404, "There is nothing here.");
  const run = find(decodeURIComponent(id));
  if (method === "DELETE") {
    runs = runs.filter((other) => other !== run);
    tell();
    return json(undefined, 204);
  }
  if (part === "cancel") {
    if (run.state === "waiting") end(run, "interrupted", "cancelled before it started");
    else run.cancelled = true;
    return json(undefined, 202);
  }
  if (part === "") return json(details(run));
  if (part === "view" && run.outcome === "failed") throw new Refused(404, "Nothing was measured.");
  if (part === "view" && run.state !== "ended") throw new Refused(409, "It has not ended yet.");
  if (part === "view") return json(REPORT ?? view(run));
  if (part === "export" || part === "events") {
    answer.writeHead(200, {
      "Content-Type": "application/octet-stream",
      "Content-Disposition": `attachment; filename="linerate-${run.id}.${format ?? "jsonl"}"`,
    });
    return answer.end(`${JSON.stringify(result(run))}\n`);
  }
  if (part === "live") {
    const snapshot = () => send(answer, "snapshot", { frame: frame(run), series: run.series }, run.seq);
    if (run.state !== "ended") return follow(answer, run.watchers, snapshot);
    answer.writeHead(200, { "Content-Type": "text/event-stream" });
    snapshot();
    send(answer, "end", { outcome: run.outcome }, run.seq);
    return answer.end();
  }
  throw new Refused(404, "There is nothing here.");
}

const ASSETS = {
  "/assets/web.js": "text/javascript",
  "/assets/web.css": "text/css",
  "/assets/worker.js": "text/javascript",
};

const server = createServer(async (request, answer) => {
  const { pathname, searchParams } = new URL(request.url, "http://localhost");
  answer.setHeader("Content-Security-Policy", POLICY);
  answer.setHeader("X-Content-Type-Options", "nosniff");
  answer.setHeader("Cross-Origin-Opener-Policy", "same-origin");
  answer.setHeader("Cross-Origin-Embedder-Policy", "require-corp");
  answer.setHeader("Cross-Origin-Resource-Policy", "same-origin");
  try {
    if (pathname.startsWith("/api/v1/"))
      return await api(request, answer, pathname.slice("/api/v1".length), searchParams);
    if (ASSETS[pathname]) {
      answer.writeHead(200, { "Content-Type": ASSETS[pathname] });
      return answer.end(
        readFileSync(new URL(`../dist/${pathname.slice("/assets/".length)}`, import.meta.url)),
      );
    }
    answer.writeHead(/^\/(runs\/[^/]+|history|compare|kiosk|labs(\/[^/]+)?)?$/.test(pathname) ? 200 : 404, {
      "Content-Type": "text/html",
    });
    answer.end(SHELL);
  } catch (error) {
    const problem = error.problem ?? { title: String(error), status: 500, detail: String(error) };
    answer.writeHead(problem.status, { "Content-Type": "application/problem+json" });
    answer.end(JSON.stringify(problem));
  }
});

past(220, "lund-2", { name: "before", test: { traffic: { duration_ns: 10e9 } } });
past(100, "lund-2", { name: "before", test: { traffic: { duration_ns: 10e9 } } });
past(50, "[2001:db8::7]:5201", { test: { traffic: { rate_bps: 1e8, udp: true, upload: true } } });
past(
  30,
  "nowhere",
  {},
  "failed",
  "connecting to nowhere: there is no host of this name; check the name, or give an address",
);
past(5, "lund-2", {
  name: "after",
  notes: { cable: "blue" },
  test: { traffic: { streams: 4 }, socket: { congestion: "bbr", mss_bytes: 1400 } },
});
past(2, "this host", {}, "interrupted", "stopped by the user");
past(1, "lund-2", { name: "after", test: { traffic: { duration_ns: 10e9 } } });
server.listen(PORT, () => console.log(`http://localhost:${server.address().port}/`));
if (BROWSER !== undefined)
  measuringPort(BROWSER, {
    isBusy: () => runs.some((run) => run.state === "running"),
    archive: (flows, streams) => {
      const run = create("a browser", { test: { traffic: { streams } } });
      run.flows = flows.map(({ direction, seconds }, flow) => ({
        flow,
        name: direction,
        direction,
        transport: "tcp",
        streams,
        state: "ended",
        elapsed_seconds: seconds,
        of_seconds: seconds,
      }));
      run.series = flows.map(({ at_seconds, bitrate_bps }, flow) => ({
        flow,
        at_seconds,
        bitrate_bps,
        srtt_ns: at_seconds.map(() => null),
        retransmits: at_seconds.map(() => null),
      }));
      Object.assign(run, { state: "ended", outcome: "completed", frame: { state: "ended", at_seconds: 0 } });
      tell();
      return run.id;
    },
  });
