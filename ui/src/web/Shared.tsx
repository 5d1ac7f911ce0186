// A run whose link somebody has shared: read-only, without signing in.

import { useEffect, useState } from "preact/hooks";
import {
  formatsOf,
  getSharedRun,
  getSharedView,
  type Run,
  type SharedLink,
  sharedExportUrl,
  type View,
} from "./api";
import { asProblem, type Problem } from "./problem";
import { Menu } from "./Run";
import { Document, hasHeading } from "./View";

/** How often a run that has not ended is asked for. */
const REFRESH_MS = 5000;

export function SharedPage({ link }: { link: SharedLink }) {
  const [run, setRun] = useState<Run>();
  const [view, setView] = useState<View>();
  const [problem, setProblem] = useState<Problem>();
  const { id, secret } = link;
  useEffect(() => {
    let wanted = true;
    setRun(undefined);
    setView(undefined);
    setProblem(undefined);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const again = () => {
      if (wanted) timer = setTimeout(() => (document.hidden ? again() : void load()), REFRESH_MS);
    };
    const load = async () => {
      // The result of a run is archived a moment after its end.
      let awaited = false;
      try {
        const run = await getSharedRun({ id, secret });
        if (!wanted) return;
        setRun(run);
        setProblem(undefined);
        if (run.state !== "ended" && run.state !== "unfinished") return again();
        awaited = run.problem === undefined;
        const view = await getSharedView({ id, secret });
        if (wanted) setView(view);
      } catch (error) {
        if (!wanted) return;
        const problem = asProblem(error);
        setProblem(problem);
        // A link that is not valid stays so.
        if (awaited || problem.status !== 404) again();
      }
    };
    void load();
    return () => {
      wanted = false;
      clearTimeout(timer);
    };
  }, [id, secret]);
  const title = view?.title ?? `Run ${id}`;
  useEffect(() => {
    document.title = `${title} · linerate`;
  }, [title]);
  return (
    <div class="run-page">
      {view && (
        <section class="actions" aria-label="What to do with this run">
          <Menu label="Export">
            {formatsOf(run?.kind ?? "test").map(([format, label]) => (
              <li key={format}>
                <a href={sharedExportUrl(link, format)} download>
                  {label}
                </a>
              </li>
            ))}
          </Menu>
        </section>
      )}
      {!(view && hasHeading(view)) && <h1>{title}</h1>}
      {problem && (
        <p class="trouble" role="alert">
          {problem.text}
        </p>
      )}
      {view && <Document view={view} />}
      {run && !view && !problem && <p>This run has not ended yet. Its result will be here.</p>}
    </div>
  );
}
