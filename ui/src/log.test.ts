import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { shortened } from "./charts/bands";
import { unpacked } from "./log";

test("a log comes out of the page as it went in", async () => {
  const text = '{"run":"ä","seq":0}\n{"run":"ä","seq":1}\n';
  expect(await (await unpacked(` ${gzipSync(text).toString("base64")}\n`)).text()).toBe(text);
});

test("words are cut where there is no room for them", () => {
  const ctx = { measureText: (text: string) => ({ width: text.length * 10 }) as TextMetrics };
  expect(shortened(ctx, "caveat", 60)).toBe("caveat");
  expect(shortened(ctx, "caveat", 45)).toBe("cav…");
  expect(shortened(ctx, "caveat", 5)).toBe("");
});
