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
    const load = async () => {
      const run = await getSharedRun({ id, secret });
      if (wanted) setRun(run);
      if (run.state !== "ended" && run.state !== "unfinished") return;
      const view = await getSharedView({ id, secret });
      if (wanted) setView(view);
    };
    load().catch((error) => wanted && setProblem(asProblem(error)));
    return () => {
      wanted = false;
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
