// The interval of each point, as a line through it: an area has no width at a point without neighbours.

import type uPlot from "uplot";
import type { Column } from "./data";
import { colour, type Theme } from "./theme";

export function whiskers(columns: Column[], theme: Theme): uPlot.Plugin {
  return {
    hooks: {
      draw: (plot) => {
        const { ctx } = plot;
        ctx.save();
        ctx.lineWidth = devicePixelRatio;
        columns.forEach((column, at) => {
          if (column.style !== "points" || column.role !== "high") return;
          const low = columns.findIndex((other) => other.role === "low" && other.line === column.line);
          ctx.strokeStyle = colour(theme, column.tint, column.hue);
          plot.data[0].forEach((x, place) => {
            const ends = [plot.data[low + 1]?.[place], plot.data[at + 1]?.[place]];
            if (typeof ends[0] !== "number" || typeof ends[1] !== "number") return;
            const [bottom, top] = ends.map((end) => plot.valToPos(end as number, "y", true));
            const across = Math.round(plot.valToPos(x, "x", true));
            ctx.beginPath();
            ctx.moveTo(across, bottom ?? 0);
            ctx.lineTo(across, top ?? 0);
            ctx.stroke();
          });
        });
        ctx.restore();
      },
    },
  };
}
