// A plan while it is carried out: how far it is, what its flows do now, and what every trial has measured.

import { useEffect, useState } from "preact/hooks";
import { longTime } from "../units";
import { LiveLab } from "./LabView";
import { Value } from "./Live";
import { barOf, type EndedTrial, flowStage, type LivePlan, planStage, unseen } from "./livePlan";
import { labPath } from "./router";
import { ARROWS, plural, rate } from "./words";

export function LivePlanView({ plan }: { plan: LivePlan }) {
  const { frame, trials, remarks, lab } = plan;
  const left = frame.left_seconds;
  return (
    <>
      <div class="stage">
        <p>
          <strong class="number">{planStage(frame)}</strong>{" "}
          <span class="faint number">{left > 0 ? `at most ${longTime(left)} left` : ""}</span>
        </p>
        <progress
          aria-label="Trials that have ended"
          max={Math.max(1, frame.of)}
          value={Math.min(frame.done, frame.of)}
        />
        <p class="number">
          {frame.trial ?? (trials.length > 0 ? "Between two trials" : "The hosts are connected and checked.")}
        </p>
      </div>
      <div class="figures">
        {frame.flows.map((flow) => (
          <div key={flow.name} class={`big ${flow.bitrate_bps === undefined ? "planned" : "running"}`}>
            <h2>{flow.name}</h2>
            <p class="huge">
              <Value text={rate(flow.bitrate_bps)} />
            </p>
            <p class="faint">{flowStage(flow)}</p>
          </div>
        ))}
      </div>
      {remarks.map((remark) => (
        <p key={remark} class="remark">
          {remark}
        </p>
      ))}
      {trials.length > 0 && <Trials plan={plan} />}
      <PlanLab name={lab} />
    </>
  );
}

/** The network of the plan; undefined while a point of the plan needs another one, which is made then. */
function PlanLab({ name }: { name: string | undefined }) {
  const [open, setOpen] = useState(false);
  const [known, setKnown] = useState(name);
  useEffect(() => {
    if (name !== undefined) setKnown(name);
  }, [name]);
  if (known === undefined) return null;
  return (
    <details open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>The emulated network, its links and queues</summary>
      {open && <LiveLab key={known} name={known} />}
      <p class="faint">
        <a href={labPath(known)}>On a page of its own</a>
      </p>
    </details>
  );
}

function Trials({ plan }: { plan: LivePlan }) {
  const { trials } = plan;
  const bar = barOf(trials);
  const earlier = unseen(plan);
  return (
    <section aria-label="Trials that have ended">
      <h2>What was measured so far</h2>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by keyboard */}
      <div class="scroll" tabIndex={0}>
        <table class="trials">
          <thead>
            <tr>
              <th class="number">Trial</th>
              <th>Point</th>
              <th>Result</th>
            </tr>
          </thead>
          <tbody>
            {trials.map((trial) => (
              <tr key={trial.number} class={trial.measured ? undefined : "bad"}>
                <td class="number">{trial.number}</td>
                <td>{trial.trial}</td>
                <td>
                  <Result trial={trial} bar={bar} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {earlier > 0 && <p class="faint">{plural(earlier, "earlier trial")} will be in the result.</p>}
    </section>
  );
}

function Result({ trial, bar }: { trial: EndedTrial; bar: (bps: number) => number }) {
  const { goodputs, measured, result } = trial;
  // A trial of a search has passed or not, and one that failed has a reason; both are words.
  if (!measured || goodputs.length === 0 || !result.includes("b/s")) return <>{result}</>;
  return (
    <>
      {goodputs.map(({ flow, direction, bitrate_bps }) => (
        <div key={`${flow} ${direction}`} class="trial-rate">
          <span class="faint">
            {ARROWS[direction]} {flow}
          </span>
          <span class="number">{rate(bitrate_bps)}</span>
          <span class={`trial-bar ${direction}`} aria-hidden="true">
            <span style={{ width: `${100 * bar(bitrate_bps)}%` }} />
          </span>
        </div>
      ))}
    </>
  );
}
