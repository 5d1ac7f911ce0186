// A figure: its panels, one below the other, on one shared axis. It is drawn when it comes near the viewport,
// and again when the page width or the colour scheme changes, or the page is printed.

import { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Chart, Entry } from "../page";
import { ROW } from "./bands";
import { mapHeight } from "./cells";
import { extent } from "./data";
import { Plot } from "./Plot";
import { type Theme, theme } from "./theme";

export interface FigureProps {
  chart: Chart;
  catalogue: Map<string, Entry>;
  /** Heights of the first panel and of those below it, in pixels. */
  heights: [number, number];
}

/** Width of a chart on paper, in CSS pixels: A4 and Letter without their margins. */
const PAPER = 640;

/** Height of the heading and of the legend of a panel. */
const WORDS = 56;

export function Figure({ chart, catalogue, heights }: FigureProps) {
  const place = useRef<HTMLDivElement>(null);
  const key = useId();
  const paper = useMedia("print");
  const printing = useAsked() || paper;
  const dark = useMedia("(prefers-color-scheme: dark)");
  const near = useNear(place);
  const wide = useWidth(place);
  const [colours, setColours] = useState<Theme>();
  // The colours of the style sheet depend on these two.
  useLayoutEffect(() => {
    if (place.current) setColours(theme(place.current));
  }, [dark, paper]);
  const width = printing ? Math.min(wide || PAPER, PAPER) : wide;
  const ends = useMemo(() => extent(chart.panels, chart.bands ?? [], chart.x), [chart]);
  // New values do not make a new frame: its plots stay.
  const maps = chart.panels.map(({ cells }) => (cells ? mapHeight(cells) : undefined));
  const shape = JSON.stringify([{ ...chart.x, reach: 0 }, chart.bands, maps]);
  const frames = useMemo(() => {
    if (!colours || width <= 0) return [];
    return chart.panels.map((_, number) => ({
      width,
      height:
        (number === 0
          ? (maps[0] ?? heights[0]) + (chart.bands?.length ?? 0) * ROW
          : (maps[number] ?? heights[1])) + (number === chart.panels.length - 1 ? 32 : 0),
      key,
      x: chart.x,
      bands: chart.bands ?? [],
      first: number === 0,
      last: number === chart.panels.length - 1,
      theme: colours,
    }));
  }, [shape, colours, width, key, heights]);
  const shown = near || printing;
  const thinned = Math.max(
    0,
    ...chart.panels.flatMap((panel) => panel.lines.map((line) => line.thinned_from ?? 0)),
  );
  // The page does not move when a chart that comes near is drawn.
  const height = maps.reduce<number>(
    (sum, map, number) => sum + (map ?? heights[Math.min(number, 1)] ?? 0) + WORDS,
    0,
  );
  return (
    <div ref={place} class="panels" style={shown ? undefined : { minHeight: `${height}px` }}>
      {shown &&
        chart.panels.map((panel, number) => {
          const frame = frames[number];
          return (
            frame && (
              <Plot key={panel.y.label} panel={panel} frame={frame} extent={ends} catalogue={catalogue} />
            )
          );
        })}
      {thinned > 0 && (
        <p class="faint">
          Drawn from the smallest and the largest value in each thousandth of the time, of up to {thinned}{" "}
          samples.
        </p>
      )}
    </div>
  );
}

export function useMedia(query: string): boolean {
  const media = useMemo(() => matchMedia(query), [query]);
  const [matches, setMatches] = useState(media.matches);
  useLayoutEffect(() => {
    const changed = () => setMatches(media.matches);
    media.addEventListener("change", changed);
    return () => media.removeEventListener("change", changed);
  }, [media]);
  return matches;
}

/** Whether the page is being printed, between `beforeprint` and `afterprint`. */
function useAsked(): boolean {
  const [asked, setAsked] = useState(false);
  useLayoutEffect(() => {
    const begin = () => setAsked(true);
    const end = () => setAsked(false);
    addEventListener("beforeprint", begin);
    addEventListener("afterprint", end);
    return () => {
      removeEventListener("beforeprint", begin);
      removeEventListener("afterprint", end);
    };
  }, []);
  return asked;
}

/** Whether the element has been near the viewport. */
function useNear(place: { current: Element | null }): boolean {
  const [near, setNear] = useState(false);
  useEffect(() => {
    if (!place.current) return;
    const seen = (entries: IntersectionObserverEntry[]) => {
      if (entries.some((entry) => entry.isIntersecting)) setNear(true);
    };
    const observer = new IntersectionObserver(seen, { rootMargin: "600px" });
    observer.observe(place.current);
    return () => observer.disconnect();
  }, [place]);
  return near;
}

function useWidth(place: { current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    if (!place.current) return;
    const element = place.current;
    const measure = () => setWidth(Math.floor(element.clientWidth));
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, [place]);
  return width;
}
