// The emulated networks that are up on the server's host.

import { useEffect } from "preact/hooks";
import { getLabs } from "./api";
import { LiveLab } from "./LabView";
import { usePolled, useVisitor } from "./load";
import { labPath, navigate } from "./router";
import { Trouble } from "./Trouble";

/** How often the list is read. */
const RELOAD_MS = 5000;

export function LabsPage({ name }: { name?: string }) {
  const { session } = useVisitor();
  // Networks come and go.
  const { value, at, problem } = usePolled("labs", getLabs, RELOAD_MS);
  const labs = value?.labs ?? [];
  const only = labs.length === 1 ? labs[0]?.name : undefined;
  useEffect(() => {
    if (name === undefined && only !== undefined) navigate(labPath(only), true);
  }, [name, only]);
  const title = name === undefined ? "Emulated networks" : `Network ${name}`;
  useEffect(() => {
    document.title = `${title} · linerate`;
  }, [title]);
  return (
    <div class="tool labs">
      <h1>{title}</h1>
      <p class="faint">
        {name === undefined
          ? `Networks of hosts, switches and cables that ${session.host} emulates.`
          : `${session.host} emulates it. Each direction of a link has a port with a queue.`}
      </p>
      <Trouble problem={problem} shown={at} />
      {labs.length > 1 && (
        <ul class="choice">
          {labs.map((lab) => (
            <li key={lab.name}>
              <a href={labPath(lab.name)} aria-current={lab.name === name ? "page" : undefined}>
                {lab.name}
              </a>
            </li>
          ))}
        </ul>
      )}
      {value && labs.length === 0 && name === undefined && (
        <p>
          None is up. <code>linerate lab up pair</code> starts one, and a <a href="/plans">plan</a> in an
          emulated network has one while it runs.
        </p>
      )}
      {name !== undefined && <LiveLab key={name} name={name} />}
    </div>
  );
}
