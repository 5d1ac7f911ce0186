// Tables: a click on a head sorts the rows, and a button saves the table as CSV.

import { fileName, save, saveButton } from "./save";
import { unitSize } from "./units";

/** A cell as it is sorted: a number in its smallest unit, a text, or nothing. */
export type SortKey = number | string | null;

const NUMBER = /^(?:at least |≥ ?|> ?|~ ?|\+)?(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)(?: ?([^\s()[\],;]+))?/i;

/** Suffixes of values as they are typed, which no figure of ours has: of sizes, rates and times. */
const TYPED: Record<string, number> = {
  k: 1e3,
  K: 2 ** 10,
  M: 2 ** 20,
  G: 2 ** 30,
  T: 2 ** 40,
  m: 60e9,
  min: 60e9,
  h: 3600e9,
};

/** What a cell is sorted by: its first number, in the unit after it. A dash is nothing. */
export function sortKey(text: string): SortKey {
  const plain = text.trim();
  if (plain === "" || plain === "-" || plain === "—") return null;
  const found = NUMBER.exec(plain);
  if (!found) return plain;
  const [, number, unit] = found;
  return Number(number) * (unitSize(unit ?? "") ?? TYPED[unit ?? ""] ?? 1);
}

/** The order of two cells: numbers, then texts. */
export function compared(a: SortKey, b: SortKey): number {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (typeof a === "string" && typeof b === "string") return a.localeCompare(b, "en", { numeric: true });
  return typeof a === "number" ? -1 : 1;
}

/** The order of rows with these cells. Cells with nothing come last in both directions, equal ones stay in place. */
export function order(cells: string[], descending: boolean): number[] {
  const keys = cells.map(sortKey);
  const known = (at: number) => keys[at] !== null;
  return [...keys.keys()].sort((a, b) => {
    if (!known(a) || !known(b)) return Number(known(b)) - Number(known(a)) || a - b;
    const difference = compared(keys[a] as SortKey, keys[b] as SortKey);
    return (descending ? -difference : difference) || a - b;
  });
}

/** A table as CSV (RFC 4180). A spreadsheet would take a text that begins like a formula for one. */
export function csv(rows: string[][]): string {
  const field = (text: string) => {
    const inert = /^[=+@\t\r-]/.test(text) && typeof sortKey(text) === "string" ? `'${text}` : text;
    return /[",\r\n]/.test(inert) ? `"${inert.replaceAll('"', '""')}"` : inert;
  };
  return rows.map((row) => `${row.map(field).join(",")}\r\n`).join("");
}

/** The rows of a table, each with the rows below it that belong to it. */
function groups(body: HTMLTableSectionElement): HTMLTableRowElement[][] {
  const found: HTMLTableRowElement[][] = [];
  for (const row of body.rows) {
    if (row.classList.contains("more")) found.at(-1)?.push(row);
    else found.push([row]);
  }
  return found;
}

const text = (cell: Element | undefined) => cell?.textContent?.replace(/\s+/g, " ").trim() ?? "";

/** Sorts the rows of a table by a column; the same column again turns the order round. */
function sort(body: HTMLTableSectionElement, heads: HTMLTableCellElement[], column: number): void {
  const descending = heads[column]?.getAttribute("aria-sort") === "ascending";
  const rows = groups(body);
  const cells = rows.map(([row]) => text(row?.cells[column]));
  for (const at of order(cells, descending)) body.append(...(rows[at] ?? []));
  for (const head of heads) head.removeAttribute("aria-sort");
  heads[column]?.setAttribute("aria-sort", descending ? "descending" : "ascending");
}

/** Whether every row has a cell for every head, so that rows can change their places. */
function isPlain(heads: HTMLTableCellElement[], body: HTMLTableSectionElement): boolean {
  const rows = groups(body);
  const whole = rows.every(([row]) => row?.cells.length === heads.length && !row.querySelector("[rowspan]"));
  return rows.length > 1 && whole;
}

/** Makes the tables of a page sortable, and savable. */
export function addTableControls(root: ParentNode): void {
  for (const table of root.querySelectorAll<HTMLTableElement>(".wide > table")) {
    const [head, body] = [table.tHead?.rows[0], table.tBodies[0]];
    if (!head || !body) continue;
    const heads = [...head.cells];
    // The places of a matrix are what it shows.
    if (!table.closest(".heat") && isPlain(heads, body)) {
      heads.forEach((cell, column) => {
        if (text(cell) === "") return;
        const button = document.createElement("button");
        button.type = "button";
        button.className = "sort";
        button.append(...cell.childNodes);
        button.addEventListener("click", () => sort(body, heads, column));
        cell.append(button);
      });
    }
    const title =
      text(table.caption ?? undefined) ||
      text(table.closest("figure")?.querySelector("figcaption") ?? undefined);
    const about = title ? `Save this table as CSV: ${title}` : "Save this table as CSV";
    const rows = () =>
      [heads, ...groups(body).map(([row]) => [...(row?.cells ?? [])])].map((cells) => cells.map(text));
    const button = saveButton("CSV", about, () =>
      save(new Blob([csv(rows())], { type: "text/csv" }), fileName(title, "csv")),
    );
    (table.caption ?? table.closest("figure")?.querySelector("figcaption"))?.append(button);
  }
}
