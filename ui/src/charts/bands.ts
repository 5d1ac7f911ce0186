// Bands in the background of a plot: annotated ranges of the axis.

import type uPlot from "uplot";
import type { Band } from "../page";
import type { Theme } from "./theme";

/** Height of a line of text, in CSS pixels. */
export const ROW = 16;

/**
 * Draws the bands, with their labels only if `words`, so that a figure shows them once. Labels are above the
 * grid and below the lines. A band over the whole axis only shades its label, so that the lines stay readable. Without
 * `shades`, only the labels are drawn: in a heat map a shade would be a value.
 */
export function bands(all: Band[], theme: Theme, words: boolean, shades = true): uPlot.Plugin {
  const parts = all.filter((band) => band.from !== undefined || band.to !== undefined);
  return {
    hooks: {
      drawClear: (plot) => shades && inside(plot, () => parts.map((band) => ground(plot, band, theme))),
      drawAxes: (plot) => words && inside(plot, () => all.map((band, row) => say(plot, band, row, theme))),
    },
  };
}

/** Draws clipped to the plot area. */
export function inside(plot: uPlot, draw: () => void): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  draw();
  ctx.restore();
}

function ends(plot: uPlot, band: Band): [number, number] {
  const { left, width } = plot.bbox;
  const from = band.from === undefined ? left : Math.max(left, plot.valToPos(band.from, "x", true));
  return [from, band.to === undefined ? left + width : plot.valToPos(band.to, "x", true)];
}

function ground(plot: uPlot, band: Band, theme: Theme): void {
  const [from, to] = ends(plot, band);
  plot.ctx.fillStyle = band.caveat ? theme.caveat : theme.grid;
  plot.ctx.fillRect(from, plot.bbox.top, to - from, plot.bbox.height);
}

function say(plot: uPlot, band: Band, row: number, theme: Theme): void {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio;
  const [from, to] = ends(plot, band);
  const top = bbox.top + row * ROW * ratio;
  if (band.from === undefined && band.to === undefined) {
    ctx.fillStyle = band.caveat ? theme.caveat : theme.grid;
    ctx.fillRect(from, top, to - from, (ROW - 1) * ratio);
  }
  ctx.font = `${11 * ratio}px system-ui, sans-serif`;
  ctx.textBaseline = "top";
  const text = (band.caveat ? "⚠ " : "") + band.text;
  // A label that does not fit after the start of its band is right-aligned to the end of the plot.
  const right = bbox.left + bbox.width - 4 * ratio;
  const after = from + 4 * ratio + ctx.measureText(text).width <= right;
  ctx.textAlign = after || from === bbox.left ? "left" : "right";
  const room = after || from === bbox.left ? right - from : right - bbox.left;
  const words = shortened(ctx, text, room);
  const start = ctx.textAlign === "left" ? from + 4 * ratio : right;
  if (band.from !== undefined || band.to !== undefined) {
    // No line of the grid strikes the words through.
    const wide = ctx.measureText(words).width;
    ctx.fillStyle = theme.page;
    ctx.fillRect(ctx.textAlign === "left" ? start : start - wide, top, wide, (ROW - 1) * ratio);
  }
  ctx.fillStyle = theme.text;
  ctx.fillText(words, start, top + 2 * ratio);
}

/** As much of `text` as fits; the full text is next to the verdict. */
export function shortened(
  ctx: Pick<CanvasRenderingContext2D, "measureText">,
  text: string,
  room: number,
): string {
  if (ctx.measureText(text).width <= room) return text;
  let length = text.length;
  while (length > 0 && ctx.measureText(`${text.slice(0, length)}…`).width > room) length -= 1;
  return length > 0 ? `${text.slice(0, length)}…` : "";
}
