import { expect, test } from "vitest";
import type { RunRow } from "./api";
import { asLong, newestEnded, type RunList, type RunPage, withFirstPage, withNextPage } from "./runList";

const QUERY = "limit=50";
const PAGE = 50;

const run = (number: number, state: RunRow["state"] = "ended"): RunRow => ({ id: `run-${number}`, state });
/** A page of the server, which has the runs with these numbers. */
function page(archive: number[], after = Number.POSITIVE_INFINITY): RunPage {
  const later = archive.filter((number) => number < after).sort((a, b) => b - a);
  const shown = later.slice(0, PAGE);
  return {
    runs: shown.map((number) => run(number)),
    ...(later.length > PAGE ? { next: `${shown.at(-1)}` } : {}),
  };
}
const upTo = (last: number): number[] => Array.from({ length: last }, (_, at) => at + 1);
const numbers = ({ runs }: RunPage): number[] => runs.map(({ id }) => Number(id.slice(4)));
const descending = (from: number, to: number): number[] =>
  upTo(from)
    .slice(to - 1)
    .reverse();
/** The list after its first page, and after further ones. */
function listOf(archive: number[], pages = 1): RunList {
  let list = withFirstPage(undefined, QUERY, page(archive));
  for (let more = 1; more < pages; more += 1)
    list = withNextPage(asLong(list), QUERY, list.next ?? "", page(archive, Number(list.next)));
  return list;
}

test("no run is lost between the first page and the others when it is read again", () => {
  const list = listOf(upTo(60), 2);
  expect(numbers(list)).toEqual(descending(60, 1));
  const again = withFirstPage(list, QUERY, page(upTo(61)));
  expect(numbers(again)).toEqual(descending(61, 1));
  expect(again.next).toBeUndefined();
});

test("the end of a list that goes on stays where it was", () => {
  const list = withFirstPage(listOf(upTo(200), 2), QUERY, page(upTo(203)));
  expect([numbers(list), list.next]).toEqual([descending(203, 101), "101"]);
  const longer = withNextPage(list, QUERY, "101", page(upTo(203), 101));
  expect([numbers(longer), longer.next]).toEqual([descending(203, 51), "51"]);
});

test("a list of one page stays one page", () => {
  const list = withFirstPage(listOf(upTo(60)), QUERY, page(upTo(61)));
  expect([numbers(list), list.next]).toEqual([descending(61, 12), "12"]);
});

test("a run that was deleted is gone, as far as the first page shows it", () => {
  const left = upTo(120).filter((number) => number !== 115);
  const list = withFirstPage(listOf(upTo(120), 2), QUERY, page(left));
  expect(numbers(list)).toEqual(descending(120, 21).filter((number) => number !== 115));
  // Of a list that has become short, everything is known.
  expect(numbers(withFirstPage(list, QUERY, page(upTo(30))))).toEqual(descending(30, 1));
});

test("a first page that does not reach to the known runs replaces them", () => {
  const list = withFirstPage(listOf(upTo(60), 2), QUERY, page(upTo(160)));
  expect([numbers(list), list.next]).toEqual([descending(160, 111), "111"]);
});

test("a run that waits has its place once it has begun", () => {
  const waiting = page(upTo(60));
  let list = withFirstPage(undefined, QUERY, { ...waiting, runs: [run(61, "waiting"), ...waiting.runs] });
  list = withNextPage(asLong(list), QUERY, "11", page(upTo(60), 11));
  expect(numbers(list)).toEqual(descending(61, 1));
  const begun = withFirstPage(list, QUERY, page(upTo(61)));
  expect(numbers(begun)).toEqual(descending(61, 1));
  // By now it is the last one of a page that does not reach to the others.
  const replaced = withFirstPage(list, QUERY, page(upTo(110)));
  expect([numbers(replaced), replaced.next]).toEqual([descending(110, 61), "61"]);
});

test("a late page is not added to the runs of another query, nor twice", () => {
  const late = page(upTo(60), 11);
  const other = withFirstPage(listOf(upTo(60)), "limit=50&tag=rack-4", page(upTo(55)));
  expect(numbers(other)).toEqual(descending(55, 6));
  expect(withNextPage(other, QUERY, "11", late)).toBe(other);
  const list = withNextPage(listOf(upTo(60)), QUERY, "11", late);
  expect(withNextPage(list, QUERY, "11", late)).toBe(list);
});

test("a page that is on its way is added also if the first page was read again meanwhile", () => {
  const list = withFirstPage(asLong(listOf(upTo(60))), QUERY, page(upTo(61)));
  expect(list.next).toBe("11");
  expect(numbers(withNextPage(list, QUERY, "11", page(upTo(61), 11)))).toEqual(descending(61, 1));
});

test("the newest run that has ended is neither one that waits nor one that was cut off", () => {
  expect(newestEnded([run(4, "waiting"), run(3, "unfinished"), run(2), run(1)])).toBe("run-2");
  expect(newestEnded([run(4, "waiting")])).toBeUndefined();
});
