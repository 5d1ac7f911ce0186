// @vitest-environment happy-dom

import { afterEach, expect, test, vi } from "vitest";
import { getEnvelope } from "./api";
import { EnvelopePage } from "./Envelope";
import { navigate } from "./router";
import { address, closePage, field, openPage, settle, type } from "./testPage";

vi.mock("./api");

afterEach(closePage);

/** The browser refuses addresses from now on, with an error or without, or takes them again. */
function refuse(why: "error" | "silence" | undefined): void {
  const replace = vi.spyOn(history, "replaceState");
  if (why === undefined) replace.mockRestore();
  else
    replace.mockImplementation(() => {
      if (why === "error") throw new Error("more than 100 times per 10 seconds");
    });
}

test.each(["error", "silence"] as const)(
  "what is typed stays while the browser refuses the address with %s, and the address follows",
  async (why) => {
    vi.mocked(getEnvelope).mockRejectedValue(new TypeError());
    await openPage("/envelope", <EnvelopePage />);
    await type("link", "1");
    expect(address()).toBe("/envelope?link=1");
    refuse(why);
    await type("link", "10");
    await type("link", "10G");
    // The answer to what was typed.
    await vi.advanceTimersByTimeAsync(500);
    expect([field("link").value, address()]).toEqual(["10G", "/envelope?link=1"]);
    refuse(undefined);
    await vi.advanceTimersByTimeAsync(2000);
    expect([field("link").value, address()]).toEqual(["10G", "/envelope?link=10G"]);
  },
);

test("an address that was refused is not put in place of the next page", async () => {
  vi.mocked(getEnvelope).mockRejectedValue(new TypeError());
  await openPage("/envelope?link=1", <EnvelopePage />);
  refuse("silence");
  await type("link", "10G");
  refuse(undefined);
  navigate("/history");
  await settle();
  await vi.advanceTimersByTimeAsync(5000);
  expect(address()).toBe("/history");
});
