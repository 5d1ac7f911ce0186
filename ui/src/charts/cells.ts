// A heat map below the lines of a plot: one row for each stream, one column for each interval.

import type uPlot from "uplot";
import type { Band, Cells } from "../page";
import { inUnit, tick } from "../units";
import { inside } from "./bands";
import type { Theme } from "./theme";

/** Height of a row at most, and of the whole map, in CSS pixels. */
const ROW = 12;
const TALLEST = 320;
const LOWEST = 90;
/** Opacity of the smallest value above 0. */
const FAINTEST = 0.12;

/** Number of rows. */
export const rowsOf = (cells: Cells): number => cells.columns[0]?.length ?? 0;

/** Height of the plot of a map, without its axis. */
export function mapHeight(cells: Cells): number {
  return Math.min(TALLEST, Math.max(LOWEST, rowsOf(cells) * ROW));
}

/** The largest value of a map. */
export function largest(cells: Cells): number {
  let top = 0;
  for (const column of cells.columns) for (const value of column) if (value > top) top = value;
  return top;
}

/** What the map shows, with its scale. */
export function scaleWords(cells: Cells): string {
  const top = largest(cells);
  return top > 0
    ? `${cells.label}, grey 0 to full colour ${inUnit(cells.unit, top)}`
    : `${cells.label}; 0 throughout`;
}

/** The cell at a place: its row from 1, the end of its interval, and its value. */
export function cellAt(
  cells: Cells,
  x: number,
  y: number,
): { row: number; end: number; value: number } | undefined {
  const row = Math.round(y);
  const column = cells.columns.findIndex((_, at) => x >= (cells.x[at] ?? 0) && x < (cells.x[at + 1] ?? 0));
  const value = cells.columns[column]?.[row - 1];
  const end = cells.x[column + 1];
  return value === undefined || end === undefined ? undefined : { row, end, value };
}

/**
 * Draws the map that `current` gives, with the ends of the bands, which the map would cover, and names the cell under
 * the cursor.
 */
export function heat(current: () => Cells | undefined, bands: Band[], theme: Theme): uPlot.Plugin {
  const words = document.createElement("p");
  words.className = "faint cell";
  let drawn: { cells: Cells; picture: HTMLCanvasElement } | undefined;
  // Also when something new is drawn under a cursor that rests.
  const say = (plot: uPlot) => {
    const { left = -1, top = -1 } = plot.cursor;
    const cells = current();
    const cell =
      cells && left >= 0 && top >= 0
        ? cellAt(cells, plot.posToVal(left, "x"), plot.posToVal(top, "y"))
        : undefined;
    words.textContent = cell
      ? `stream ${cell.row}, until ${tick("s", cell.end)} s: ${inUnit(cells?.unit ?? "", cell.value)}`
      : "\u00a0";
  };
  return {
    hooks: {
      init: (plot) => {
        words.textContent = "\u00a0";
        plot.root.append(words);
      },
      drawAxes: (plot) => {
        const cells = current();
        if (!cells) return;
        if (drawn?.cells !== cells) drawn = { cells, picture: picture(cells, theme) };
        draw(plot, cells, drawn.picture);
        for (const { from, to } of bands)
          for (const end of [from, to]) if (end !== undefined) mark(plot, end, theme);
      },
      draw: say,
      setCursor: say,
    },
  };
}

/** A pixel for each cell, the last row on top. Where something was counted, nothing is grey; a gap is not. */
function picture(cells: Cells, theme: Theme): HTMLCanvasElement {
  const made = document.createElement("canvas");
  const [wide, high] = [cells.columns.length, rowsOf(cells)];
  made.width = Math.max(1, wide);
  made.height = Math.max(1, high);
  const context = made.getContext("2d");
  if (!context) return made;
  const [ground, full] = [rgb(context, theme.grid), rgb(context, theme.hues[cells.hue])];
  const page = rgb(context, theme.page);
  const image = context.createImageData(made.width, made.height);
  const top = largest(cells) || 1;
  cells.columns.forEach((column, x) => {
    column.forEach((value, row) => {
      const share = FAINTEST + (1 - FAINTEST) * Math.min(1, value / top);
      const mixed = (part: number) => (page[part] ?? 0) * (1 - share) + (full[part] ?? 0) * share;
      const colour = value > 0 ? [mixed(0), mixed(1), mixed(2)] : ground;
      image.data.set([...colour, 255], ((high - 1 - row) * made.width + x) * 4);
    });
  });
  context.putImageData(image, 0, 0);
  return made;
}

/** Red, green and blue of a colour of the style sheet. */
function rgb(context: CanvasRenderingContext2D, colour: string): number[] {
  context.fillStyle = colour;
  context.fillRect(0, 0, 1, 1);
  return [...context.getImageData(0, 0, 1, 1).data.slice(0, 3)];
}

function draw(plot: uPlot, cells: Cells, picture: HTMLCanvasElement): void {
  const { ctx } = plot;
  const rows = rowsOf(cells);
  const across = (x: number) => Math.round(plot.valToPos(x, "x", true));
  const [head, foot] = [plot.valToPos(rows + 0.5, "y", true), plot.valToPos(0.5, "y", true)];
  inside(plot, () => {
    ctx.imageSmoothingEnabled = false;
    cells.columns.forEach((_, at) => {
      const [from, to] = [across(cells.x[at] ?? 0), across(cells.x[at + 1] ?? 0)];
      if (to > from) ctx.drawImage(picture, at, 0, 1, rows, from, head, to - from, foot - head);
    });
  });
}

/** The end of a band. */
function mark(plot: uPlot, at: number, theme: Theme): void {
  const { ctx, bbox } = plot;
  inside(plot, () => {
    ctx.fillStyle = theme.text;
    ctx.fillRect(Math.round(plot.valToPos(at, "x", true)), bbox.top, devicePixelRatio, bbox.height);
  });
}
