// The only user of uPlot: takes a panel, renders a canvas with a legend.

import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import uPlot from "uplot";
import type { Entry, Panel, Ticks } from "../page";
import { type Column, heading, table, zoomOf } from "./data";
import { type Frame, options, pattern } from "./options";
import type { Theme } from "./theme";

export interface PlotProps {
  panel: Panel;
  frame: Frame;
  /** The ends of the shared axis. */
  extent: [number, number];
  catalogue: Map<string, Entry>;
}

const SVG = "http://www.w3.org/2000/svg";

/** A piece of a line as it is drawn, for the legend. */
function marker(column: Column, theme: Theme): SVGElement {
  const { stroke, dash } = pattern(column, theme);
  const image = document.createElementNS(SVG, "svg");
  image.setAttribute("viewBox", "0 0 34 8");
  image.setAttribute("aria-hidden", "true");
  const line = document.createElementNS(SVG, "line");
  const attributes = { x1: "0", x2: "34", y1: "4", y2: "4", stroke, "stroke-width": "2" };
  for (const [name, value] of Object.entries(attributes)) line.setAttribute(name, value);
  line.setAttribute("stroke-dasharray", dash.join(" "));
  if (column.style !== "dots") image.append(line);
  if (column.style === "dots" || column.style === "points") {
    const dot = document.createElementNS(SVG, "circle");
    const places = { cx: "17", cy: "4", r: "3", fill: stroke };
    for (const [name, value] of Object.entries(places)) dot.setAttribute(name, value);
    image.append(dot);
  }
  return image;
}

export function Plot({ panel, frame, extent, catalogue }: PlotProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const ticks = useRef<Ticks[]>([]);
  const [low, high] = extent;
  const { columns, data, above } = useMemo(
    () => table(panel, [low, high], catalogue),
    [panel, low, high, catalogue],
  );
  const title = heading(panel, above);
  ticks.current = panel.ticks ?? [];
  const cells = useRef(panel.cells);
  cells.current = panel.cells;
  // A panel that only has new values keeps its plot, so that a cursor in it stays where it is.
  const shape = JSON.stringify([panel.y, panel.ticks !== undefined, panel.cells !== undefined, columns]);
  useLayoutEffect(() => {
    if (!place.current) return;
    const made = new uPlot(
      options(
        panel,
        columns,
        frame,
        () => ticks.current,
        () => cells.current,
      ),
      data,
      place.current,
    );
    made.ctx.canvas.setAttribute("role", "img");
    const labels = place.current.querySelectorAll<HTMLElement>(".u-legend .u-series");
    columns.forEach((column, at) => {
      const label = labels[at + 1];
      const place = label?.querySelector(".u-marker");
      if (place) place.replaceChildren(marker(column, frame.theme));
      if (label && column.help) label.title = column.help;
      // The ends of an interval are drawn as an area; their legend entries would only repeat the label.
      if (label && (column.role === "low" || column.role === "high")) label.hidden = true;
    });
    plot.current = made;
    return () => made.destroy();
  }, [shape, frame]);
  const drawn = useRef(data);
  useLayoutEffect(() => {
    if (drawn.current !== data && plot.current) {
      // Values that come while somebody looks at a part of the axis do not bring the whole axis back.
      const zoom = zoomOf(plot.current.scales.x, drawn.current[0]);
      plot.current.setData(data, !zoom);
      if (zoom) plot.current.setScale("x", zoom);
    }
    drawn.current = data;
    plot.current?.ctx.canvas.setAttribute(
      "aria-label",
      panel.lines.length > 0 ? `${title}: ${panel.lines.map((line) => line.label).join(", ")}` : title,
    );
  });
  return (
    <div class="panel">
      <h4>{title}</h4>
      <div ref={place} />
    </div>
  );
}
