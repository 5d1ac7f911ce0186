// A run that is watched: a test or a plan, whose streams have messages of the same names.

import { type Frame, fromSnapshot, type Live, type Snapshot, withFrame } from "./live";
import {
  fromPlanSnapshot,
  type LivePlan,
  type PlanFrame,
  type PlanSnapshot,
  withPlanFrame,
} from "./livePlan";

/** What is known of it. */
export type Watched = { live: Live; plan?: undefined } | { plan: LivePlan; live?: undefined };

/** The same after a message of the stream. */
export function withMessage(watched: Watched | undefined, event: string, data: unknown): Watched | undefined {
  if (event === "snapshot") {
    const snapshot = data as Snapshot | PlanSnapshot;
    return "trials" in snapshot
      ? { plan: fromPlanSnapshot(snapshot, watched?.plan) }
      : { live: fromSnapshot(snapshot, watched?.live) };
  }
  if (event !== "frame" || !watched) return watched;
  return watched.plan
    ? { plan: withPlanFrame(watched.plan, data as PlanFrame) }
    : { live: withFrame(watched.live, data as Frame) };
}
