import { expect, test } from "vitest";
import { commandOf, offsetOf, settingsOf, worldsOf } from "./plans";

test("settings are the lines that are not empty", () => {
  expect(settingsOf(" repeats=3\n\n axis.window=64K,1M \n")).toEqual(["repeats=3", "axis.window=64K,1M"]);
  expect(settingsOf("\n")).toEqual([]);
});

test("a mistake is found in the text, also behind letters that are two units long", () => {
  const text = 'name = "x"\n# 🐢 y = 1\nz';
  expect(text.slice(offsetOf(text, 1, 1))).toBe(text);
  expect(text[offsetOf(text, 2, 5)]).toBe("y");
  expect(offsetOf(text, 3, 1)).toBe(text.length - 1);
  expect(offsetOf(text, 9, 9)).toBe(text.length);
});

test("a command is one that a shell takes as it is meant", () => {
  expect(commandOf("bufferbloat", ["repeats=3"])).toBe("linerate run bufferbloat --set repeats=3");
  expect(commandOf("my plan.toml", ["notes.who=it's"])).toBe(
    "linerate run 'my plan.toml' --set 'notes.who=it'\\''s'",
  );
});

test("a plan can be carried out where it fits and the server is able to", () => {
  const preview = (...worlds: ("hosts" | "lab")[]) => ({ mistakes: [], worlds });
  expect(worldsOf(preview("hosts", "lab"), ["lab"], "ams-1")).toEqual({
    possible: ["lab"],
    missing: [expect.stringContaining("--web-agent-token-file")],
  });
  expect(worldsOf(preview("lab"), ["hosts"], "ams-1")).toEqual({
    possible: [],
    missing: [expect.stringContaining("ams-1 cannot emulate networks")],
  });
});
