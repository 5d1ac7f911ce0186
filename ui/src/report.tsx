// The script of a report: it draws the charts into the placeholders that the program left for them.

import "uplot/dist/uPlot.min.css";
import "./report.css";
import { draw } from "./draw";
import { serve } from "./log";
import { charts } from "./page";
import { follow, print } from "./sections";
import { addTableControls } from "./tables";

draw(document, charts(document));
// The logs come after this script in the page, and may take a while to load.
document.addEventListener("DOMContentLoaded", () => serve(document));
addTableControls(document);
follow(document);
addEventListener("beforeprint", () => print(document));
