// Two groups of runs: which is better.

import { useEffect, useState } from "preact/hooks";
import { getComparison } from "./api";
import { useLoad } from "./load";
import { comparePath, navigate, useAddress } from "./router";
import { Document, hasHeading } from "./View";

export function ComparePage() {
  const { search, searchParams } = useAddress();
  const before = searchParams.getAll("before").filter(Boolean);
  const after = searchParams.getAll("after").filter(Boolean);
  if (before.length === 0 || after.length === 0) return <Choose before={before} after={after} />;
  return <Comparison key={search} before={before} after={after} />;
}

function Comparison({ before, after }: { before: string[]; after: string[] }) {
  const { value, problem, reload } = useLoad("", () => getComparison(before, after));
  useEffect(() => {
    document.title = `${value?.title ?? "Compare"} · linerate`;
  }, [value]);
  if (problem)
    return (
      <>
        <h1>These runs cannot be compared</h1>
        <p class="trouble" role="alert">
          {problem.text}
        </p>
        <p class="actions">
          <button type="button" onClick={reload}>
            Try again
          </button>
          <a class="button" href="/history">
            Choose others in the history
          </a>
        </p>
      </>
    );
  if (!value) return <p role="status">Comparing…</p>;
  return (
    <>
      <p class="actions">
        <a class="button" href={comparePath(after, before)}>
          Swap before and after
        </a>
        <a class="button" href="/history">
          Choose others
        </a>
      </p>
      {!hasHeading(value) && <h1>{value.title}</h1>}
      <Document view={value} />
    </>
  );
}

const split = (text: string) =>
  text
    .split(",")
    .map((one) => one.trim())
    .filter(Boolean);

function Choose({ before, after }: { before: string[]; after: string[] }) {
  const [first, setFirst] = useState(before.join(", "));
  const [second, setSecond] = useState(after.join(", "));
  useEffect(() => {
    document.title = "Compare · linerate";
  }, []);
  const submit = (event: Event) => {
    event.preventDefault();
    navigate(comparePath(split(first), split(second)));
  };
  return (
    <form class="card narrow" onSubmit={submit}>
      <h1>Which is better?</h1>
      <p>
        Select runs in the <a href="/history">history</a>, or type their ids or names, separated by commas. A
        name that several runs share means all of them, as repeats.
      </p>
      <div class="field">
        <label for="before">Before</label>
        <input
          id="before"
          required
          autocomplete="off"
          value={first}
          onInput={(event) => setFirst(event.currentTarget.value)}
        />
      </div>
      <div class="field">
        <label for="after">After</label>
        <input
          id="after"
          required
          autocomplete="off"
          value={second}
          onInput={(event) => setSecond(event.currentTarget.value)}
        />
      </div>
      <p class="actions">
        <button type="submit" class="primary">
          Compare
        </button>
      </p>
    </form>
  );
}
