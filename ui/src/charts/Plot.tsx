// The only user of uPlot: takes a panel, renders a canvas with a legend.

import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import uPlot from "uplot";
import type { Entry, Panel } from "../page";
import { heading, table } from "./data";
import { type Frame, options } from "./options";

export interface PlotProps {
  panel: Panel;
  frame: Frame;
  catalogue: Map<string, Entry>;
}

export function Plot({ panel, frame, catalogue }: PlotProps) {
  const place = useRef<HTMLDivElement>(null);
  const [low, high] = frame.extent;
  const { columns, data, above } = useMemo(
    () => table(panel, [low, high], catalogue),
    [panel, low, high, catalogue],
  );
  const title = heading(panel, above);
  useLayoutEffect(() => {
    if (!place.current) return;
    const plot = new uPlot(options(panel, columns, frame), data, place.current);
    plot.ctx.canvas.setAttribute("role", "img");
    plot.ctx.canvas.setAttribute(
      "aria-label",
      `${title}: ${panel.lines.map((line) => line.label).join(", ")}`,
    );
    const labels = place.current.querySelectorAll<HTMLElement>(".u-legend .u-series");
    columns.forEach((column, at) => {
      const label = labels[at + 1];
      if (label && column.help) label.title = column.help;
      // The ends of an interval are drawn as an area; their legend entries would only repeat the label.
      if (label && (column.role === "low" || column.role === "high")) label.hidden = true;
    });
    return () => plot.destroy();
  }, [panel, columns, data, frame, title]);
  return (
    <div class="panel">
      <h4>{title}</h4>
      <div ref={place} />
    </div>
  );
}
