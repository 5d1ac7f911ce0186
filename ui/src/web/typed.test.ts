import { expect, test } from "vitest";
import { FIELDS } from "./envelope";
import { FIELDS as SIZES } from "./sizes";
import { addressOf, bodyOf, hashOf, MAX_TEXT_IN_ADDRESS, summaryOf, textOf, valuesOf } from "./typed";

test("the address has what was typed, and nothing that no field has", () => {
  const values = valuesOf(new URLSearchParams("link=1G..10G&rtt=20ms&evil=1&loss="), FIELDS);
  expect(values).toEqual({ link: "1G..10G", rtt: "20ms" });
  const address = addressOf("/envelope", values, FIELDS);
  expect(valuesOf(new URL(address, "http://x").searchParams, FIELDS)).toEqual(values);
  expect(addressOf("/envelope", { link: "" }, FIELDS)).toBe("/envelope");
});

test("the request has the values as they were typed, flags as flags, and no blank ones", () => {
  expect(bodyOf({ link: " 1G ", rtt: "  ", udp: "yes", mtu: "x" }, FIELDS)).toEqual({
    link: "1G",
    udp: true,
    mtu: "x",
  });
});

test("folded values are summed up", () => {
  expect(summaryOf({ udp: "yes", vlan: "1" }, FIELDS)).toBe("UDP instead of TCP · VLAN tags in each frame 1");
  expect(summaryOf({ mode: "bidir", largest: "1M", time: "10" }, SIZES)).toBe(
    "Messages go both ways at the same time · Largest message 1M · Time for all sizes 10 s",
  );
  expect(summaryOf({ time: "2 min" }, SIZES)).toBe("Time for all sizes 2 min");
});

test("a pasted text survives the address, unless it is too long for one", () => {
  const text = "[  5] 0.00-10.00 sec #%&\n€";
  expect(textOf(hashOf(text))).toBe(text);
  expect(hashOf("")).toBe("");
  expect(hashOf("x".repeat(MAX_TEXT_IN_ADDRESS + 1))).toBe("");
  // A place in the page, and a text that somebody cut.
  expect([textOf("#main"), textOf("#text=%E2%82")]).toEqual([undefined, undefined]);
});
