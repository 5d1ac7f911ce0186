// The pages of the web service.

import "uplot/dist/uPlot.min.css";
import "./web.css";
import { render } from "preact";
import { follow, print } from "../sections";
import { App } from "./App";
import { followLinks } from "./router";

const place = document.querySelector("#app");
if (place) render(<App />, place);
followLinks();
follow(document);
addEventListener("beforeprint", () => print(document));
