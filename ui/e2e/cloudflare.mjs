// The engine of Cloudflare's speed test against a server, unchanged and in Chromium. Prints its results as JSON.
//
//   node e2e/cloudflare.mjs HOST:PORT        CHROMIUM names another browser than the system's

import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { launch } from "./browser.mjs";

const SERVER = process.argv[2];
const ENGINE = new URL("../node_modules/@cloudflare/speedtest/dist/speedtest.js", import.meta.url);

// A page of a public site may not open connections to a private network, so the engine comes from this host.
const files = createServer(async (request, response) => {
  const isEngine = request.url === "/speedtest.js";
  response.setHeader("Content-Type", isEngine ? "text/javascript" : "text/html");
  response.end(isEngine ? await readFile(ENGINE) : "<!doctype html>");
});
await new Promise((listening) => files.listen(0, "127.0.0.1", listening));

const browser = await launch();
try {
  const page = await browser.newPage();
  const urls = new Set();
  page.on("request", (request) => urls.add(new URL(request.url()).host));
  await page.goto(`http://127.0.0.1:${files.address().port}/`);
  const results = await page.evaluate(async (server) => {
    const { default: SpeedTest } = await import("/speedtest.js");
    const engine = new SpeedTest({
      autoStart: false,
      downloadApiUrl: `http://${server}/__down`,
      uploadApiUrl: `http://${server}/__up`,
      logAimApiUrl: null,
      measurements: [
        { type: "latency", numPackets: 5 },
        { type: "download", bytes: 1e5, count: 4 },
        { type: "download", bytes: 1e6, count: 4 },
        { type: "upload", bytes: 1e5, count: 4 },
        { type: "upload", bytes: 1e6, count: 4 },
        { type: "download", bytes: 25e6, count: 2 },
        { type: "upload", bytes: 25e6, count: 2 },
      ],
    });
    const found = { errors: [] };
    engine.onError = (error) => found.errors.push(String(error));
    await new Promise((finished) => {
      engine.onFinish = (results) => {
        found.summary = results.getSummary();
        found.download = results.getDownloadBandwidthPoints();
        found.upload = results.getUploadBandwidthPoints();
        finished();
      };
      engine.play();
      setTimeout(finished, 90_000);
    });
    return found;
  }, SERVER);
  console.log(JSON.stringify({ ...results, hosts: [...urls] }));
} finally {
  await browser.close();
  files.close();
}
