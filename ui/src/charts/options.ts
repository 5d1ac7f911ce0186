// The uPlot options of a panel.

import uPlot from "uplot";
import type { Axis, Band, Panel } from "../page";
import { inUnit, tick } from "../units";
import { bands, ROW } from "./bands";
import { type Column, UNITS } from "./data";
import { colour, dash, type Theme } from "./theme";

export interface Frame {
  width: number;
  height: number;
  /** Panels with the same key share cursor and zoom. */
  key: string;
  x: Axis;
  extent: [number, number];
  bands: Band[];
  /** Whether it is the first panel of its figure, with the labels of the bands, or the last, with the axis. */
  first: boolean;
  last: boolean;
  theme: Theme;
}

const FONT = "12px system-ui, sans-serif";

export function options(panel: Panel, columns: Column[], frame: Frame): uPlot.Options {
  const { theme, x, key } = frame;
  return {
    width: frame.width,
    height: frame.height,
    // The label of the last tick extends beyond the plot.
    padding: [8, 28, 0, 0],
    cursor: { sync: { key }, drag: { x: true, y: false }, points: { size: 6 } },
    legend: {
      live: true,
      markers: {
        dash: (_, series) => marker(columns[series - 1]),
      },
    },
    scales: {
      x: {
        time: false,
        ...scale(x),
      },
      y: {
        ...scale(panel.y),
        ...(panel.y.log ? {} : { range: (_, __, high) => [0, above(panel.y.unit, high, headroom(frame))] }),
      },
    },
    axes: [
      { ...axis(x, theme), size: frame.last ? 34 : 24, ...(frame.last ? labelled(x, theme) : {}) },
      { ...axis(panel.y, theme), size: 84 },
    ],
    series: [
      {
        label: "at",
        value: (_, value) => (x.unit === "s" ? `${tick("s", value ?? 0)} s` : inUnit(x.unit, value)),
      },
      ...columns.map((column) => series(column, panel.y.unit, theme)),
    ],
    bands: intervals(columns, theme),
    plugins: frame.bands.length > 0 ? [bands(frame.bands, theme, frame.first)] : [],
  };
}

/** The border style that represents a line in the legend. */
function marker(column: Column | undefined): string {
  if (column?.style === "computed") return "dotted";
  return dash(column?.line ?? 0).length > 0 ? "dashed" : "solid";
}

/** Share of a panel's height that the labels of its bands take. */
function headroom(frame: Frame): number {
  return frame.first ? Math.min(0.5, (frame.bands.length * ROW) / (frame.height - 60)) : 0;
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
    label: `${x.label} (${UNITS[x.unit] ?? x.unit})`,
    labelFont: FONT,
    labelSize: 22,
    stroke: theme.text,
  };
}

function axis(axis: Axis, theme: Theme): uPlot.Axis {
  return {
    stroke: theme.text,
    font: FONT,
    grid: { stroke: theme.grid, width: 1 },
    ticks: { stroke: theme.grid, width: 1, size: 5 },
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
  const stroke = colour(theme, column.line);
  const common: uPlot.Series = {
    label: column.label,
    stroke,
    width: 1.5,
    points: { show: false },
    value: (_, value) => inUnit(unit, value),
  };
  const dashed = dash(column.line);
  if (column.role === "low" || column.role === "high") return { ...common, width: 1, dash: [1, 3] };
  if (column.role === "level") return { ...common, stroke: theme.text, dash: [6, 4], width: 1 };
  const { bars, stepped } = uPlot.paths;
  switch (column.style) {
    case "bars":
      return {
        ...common,
        fill: `${stroke}55`,
        ...(bars ? { paths: bars({ size: [0.8, 24, 1], align: -1 }) } : {}),
      };
    case "steps":
      return { ...common, dash: dashed, ...(stepped ? { paths: stepped({ align: -1 }) } : {}) };
    case "points":
      return { ...common, dash: dashed, points: { show: true, size: 6, stroke, fill: stroke } };
    case "computed":
      return { ...common, width: 1, dash: [3, 3] };
    default:
      return { ...common, dash: dashed };
  }
}

/** The areas between the ends of intervals. */
function intervals(columns: Column[], theme: Theme): uPlot.Band[] {
  return columns.flatMap((column, at) => {
    const low = columns.findIndex((other) => other.role === "low" && other.line === column.line);
    // The axis is the first column of a plot.
    return column.role === "high" && low >= 0
      ? [{ series: [at + 1, low + 1] as [number, number], fill: `${colour(theme, column.line)}33` }]
      : [];
  });
}
