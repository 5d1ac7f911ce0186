// The script of a report: it draws the charts into the placeholders that the program left for them.

import "uplot/dist/uPlot.min.css";
import "./report.css";
import { render } from "preact";
import { Cdf } from "./charts/Cdf";
import { Sweep } from "./charts/Sweep";
import { TimeSeries } from "./charts/TimeSeries";
import { serve } from "./log";
import { charts } from "./page";
import { addPngButton } from "./pictures";
import { follow, print } from "./sections";
import { addTableControls } from "./tables";

const KINDS = { time: TimeSeries, cdf: Cdf, sweep: Sweep };

function draw(): void {
  const page = charts(document);
  const catalogue = new Map(page.catalogue.map((entry) => [entry.name, entry]));
  for (const figure of document.querySelectorAll<HTMLElement>("figure[data-chart]")) {
    const chart = page.charts[Number(figure.dataset.chart)];
    const place = figure.querySelector(".plot");
    if (!chart || !place) continue;
    const Kind = KINDS[chart.kind];
    place.replaceChildren();
    render(<Kind chart={chart} catalogue={catalogue} />, place);
    addPngButton(figure);
  }
}

draw();
// The logs come after this script in the page, and may take a while to load.
document.addEventListener("DOMContentLoaded", () => serve(document));
addTableControls(document);
follow(document);
addEventListener("beforeprint", () => print(document));
