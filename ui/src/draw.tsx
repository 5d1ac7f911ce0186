// Draws charts into the placeholders that the program left for them in a page.

import { render } from "preact";
import { Cdf } from "./charts/Cdf";
import { Sweep } from "./charts/Sweep";
import { TimeSeries } from "./charts/TimeSeries";
import type { Charts } from "./page";
import { addPngButton } from "./pictures";

const KINDS = { time: TimeSeries, cdf: Cdf, sweep: Sweep };

/** Draws all charts below `root`; the returned function removes them. */
export function draw(root: ParentNode, page: Charts): () => void {
  const catalogue = new Map(page.catalogue.map((entry) => [entry.name, entry]));
  const places: Element[] = [];
  for (const figure of root.querySelectorAll<HTMLElement>("figure[data-chart]")) {
    const chart = page.charts[Number(figure.dataset.chart)];
    const place = figure.querySelector(".plot");
    if (!chart || !place) continue;
    const Kind = KINDS[chart.kind];
    place.replaceChildren();
    render(<Kind chart={chart} catalogue={catalogue} />, place);
    addPngButton(figure);
    places.push(place);
  }
  return () => {
    for (const place of places) render(null, place);
  };
}
