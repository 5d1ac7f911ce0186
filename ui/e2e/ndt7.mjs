// The browser client of M-Lab's ndt7 against a server, unchanged and in Chromium. Prints its results as JSON.
//
//   node e2e/ndt7.mjs HOST:PORT [ws|wss]        CHROMIUM names another browser than the system's

import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { launch } from "./browser.mjs";

const [SERVER, PROTOCOL = "ws"] = process.argv.slice(2);
const PACKAGE = new URL("../node_modules/@m-lab/ndt7/src/", import.meta.url);

// A page of a public site may not open connections to a private network, so the client's files come from this host.
const files = createServer(async (request, response) => {
  const path = new URL(request.url, "http://files").pathname.slice(1);
  const content = path === "" ? '<script src="/ndt7.js"></script>' : await read(path);
  response.setHeader("Content-Type", path === "" ? "text/html" : "text/javascript");
  response.statusCode = content === undefined ? 404 : 200;
  response.end(content);
});
await new Promise((listening) => files.listen(0, "127.0.0.1", listening));

const browser = await launch();
try {
  // A test host has a certificate that nobody has signed.
  const page = await browser.newPage({ ignoreHTTPSErrors: true });
  await page.goto(`http://127.0.0.1:${files.address().port}/`);
  const results = await page.evaluate(
    async ({ server, protocol }) => {
      const found = { server_messages: { download: 0, upload: 0 } };
      const count = (direction) => (message) => {
        if (message.Source === "server") found.server_messages[direction]++;
      };
      const options = {
        userAcceptedDataPolicy: true,
        server,
        protocol,
        downloadworkerfile: "/ndt7-download-worker.js",
        uploadworkerfile: "/ndt7-upload-worker.js",
      };
      found.code = await globalThis.ndt7.test(options, {
        error: (error) => {
          found.error = String(error);
        },
        downloadMeasurement: count("download"),
        uploadMeasurement: count("upload"),
        downloadComplete: (result) => {
          found.download = result;
        },
        uploadComplete: (result) => {
          found.upload = result;
        },
      });
      return found;
    },
    { server: SERVER, protocol: PROTOCOL },
  );
  console.log(JSON.stringify(results));
} finally {
  await browser.close();
  files.close();
}

/** A file of the package; undefined if there is none. */
async function read(path) {
  return readFile(new URL(path, PACKAGE)).catch(() => undefined);
}
