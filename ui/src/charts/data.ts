// From the lines of a panel to the aligned columns that uPlot draws.

import uPlot from "uplot";
import type { Axis, Band, Entry, Hue, Level, Line, Panel } from "../page";
import { inUnit } from "../units";
import { scaleWords } from "./cells";

/** A column of a plot, other than its axis. */
export interface Column {
  label: string;
  /** Longer text, for the tooltip of a legend entry. */
  help?: string;
  /** Index of its line, which determines dash and, without a hue, colour. */
  line: number;
  hue?: Hue;
  /** Index of the colour of a line without a hue. */
  tint: number;
  role: "value" | "low" | "high" | "level";
  style: Line["style"];
}

export interface Table {
  columns: Column[];
  data: uPlot.AlignedData;
  /** Levels too high to be drawn with the rest. */
  above: Level[];
}

/** A level above every value by this factor is printed, not drawn: it would flatten the values. */
const FAR = 3;

/** Colours of lines in a panel in which others have a hue: none of these is a hue. */
const BESIDE_HUES = [2, 5, 4];

/** The columns of a panel over `extent`, the ends of the shared axis. */
export function table(panel: Panel, extent: [number, number], catalogue: Map<string, Entry>): Table {
  const columns: Column[] = [];
  const tables: uPlot.AlignedData[] = [];
  const add = (column: Column, x: number[], y: (number | null)[]) => {
    columns.push(column);
    tables.push([x, panel.y.log ? y.map((value) => (value !== null && value > 0 ? value : null)) : y]);
  };
  // A computed curve has the colour of the measured one that it belongs to: the first that of the first, and so
  // on.
  const measured = panel.lines.filter((line) => line.style !== "computed").length;
  const hued = panel.lines.some((line) => line.hue);
  let plain = 0;
  panel.lines.forEach((line, place) => {
    const number = line.style === "computed" ? place - measured : place;
    const { label, style } = line;
    const help = line.metric === undefined ? undefined : catalogue.get(line.metric)?.doc.trim();
    const tint = hued ? (BESIDE_HUES[plain % BESIDE_HUES.length] ?? 0) : number;
    if (!line.hue) plain += 1;
    const common = { style, line: number, tint, ...(line.hue ? { hue: line.hue } : {}) };
    add({ label, ...common, role: "value", ...(help ? { help } : {}) }, line.x, line.y);
    if (line.high) add({ label: `${label}, high`, ...common, role: "high" }, line.x, line.high);
    if (line.low) add({ label: `${label}, low`, ...common, role: "low" }, line.x, line.low);
  });
  const top = highest(panel.lines);
  const above: Level[] = [];
  for (const level of panel.levels ?? []) {
    if (level.value > top * FAR) above.push(level);
    else {
      const column: Column = {
        label: level.label,
        style: "computed",
        line: columns.length,
        tint: 0,
        role: "level",
      };
      add(column, extent, [level.value, level.value]);
    }
  }
  // Last columns without values stretch every panel of a figure over the same axis, and let a cursor stop at the
  // columns of a heat map; they are not drawn.
  const places = [extent, ...(panel.cells ? [panel.cells.x] : [])];
  const data = uPlot.join([...tables, ...places.map((x): uPlot.AlignedData => [x, x.map(() => null)])]);
  return { columns, data: data.slice(0, data.length - places.length) as uPlot.AlignedData, above };
}

function highest(lines: Line[]): number {
  let top = 0;
  for (const { y } of lines) for (const value of y) if (value !== null && value > top) top = value;
  return top;
}

/**
 * The position of the value that a cursor at column `at` reads: that of `values` nearest to `x`. Lines have values
 * at different times, and each of them has a value under the cursor between its first and its last one.
 */
export function nearest(
  xs: ArrayLike<number>,
  values: ArrayLike<number | null | undefined>,
  at: number,
  x: number,
): number | null {
  const known = (place: number) => values[place] !== null && values[place] !== undefined;
  let [low, high] = [at, at];
  while (low >= 0 && !known(low)) low -= 1;
  while (high < xs.length && !known(high)) high += 1;
  if (low < 0 && high >= xs.length) return null;
  if (low < 0) return high;
  if (high >= xs.length) return low;
  return x - (xs[low] ?? 0) <= (xs[high] ?? 0) - x ? low : high;
}

/** The ends of the shared axis of a figure: of all of its lines and bands. */
export function extent(panels: Panel[], bands: Band[], axis: Axis): [number, number] {
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  const see = (x: number | undefined) => {
    if (x === undefined || (axis.log && x <= 0)) return;
    low = Math.min(low, x);
    high = Math.max(high, x);
  };
  for (const { lines, cells } of panels) {
    for (const { x } of cells ? [...lines, cells] : lines) {
      see(axis.log ? x.find((value) => value > 0) : x[0]);
      see(x[x.length - 1]);
    }
  }
  for (const band of bands) {
    see(band.from);
    see(band.to);
  }
  if (axis.reach !== undefined) {
    see(0);
    see(axis.reach);
  }
  if (low > high) return axis.log ? [1, 10] : [0, 1];
  if (!axis.log) return low === high ? [low - 0.5, low + 0.5] : [low, high];
  // The ticks of a logarithmic axis start at its end, so that has to be a round number.
  const step = (value: number) =>
    axis.unit === "bytes" ? 2 ** Math.floor(Math.log2(value)) : 10 ** Math.floor(Math.log10(value));
  const ends = [Math.floor(low / step(low)) * step(low), Math.ceil(high / step(high)) * step(high)] as const;
  return ends[0] === ends[1] ? [ends[0] / 2, ends[1] * 2] : [...ends];
}

/** The heading of a panel: its quantity, its unit, and the levels too high to be drawn. */
export function heading(panel: Panel, above: Level[]): string {
  if (panel.cells) return scaleWords(panel.cells);
  const unit = UNITS[panel.y.unit] ?? panel.y.unit;
  const over = above.map(
    (level) => `; ${level.label} ${inUnit(panel.y.unit, level.value)} is above the diagram`,
  );
  const any = panel.lines.some(({ y }) => y.some((value) => value !== null));
  const none = any && highest(panel.lines) === 0 ? "; 0 throughout" : "";
  return `${panel.y.label}${unit ? ` (${unit})` : ""}${none}${over.join("")}`;
}

/** Units as an axis labels them. */
export const UNITS: Record<string, string> = {
  "bit/s": "b/s",
  bytes: "bytes",
  octets: "bytes",
  ns: "seconds",
  ratio: "%",
  "1": "count",
  s: "s",
};

/** The part of an axis that a user has chosen, of a plot of these places; undefined if all of them are in it. */
export function zoomOf(
  scale: { min?: number | null; max?: number | null } | undefined,
  places: ArrayLike<number>,
): { min: number; max: number } | undefined {
  const { min, max } = scale ?? {};
  const [first, last] = [places[0], places[places.length - 1]];
  if (min == null || max == null || first === undefined || last === undefined) return undefined;
  // Of an axis that moves on, the part may have passed.
  if (max <= first) return undefined;
  return min > first || max < last ? { min, max } : undefined;
}
