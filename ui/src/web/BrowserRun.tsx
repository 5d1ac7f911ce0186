// A test from this browser to this host while it is measured. Its result is on the page of the run.

import { useEffect, useRef, useState } from "preact/hooks";
import { getTicket } from "./api";
import { WhoCounts } from "./BrowserFields";
import type { BrowserSettings } from "./browserForm";
import { type BrowserTest, RETRY_MS, startBrowserTest } from "./browserTest";
import { LiveRun } from "./Live";
import { stage } from "./live";
import { type BrowserPort, useVisitor } from "./load";
import { navigate, runPath } from "./router";
import { clock, plural } from "./words";

interface BrowserRunProps {
  at: BrowserPort;
  settings: BrowserSettings;
  /** Back to the form. */
  onLeave: () => void;
}

export function BrowserRun({ at, settings, onLeave }: BrowserRunProps) {
  const { session } = useVisitor();
  const [test, setTest] = useState<BrowserTest>();
  const [attempt, setAttempt] = useState(1);
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(
    () => startBrowserTest({ name: location.hostname, ...at, ticket: getTicket }, settings, setTest),
    [at.port, at.encrypted, settings, attempt],
  );
  // The button that had the focus is gone.
  useEffect(() => heading.current?.focus({ preventScroll: true }), [attempt]);
  const run = test?.state === "finished" ? test.run : undefined;
  useEffect(() => {
    if (run) navigate(runPath(run));
  }, [run]);
  const now = test ? said(test) : "";
  const title = `this browser → ${session.host}`;
  useEffect(() => {
    document.title = `${now ? `${now}: ` : ""}${title} · linerate`;
  }, [now, title]);
  const over = test?.state === "finished" || test?.state === "failed";
  return (
    <div class="run-page">
      <p class="unseen" role="status" aria-live="polite">
        {now}
      </p>
      <div class="headline">
        <h1 ref={heading} tabIndex={-1}>
          {title}
        </h1>
        {!over && (
          <button type="button" onClick={onLeave}>
            Cancel
          </button>
        )}
      </div>
      {test && <Notice test={test} host={session.host} />}
      {over && !run && (
        <p class="actions">
          <button type="button" class="primary" onClick={() => setAttempt(attempt + 1)}>
            Test again
          </button>
          <button type="button" onClick={onLeave}>
            Change the settings
          </button>
        </p>
      )}
      {test && test.state !== "busy" && (test.state !== "failed" || test.live.series.length > 0) && (
        <LiveRun live={test.live} fromBrowser />
      )}
      {test?.wasHidden && (
        <p class="warn">
          ⚠ This page was in the background for a part of the test. Browsers slow such pages down: the rate
          may be too low.
        </p>
      )}
      <WhoCounts host={session.host} />
    </div>
  );
}

/** What the test is doing; only a change of it is read aloud. */
function said(test: BrowserTest): string {
  if (test.state === "busy") return "The host is busy";
  if (test.state === "failed") return "The test failed";
  if (test.state === "finished") return "The test has ended";
  return test.silentSince ? "No news from the host" : stage(test.live.frame);
}

/** What is unusual. */
function Notice({ test, host }: { test: BrowserTest; host: string }) {
  const { state, why, run, silentSince, retryMs = RETRY_MS } = test;
  if (state === "busy")
    return (
      <div class="verdict">
        <p class="statement">
          {host} is busy{why ? `: ${why}` : ""}.
        </p>
        <p>It is asked again every {plural(retryMs / 1000, "second")}, and the test then starts by itself.</p>
      </div>
    );
  if (state === "failed")
    return (
      <div class="verdict bad">
        <h2>The test failed</h2>
        <p class="statement">{why}</p>
      </div>
    );
  if (state === "finished" && !run)
    return (
      <div class="verdict">
        <p class="statement">The test has ended. {host} has not archived it: the figures are only here.</p>
      </div>
    );
  if (silentSince)
    return (
      <p class="banner lost">
        No news from {host} since {clock(silentSince)}.
      </p>
    );
  return null;
}
