// A quantity over a swept value, with intervals and the computed curve.

import type { Chart, Entry } from "../page";
import { Figure } from "./Figure";

const HEIGHTS: [number, number] = [260, 200];

export function Sweep({ chart, catalogue }: { chart: Chart; catalogue: Map<string, Entry> }) {
  return <Figure chart={chart} catalogue={catalogue} heights={HEIGHTS} />;
}
