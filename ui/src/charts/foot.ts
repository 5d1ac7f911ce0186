// Ticks at the foot of a plot: moments at which something happened, such as a retransmission.

import type uPlot from "uplot";
import type { Ticks } from "../page";
import type { Theme } from "./theme";

/** Height of a tick, in CSS pixels. */
const HEIGHT = 12;

export function foot(current: () => Ticks[], theme: Theme): uPlot.Plugin {
  return {
    hooks: {
      draw: (plot) => {
        const { ctx, bbox } = plot;
        const bottom = bbox.top + bbox.height;
        ctx.save();
        ctx.lineWidth = 2 * devicePixelRatio;
        // The line drawn last may have been a dashed one.
        ctx.setLineDash([]);
        for (const { at, hue } of current()) {
          ctx.strokeStyle = hue ? theme.hues[hue] : theme.text;
          for (const x of at) {
            const across = plot.valToPos(x, "x", true);
            if (across < bbox.left || across > bbox.left + bbox.width) continue;
            ctx.beginPath();
            ctx.moveTo(across, bottom - HEIGHT * devicePixelRatio);
            ctx.lineTo(across, bottom);
            ctx.stroke();
          }
        }
        ctx.restore();
      },
    },
  };
}
