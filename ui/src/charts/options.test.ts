import { expect, test } from "vitest";
import type { Panel } from "../page";
import { table } from "./data";
import { spaced, word } from "./marks";
import { options, pattern } from "./options";
import type { Theme } from "./theme";

const theme: Theme = {
  page: "white",
  text: "black",
  faint: "grey",
  grid: "grey",
  caveat: "yellow",
  lines: ["blue", "orange", "green", "purple", "red", "slate"],
  hues: { upload: "orange", download: "blue", latency: "purple" },
};
const line = (label: string, style: "line" | "computed") => ({ label, style, x: [1, 2], y: [1, 2] });
const panel: Panel = {
  y: { label: "rate", unit: "bit/s", log: false },
  lines: [
    ...["a", "b", "c", "d", "e", "f"].map((label) => line(label, "line")),
    line("computed", "computed"),
    { ...line("latency", "line"), hue: "latency" },
  ],
  levels: [{ label: "ceiling", value: 3 }],
};

test("every line of a panel has its own dash, so that colour is not the only sign", () => {
  const { columns } = table({ ...panel, lines: panel.lines.slice(0, 7) }, [1, 2], new Map());
  const dashes = columns.map((column) => pattern(column, theme).dash.join(" "));
  expect(new Set(dashes).size).toBe(8);
});

test("a line next to one with a colour of its own has a colour that no other page gives to something else", () => {
  const { columns } = table(panel, [1, 2], new Map());
  const strokes = columns.slice(0, 6).map((column) => pattern(column, theme).stroke);
  expect(strokes).not.toContain("orange");
  expect(strokes).not.toContain("blue");
});

test("what has a colour on every page has it wherever it is shown", () => {
  const { columns } = table(panel, [1, 2], new Map());
  expect(pattern(columns[7] as (typeof columns)[0], theme).stroke).toBe("purple");
});

test("the legend is silent before the cursor is in the plot", () => {
  const { columns } = table(panel, [1, 2], new Map());
  const frame = {
    width: 600,
    height: 200,
    key: "k",
    x: { label: "time", unit: "s", log: false },
    bands: [],
    first: true,
    last: true,
    theme,
  };
  const { series } = options(panel, columns, frame);
  const said = (at: number | null) =>
    series.map(({ value }) =>
      typeof value === "function" ? value({} as never, at as never, 1, at as never) : "?",
    );
  expect(said(null).join("")).toBe("");
  expect(said(1)).not.toContain("");
});

test("the axis names what was measured, and no two names overlap", () => {
  const marks = [
    { at: 32, label: "32" },
    { at: 64, label: "default" },
  ];
  const sizes = { label: "size", unit: "bytes", log: true, marks };
  expect([word(sizes, 64), word(sizes, 48)]).toEqual(["default", undefined]);
  const names = { label: "configuration", unit: "words", log: false, marks: [{ at: 1, label: "old" }] };
  expect(word(names, 0.8)).toBe("old");
  const places = [0, 20, 40, 200].map((at, number) => ({ at, label: `value ${number}` }));
  expect(spaced(places)).toEqual(["", "", "value 2", "value 3"]);
});
