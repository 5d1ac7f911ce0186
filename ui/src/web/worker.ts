// The script of the workers of a test from this browser.

import { Measurement, type ToWorker } from "./measuring";

// Workers have a `postMessage` without an address.
const measurement = new Measurement((message) => postMessage(message));
addEventListener("message", ({ data }: MessageEvent<ToWorker>) => measurement.receive(data));
