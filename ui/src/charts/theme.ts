// Colours and dashes of charts, from the style sheet: a line is identified by its dash and its label, not by
// colour alone.

import type { Hue } from "../page";

export interface Theme {
  page: string;
  text: string;
  faint: string;
  grid: string;
  caveat: string;
  lines: string[];
  hues: Record<Hue, string>;
}

const DASHES: number[][] = [[], [7, 4], [2, 3], [10, 3, 2, 3], [14, 4], [4, 2, 1, 2]];

/** The dash pattern of the line with this index; the first is solid. */
export function dash(number: number): number[] {
  return DASHES[number % DASHES.length] ?? [];
}

/** Patterns that no line of {@link dash} has. */
export const LEVEL_DASH = [6, 6];
export const COMPUTED_DASH = [3, 3];

/** The current colours. */
export function theme(element: Element): Theme {
  const style = getComputedStyle(element);
  const value = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return {
    page: value("page"),
    text: value("text"),
    faint: value("faint"),
    grid: value("grid"),
    caveat: value("caveat"),
    lines: [1, 2, 3, 4, 5, 6].map((number) => value(`line-${number}`)),
    hues: { upload: value("upload"), download: value("download"), latency: value("latency") },
  };
}

/** The colour of the line with this index, unless what it shows has one. */
export function colour(theme: Theme, number: number, hue?: Hue): string {
  if (hue) return theme.hues[hue];
  return theme.lines[number % theme.lines.length] ?? theme.text;
}
