// A plan while it is carried out: messages of its stream folded into what the page shows.

import type { Direction } from "./api";

export interface PlanFrame {
  done: number;
  of: number;
  left_seconds: number;
  /** The point and the repeat; undefined before the first trial and between two. */
  trial?: string;
  flows: PlanFlowFrame[];
}

export interface PlanFlowFrame {
  name: string;
  bitrate_bps?: number;
  /** In the queue of a host that measures for others. */
  position?: number;
}

export interface EndedTrial {
  number: number;
  position: number;
  of: number;
  trial: string;
  result: string;
  measured: boolean;
  goodputs: { flow: string; direction: Direction; bitrate_bps: number }[];
}

export interface PlanSnapshot {
  frame: PlanFrame;
  trials: EndedTrial[];
  remarks: string[];
  /** The emulated network in which it measures, while that is up. */
  lab?: string;
}

/** What is known of a plan that runs; the newest trial is first. */
export interface LivePlan extends PlanSnapshot {}

/** Trials that a page lists at most: a plan may have very many. */
export const MAX_TRIALS = 1000;

/** A snapshot has the last trials only: those that were seen before stay, unless some between them were not seen. */
export function fromPlanSnapshot(snapshot: PlanSnapshot, before?: LivePlan): LivePlan {
  const { trials } = snapshot;
  const oldest = trials[0]?.number ?? Number.POSITIVE_INFINITY;
  const earlier = (before?.trials ?? []).filter(({ number }) => number < oldest);
  const isGap = trials.length > 0 && earlier[0] !== undefined && earlier[0].number < oldest - 1;
  return { ...snapshot, trials: [...[...trials].reverse(), ...(isGap ? [] : earlier)].slice(0, MAX_TRIALS) };
}

/** The next frame. */
export const withPlanFrame = (plan: LivePlan, frame: PlanFrame): LivePlan => ({ ...plan, frame });

/** What happens now. */
export function planStage({ trial, done, of }: PlanFrame): string {
  if (trial !== undefined) return `Trial ${Math.min(done + 1, of)} of ${of}`;
  return done > 0 ? `${done} of ${of} trials done` : "Preparing";
}

/** What a flow does. */
export function flowStage({ bitrate_bps, position }: PlanFlowFrame): string {
  if (position !== undefined) return `waits at a busy host, number ${position} in its queue`;
  return bitrate_bps === undefined ? "does not run now" : "now";
}

/** Trials that ended before this page was opened and are not in its list. */
export const unseen = ({ trials }: LivePlan): number => (trials.at(-1)?.number ?? 1) - 1;

/** The length of a bar for a rate, between 0 and 1: the fastest trial in the list has the whole length. */
export function barOf(trials: EndedTrial[]): (bps: number) => number {
  const fastest = Math.max(0, ...trials.flatMap(({ goodputs }) => goodputs.map((one) => one.bitrate_bps)));
  return (bps) => (fastest > 0 ? bps / fastest : 0);
}
