// Cumulative share of probes over their round-trip time.

import type { Chart, Entry } from "../page";
import { Figure } from "./Figure";

const HEIGHTS: [number, number] = [260, 260];

export function Cdf({ chart, catalogue }: { chart: Chart; catalogue: Map<string, Entry> }) {
  return <Figure chart={chart} catalogue={catalogue} heights={HEIGHTS} />;
}
