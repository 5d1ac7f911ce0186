// The data that the program wrote into the page: crates/report/src/html/chart.rs has the other side of these
// types.

/** One metric, as described in the program's catalogue. */
export interface Entry {
  name: string;
  doc: string;
  unit: string;
  kind: string;
  better: string;
  source: string;
}

export interface Axis {
  label: string;
  unit: string;
  log: boolean;
  /** Whether the axis covers only its values: differences between them are what it shows. */
  fitted?: boolean;
  /** How far the axis reaches, from 0, before there are values: what is still being measured has its room. */
  reach?: number;
  /** The places that the axis names, ascending; absent for those of its scale. */
  marks?: Mark[];
}

export interface Mark {
  at: number;
  label: string;
}

export type Style = "line" | "steps" | "steps_after" | "bars" | "dots" | "points" | "computed";

/** What has one colour on every page. */
export type Hue = "upload" | "download" | "latency";

export interface Line {
  label: string;
  metric?: string;
  style: Style;
  hue?: Hue;
  /** Ascending. */
  x: number[];
  /** Null where nothing was measured. */
  y: (number | null)[];
  /** Ends of intervals; absent if there are none. */
  low?: (number | null)[];
  high?: (number | null)[];
  /** Number of values before thinning, which keeps only the smallest and largest of each part. */
  thinned_from?: number;
}

export interface Level {
  label: string;
  value: number;
}

/** Events that are drawn as ticks at the foot of a panel, only by pages that show a run while it is measured. */
export interface Ticks {
  label: string;
  at: number[];
  hue?: Hue;
}

/** A heat map: one row for each stream, the first at the foot. */
export interface Cells {
  label: string;
  unit: string;
  hue: Hue;
  /** Start of the first column and the ends of all. */
  x: number[];
  /** The columns, each with its rows. */
  columns: number[][];
}

export interface Panel {
  y: Axis;
  lines: Line[];
  levels?: Level[];
  ticks?: Ticks[];
  cells?: Cells;
}

export interface Band {
  from?: number;
  to?: number;
  text: string;
  caveat: boolean;
}

export interface Chart {
  kind: "time" | "cdf" | "sweep";
  title: string;
  x: Axis;
  panels: Panel[];
  bands?: Band[];
}

export interface Charts {
  schema: string;
  catalogue: Entry[];
  charts: Chart[];
}

const SCHEMA = "linerate.charts/1";

/** The charts of this page. */
export function charts(root: ParentNode): Charts {
  const text = root.querySelector("#charts")?.textContent;
  if (!text) throw new Error("the page has no charts");
  const found = JSON.parse(text) as Charts;
  if (found.schema !== SCHEMA) throw new Error(`the page has ${found.schema}, this script draws ${SCHEMA}`);
  return found;
}
