// A button for each drawn figure that saves it as a PNG: its title, its panels and their legends on one picture.

import { fileName, save, saveButton } from "./save";

const MARGIN = 16;
const LINE = 20;
const MARKER = 34;

/** What a panel contributes to the picture. */
interface DrawnPanel {
  heading: string;
  canvas: HTMLCanvasElement;
  legend: { label: string; stroke: string; dash: number[] }[];
}

function panels(figure: Element): DrawnPanel[] {
  return [...figure.querySelectorAll(".panel")].flatMap((panel) => {
    const canvas = panel.querySelector("canvas");
    if (!canvas) return [];
    const entries = [...panel.querySelectorAll<HTMLElement>(".u-legend .u-series")].slice(1);
    const legend = entries
      .filter((entry) => !entry.hidden)
      .map((entry) => {
        const line = entry.querySelector(".u-marker svg > *");
        const dash = line?.getAttribute("stroke-dasharray")?.split(" ").filter(Boolean).map(Number) ?? [];
        const stroke = line?.getAttribute("stroke") ?? line?.getAttribute("fill") ?? "";
        return { label: entry.querySelector(".u-label")?.textContent ?? "", stroke, dash };
      });
    return [{ heading: panel.querySelector("h4")?.textContent ?? "", canvas, legend }];
  });
}

/** The rows of a legend: the number of entries in each. */
export function legendRows(widths: number[], room: number): number[] {
  const rows: number[] = [];
  let left = -1;
  for (const width of widths) {
    if (left >= width && rows.length > 0) rows[rows.length - 1] = (rows.at(-1) ?? 0) + 1;
    else {
      rows.push(1);
      left = room;
    }
    left -= width;
  }
  return rows;
}

/** The figure as one picture, at the resolution at which the page drew it. */
function picture(figure: Element): HTMLCanvasElement | null {
  const drawn = panels(figure);
  if (drawn.length === 0) return null;
  const title = figure.querySelector("figcaption")?.firstChild?.textContent ?? "";
  const ratio = devicePixelRatio;
  const style = getComputedStyle(document.body);
  const whole = document.createElement("canvas");
  const width = Math.max(...drawn.map(({ canvas }) => canvas.width / ratio));
  const context = whole.getContext("2d");
  if (!context) return null;
  const font = (weight: number) => `${weight} 13px ${style.fontFamily}`;
  context.font = font(400);
  const legends = drawn.map(({ legend }) => {
    const widths = legend.map(({ label }) => MARKER + 8 + context.measureText(label).width + MARGIN);
    return { widths, rows: legendRows(widths, width) };
  });
  const height =
    LINE * 1.5 +
    drawn.reduce(
      (sum, { canvas }, at) => sum + canvas.height / ratio + LINE * (1.5 + (legends[at]?.rows.length ?? 0)),
      0,
    );
  whole.width = Math.ceil((width + 2 * MARGIN) * ratio);
  whole.height = Math.ceil((height + 2 * MARGIN) * ratio);
  // A canvas forgets its state when its size changes.
  context.scale(ratio, ratio);
  context.fillStyle = style.backgroundColor;
  context.fillRect(0, 0, whole.width, whole.height);
  context.translate(MARGIN, MARGIN);
  context.textBaseline = "top";
  const write = (words: string, weight: number, x: number, y: number) => {
    context.font = font(weight);
    context.fillStyle = style.color;
    context.fillText(words, x, y);
  };
  write(title, 600, 0, 0);
  let top = LINE * 1.5;
  drawn.forEach(({ heading, canvas, legend }, at) => {
    write(heading, 600, 0, top);
    top += LINE;
    context.drawImage(canvas, 0, top, canvas.width / ratio, canvas.height / ratio);
    top += canvas.height / ratio;
    const { widths, rows } = legends[at] ?? { widths: [], rows: [] };
    let entry = 0;
    for (const count of rows) {
      let left = 0;
      for (const { label, stroke, dash } of legend.slice(entry, entry + count)) {
        context.strokeStyle = stroke;
        context.lineWidth = 2;
        context.setLineDash(dash);
        context.beginPath();
        context.moveTo(left, top + LINE / 2);
        context.lineTo(left + MARKER, top + LINE / 2);
        context.stroke();
        write(label, 400, left + MARKER + 8, top + 3);
        left += widths[entry] ?? 0;
        entry += 1;
      }
      top += LINE;
    }
    top += LINE / 2;
  });
  return whole;
}

/** Adds the button of a figure. */
export function addPngButton(figure: HTMLElement): void {
  const title = figure.querySelector("figcaption")?.textContent ?? "chart";
  const make = () => picture(figure)?.toBlob((png) => png && save(png, fileName(title, "png")), "image/png");
  figure
    .querySelector("figcaption")
    ?.append(saveButton("PNG", `Save this chart as a PNG picture: ${title}`, make));
}
