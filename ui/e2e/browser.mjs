// The browser of every script here: the system's Chromium, or the one that CHROMIUM names.

import { existsSync } from "node:fs";
import { chromium } from "playwright-core";

const KNOWN = [
  process.env.CHROMIUM,
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
];

/** Starts it. */
export function launch() {
  const executablePath = KNOWN.find((path) => path && existsSync(path));
  if (!executablePath)
    throw new Error("no Chromium found; install the package chromium, or name it in CHROMIUM");
  // Root has no sandbox of its own to offer.
  return chromium.launch({ executablePath, args: process.getuid?.() === 0 ? ["--no-sandbox"] : [] });
}
