// @vitest-environment happy-dom

import { expect, test } from "vitest";
import { queue } from "./Start";

test("a test does not start at once while this host measures a client", () => {
  expect(queue({ waiting: 0, measured: 0 })).toBe("It starts at once.");
  expect(queue({ waiting: 0, measured: 1 })).toBe("This host measures 1 client now.");
  // The run of a page, before and while it is measured.
  expect(queue({ waiting: 0, measured: 0, running: "a" })).toBe("1 test before you.");
  expect(queue({ waiting: 0, measured: 1, running: "a" })).toBe("1 test before you.");
  expect(queue({ waiting: 2, measured: 1 })).toBe("3 tests before you.");
});
