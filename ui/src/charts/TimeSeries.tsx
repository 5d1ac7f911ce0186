// Panels over time: rate, retransmissions, windows, round-trip time, queues and CPUs.

import type { Chart, Entry } from "../page";
import { Figure } from "./Figure";

const HEIGHTS: [number, number] = [200, 130];

export function TimeSeries({ chart, catalogue }: { chart: Chart; catalogue: Map<string, Entry> }) {
  return <Figure chart={chart} catalogue={catalogue} heights={HEIGHTS} />;
}
