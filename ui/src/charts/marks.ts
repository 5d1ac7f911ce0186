// An axis that names its places: the values that were measured, also those that are not numbers, such as `default`.

import type uPlot from "uplot";
import type { Axis } from "../page";

/** The unit of an axis that has no numbers. */
const WORDS = "words";

/** Width of a letter of a tick, and of the space between two ticks, in CSS pixels. */
const LETTER = 6.6;
const SPACE = 10;

/** Whether the axis has numbers at all. */
export function hasNumbers(axis: Axis): boolean {
  return axis.unit !== WORDS;
}

/** The name of a place of the axis; on an axis without numbers of the nearest one. */
export function word(axis: Axis, value: number): string | undefined {
  const nearest = hasNumbers(axis) ? value : Math.round(value);
  return axis.marks?.find(({ at }) => at === nearest)?.label;
}

/** The ticks of an axis that names its places. */
export function ticks(axis: Axis): Partial<uPlot.Axis> {
  const marks = axis.marks;
  if (!marks) return {};
  return {
    splits: () => marks.map(({ at }) => at),
    filter: (_, splits) => splits,
    values: (plot) => spaced(marks.map(({ at, label }) => ({ at: plot.valToPos(at, "x"), label }))),
  };
}

/** Labels that do not overlap. The last one, which may be a word, is always among them. */
export function spaced(labels: { at: number; label: string }[]): string[] {
  let left = Number.POSITIVE_INFINITY;
  const shown = [...labels].reverse().map(({ at, label }) => {
    const half = (label.length * LETTER) / 2;
    if (at + half + SPACE > left) return "";
    left = at - half;
    return label;
  });
  return shown.reverse();
}
