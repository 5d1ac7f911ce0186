// The uPlot options of a panel.

import uPlot from "uplot";
import type { Axis, Band, Cells, Panel, Ticks } from "../page";
import { inUnit, tick } from "../units";
import { bands, ROW } from "./bands";
import { heat, rowsOf } from "./cells";
import { type Column, nearest, UNITS } from "./data";
import { foot } from "./foot";
import { hasNumbers, ticks, word } from "./marks";
import { COMPUTED_DASH, colour, dash, LEVEL_DASH, type Theme } from "./theme";
import { whiskers } from "./whiskers";

export interface Frame {
  width: number;
  height: number;
  /** Panels with the same key share cursor and zoom. */
  key: string;
  x: Axis;
  bands: Band[];
  /** Whether it is the first panel of its figure, with the labels of the bands, or the last, with the axis. */
  first: boolean;
  last: boolean;
  theme: Theme;
}

const FONT = "12px system-ui, sans-serif";

/** The options of a panel; `current` gives the ticks at its foot when it is drawn, and `cells` its heat map. */
export function options(
  panel: Panel,
  columns: Column[],
  frame: Frame,
  current: () => Ticks[] = () => [],
  cells: () => Cells | undefined = () => undefined,
): uPlot.Options {
  const { theme, x, key } = frame;
  return {
    width: frame.width,
    height: frame.height,
    // The label of the last tick extends beyond the plot.
    padding: [8, 28, 0, 0],
    cursor: {
      sync: { key },
      drag: { x: true, y: false },
      points: { size: 6 },
      dataIdx: (plot, series, at, x) =>
        series === 0 ? at : nearest(plot.data[0], plot.data[series] ?? [], at, x),
    },
    // The markers show the pattern of each line: Plot.tsx draws them.
    legend: { live: true, markers: { width: 0 } },
    scales: {
      x: {
        time: false,
        ...scale(x),
      },
      y: {
        ...scale(panel.y),
        ...(panel.y.log ? {} : { range: (_, low, high) => ends(panel.y, low, high, headroom(frame)) }),
        ...(panel.cells ? { range: [0.5, rowsOf(panel.cells) + 0.5] as [number, number] } : {}),
      },
    },
    axes: [
      {
        ...axis(x, theme),
        ...ticks(x),
        size: frame.last ? 34 : 24,
        ...(frame.last ? labelled(x, theme) : {}),
      },
      { ...axis(panel.y, theme), size: 84 },
    ],
    series: [
      {
        label: "at",
        value: (_, value) => {
          if (value === null) return "";
          const named = word(x, value);
          if (named !== undefined) return named;
          return x.unit === "s" ? `${tick("s", value)} s` : inUnit(x.unit, value);
        },
      },
      ...columns.map((column) => series(column, panel.y.unit, theme)),
    ],
    bands: intervals(columns, theme),
    plugins: [
      ...(panel.cells ? [heat(cells, frame.bands, theme)] : []),
      ...(frame.bands.length > 0 ? [bands(frame.bands, theme, frame.first, !panel.cells)] : []),
      ...(columns.some((column) => column.style === "points" && column.role === "high")
        ? [whiskers(columns, theme)]
        : []),
      ...(panel.ticks ? [foot(current, theme)] : []),
    ],
  };
}

/** Colour and pattern of a column, in the plot and in its legend. */
export function pattern(column: Column, theme: Theme): { stroke: string; dash: number[] } {
  if (column.role === "level") return { stroke: theme.text, dash: LEVEL_DASH };
  const stroke = colour(theme, column.tint, column.hue);
  return { stroke, dash: column.style === "computed" ? COMPUTED_DASH : dash(column.line) };
}

/** Share of a panel's height that the labels of its bands take. */
function headroom(frame: Frame): number {
  return frame.first ? Math.min(0.5, (frame.bands.length * ROW) / (frame.height - 60)) : 0;
}

/** The ends of a linear axis of values. */
function ends(axis: Axis, low: number | null, high: number | null, words: number): [number, number] {
  if (!axis.fitted || low === null || high === null) return [0, above(axis.unit, high, words)];
  const room = (high - low || Math.abs(high) * 0.01 || 1) * 0.1;
  return [low - room, high + room];
}

/** The end of an axis from zero: a little above the highest value, and below the labels. */
function above(unit: string, high: number | null, words: number): number {
  const top = high === null || high <= 0 ? 1 : high;
  return ((unit === "ratio" ? Math.max(1, top) : top) * 1.06) / (1 - words);
}

function scale(axis: Axis): uPlot.Scale {
  return axis.log ? { distr: 3, log: axis.unit === "bytes" ? 2 : 10 } : {};
}

function labelled(x: Axis, theme: Theme): uPlot.Axis {
  return {
    label: x.unit in UNITS ? `${x.label} (${UNITS[x.unit]})` : x.label,
    labelFont: FONT,
    labelSize: 22,
    stroke: theme.text,
  };
}

function axis(axis: Axis, theme: Theme): uPlot.Axis {
  return {
    stroke: theme.text,
    font: FONT,
    grid: { show: hasNumbers(axis), stroke: theme.grid, width: 1 },
    ticks: { show: hasNumbers(axis), stroke: theme.grid, width: 1, size: 5 },
    values: (_, splits) => splits.map((value) => (value === null ? "" : tick(axis.unit, value))),
    ...(axis.unit === "bytes" && !axis.log ? { incrs: powersOfTwo() } : {}),
    ...(axis.unit === "1" && !axis.log ? { incrs: wholeNumbers() } : {}),
  };
}

/** Tick steps of an axis in bytes: 1, 2, 4, … */
export function powersOfTwo(): number[] {
  return Array.from({ length: 50 }, (_, power) => 2 ** power);
}

function wholeNumbers(): number[] {
  return Array.from({ length: 15 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat();
}

function series(column: Column, unit: string, theme: Theme): uPlot.Series {
  const { stroke, dash } = pattern(column, theme);
  const common: uPlot.Series = {
    label: column.label,
    stroke,
    width: 1.5,
    points: { show: false },
    // Before the cursor is in a plot there is nothing to read.
    value: (_, value, __, at) => (at === null ? "" : inUnit(unit, value)),
  };
  if (column.role === "low" || column.role === "high") return { ...common, width: 1, dash: [1, 3] };
  if (column.role === "level") return { ...common, dash, width: 1 };
  const { bars, stepped } = uPlot.paths;
  switch (column.style) {
    case "bars":
      return {
        ...common,
        fill: `${stroke}55`,
        ...(bars ? { paths: bars({ size: [0.8, 24, 1], align: -1 }) } : {}),
      };
    case "steps":
      return { ...common, dash, ...(stepped ? { paths: stepped({ align: -1 }) } : {}) };
    case "steps_after":
      return { ...common, dash, ...(stepped ? { paths: stepped({ align: 1 }) } : {}) };
    case "dots":
      return { ...common, paths: () => null, points: { show: true, size: 7, stroke, fill: `${stroke}66` } };
    case "points":
      return { ...common, dash, points: { show: true, size: 6, stroke, fill: stroke } };
    case "computed":
      return { ...common, width: 1, dash };
    default:
      return { ...common, dash };
  }
}

/** The areas between the ends of intervals. */
function intervals(columns: Column[], theme: Theme): uPlot.Band[] {
  return columns.flatMap((column, at) => {
    const low = columns.findIndex((other) => other.role === "low" && other.line === column.line);
    // The axis is the first column of a plot.
    return column.role === "high" && low >= 0
      ? [
          {
            series: [at + 1, low + 1] as [number, number],
            fill: `${colour(theme, column.tint, column.hue)}33`,
          },
        ]
      : [];
  });
}
