// Fields whose values the address of the page has, a pause in typing later. What was typed stays in its field until
// the address has another value from elsewhere.

import { useEffect, useRef, useState } from "preact/hooks";
import { here } from "./router";

/** What was typed into a field. */
export interface Draft {
  text: string;
  /** The value in the address at that time, or the one that the text has become there. */
  given: string;
}

/** The drafts by the names of the fields. */
export type Drafts = Record<string, Draft>;

const givenIn = (query: URLSearchParams, field: string): string => query.get(field) ?? "";

/** What a field shows. */
export function textOf(drafts: Drafts, query: URLSearchParams, field: string): string {
  const [draft, given] = [drafts[field], givenIn(query, field)];
  return draft?.given === given ? draft.text : given;
}

/** The same after something was typed into a field. */
export function withText(drafts: Drafts, query: URLSearchParams, field: string, text: string): Drafts {
  return { ...drafts, [field]: { text, given: givenIn(query, field) } };
}

/** The address with everything that was typed, and the drafts that it then has. */
export function taken(drafts: Drafts, query: URLSearchParams): { query: URLSearchParams; drafts: Drafts } {
  const [next, kept] = [new URLSearchParams(query), { ...drafts }];
  for (const [field, { text, given }] of Object.entries(drafts)) {
    const value = text.trim();
    if (given !== givenIn(query, field) || given === value) continue;
    if (value) next.set(field, value);
    else next.delete(field);
    kept[field] = { text, given: value };
  }
  return { query: next, drafts: kept };
}

/** Pause in typing after which the address follows. */
const TYPING_MS = 300;

interface Fields {
  /** What a field shows. */
  text(field: string): string;
  /** Something was typed: the address follows after a pause. */
  type(field: string, text: string): void;
  /** The address follows now. */
  flush(): void;
}

/** The fields of a page with this address; `show` puts another one into the address. */
export function useDrafts(query: URLSearchParams, show: (query: URLSearchParams) => void): Fields {
  const [drafts, setDrafts] = useState<Drafts>({});
  // For the timer, which may end before what was typed is shown.
  const latest = useRef({ drafts, show });
  latest.current.show = show;
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const set = (drafts: Drafts) => {
    latest.current.drafts = drafts;
    setDrafts(drafts);
  };
  const now = () => here().searchParams;
  const flush = () => {
    clearTimeout(timer.current);
    const [before, { query, drafts }] = [now(), taken(latest.current.drafts, now())];
    set(drafts);
    if (query.toString() !== before.toString()) latest.current.show(query);
  };
  return {
    text: (field) => textOf(drafts, query, field),
    type: (field, text) => {
      set(withText(latest.current.drafts, now(), field, text));
      clearTimeout(timer.current);
      timer.current = setTimeout(flush, TYPING_MS);
    },
    flush,
  };
}
