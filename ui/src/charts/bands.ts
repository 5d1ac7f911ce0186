// Bands behind a plot: parts of the axis about which something is to be said, with the words in them.

import type uPlot from "uplot";
import type { Band } from "../page";
import type { Theme } from "./theme";

/** CSS pixels of a line of words. */
export const ROW = 16;

/** Draws the bands; their words only where `words` says so, so that they stand once in a figure. */
export function bands(all: Band[], theme: Theme, words: boolean): uPlot.Plugin {
  return {
    hooks: {
      drawClear: (plot) => {
        const { ctx, bbox } = plot;
        ctx.save();
        ctx.beginPath();
        ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
        ctx.clip();
        let row = 0;
        for (const band of all) {
          const left = band.from === undefined ? bbox.left : plot.valToPos(band.from, "x", true);
          const right = band.to === undefined ? bbox.left + bbox.width : plot.valToPos(band.to, "x", true);
          const whole = band.from === undefined && band.to === undefined;
          const ratio = devicePixelRatio;
          ctx.fillStyle = band.caveat ? theme.caveat : theme.grid;
          // What concerns the whole time is a strip at the top, so that the lines stay readable.
          const strip = ROW * ratio;
          if (whole && words) ctx.fillRect(left, bbox.top + row * strip, right - left, strip - ratio);
          if (!whole) ctx.fillRect(left, bbox.top, right - left, bbox.height);
          if (words) {
            ctx.fillStyle = theme.text;
            ctx.font = `${11 * ratio}px system-ui, sans-serif`;
            ctx.textBaseline = "top";
            ctx.textAlign = "left";
            const text = (band.caveat ? "⚠ " : "") + band.text;
            const room = bbox.left + bbox.width - Math.max(left, bbox.left) - 8 * ratio;
            ctx.fillText(
              shortened(ctx, text, room),
              Math.max(left, bbox.left) + 4 * ratio,
              bbox.top + row * strip + 2 * ratio,
            );
            row += 1;
          }
        }
        ctx.restore();
      },
    },
  };
}

/** As much of `text` as there is room for; all of it stands below the title of the figure. */
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
