// The schedules of a fleet: what is measured when, and why one does not measure now.

import { useRef, useState } from "preact/hooks";
import { cancelCalendarRun, getWhy, pauseSchedule, removeSchedule } from "./api";
import { type CalendarRun, obstacle, recurrence, type Schedule } from "./fleet";
import { Pages, RunTable, useFleetPath } from "./fleetParts";
import { useLoad, useProblem, useVisitor } from "./load";
import { NewSchedule } from "./NewSchedule";
import { navigate } from "./router";
import { when } from "./words";

interface SchedulesProps {
  schedules: Schedule[];
  runs: CalendarRun[];
  /** After which the next page begins. */
  next: string | undefined;
  hosts: string[];
  open: string | null;
  round: number;
  onChange: () => void;
}

export function Schedules({ schedules, runs, next: nextPage, hosts, open, round, onChange }: SchedulesProps) {
  const { can } = useVisitor();
  const path = useFleetPath();
  const [problem, setProblem] = useProblem();
  const [toRemove, setToRemove] = useState("");
  const dialog = useRef<HTMLDialogElement>(null);
  const act = async (what: () => Promise<unknown>) => {
    try {
      await what();
      setProblem(undefined);
      onChange();
    } catch (error) {
      setProblem(error);
    }
  };
  const next = (schedule: Schedule) =>
    [
      ...runs
        .filter((run) => run.schedule === schedule.name && run.state !== "running")
        .map((run) => run.starts),
      schedule.next_due ?? "",
    ]
      .filter(Boolean)
      .sort()[0];
  const active = runs.filter((run) => run.state === "running");
  return (
    <section aria-labelledby="schedules">
      <h2 id="schedules">Schedules</h2>
      {problem && (
        <p class="trouble" role="alert">
          {problem.text}
        </p>
      )}
      {active.length > 0 && (
        <>
          <h3>Measuring now</h3>
          <RunTable
            runs={active}
            ofSchedules
            actions={(run) =>
              can("run") && (
                <button
                  type="button"
                  aria-label={`Cancel the run of ${run.schedule}`}
                  onClick={() => act(() => cancelCalendarRun(run.run))}
                >
                  Cancel
                </button>
              )
            }
          />
        </>
      )}
      <div class="scroll">
        <table>
          <thead>
            <tr>
              <th scope="col">Schedule</th>
              <th scope="col">From → to</th>
              <th scope="col">When</th>
              <th scope="col">Next</th>
              <th scope="col">Actions</th>
            </tr>
          </thead>
          <tbody>
            {schedules.map((schedule) => (
              <tr key={schedule.name}>
                <th scope="row">{schedule.name}</th>
                <td>
                  {schedule.from} → {schedule.to}
                </td>
                <td>{recurrence(schedule)}</td>
                <td>
                  {schedule.paused ? "paused" : (next(schedule) && when(next(schedule) ?? "")) || "over"}
                </td>
                <td class="buttons">
                  <button
                    type="button"
                    aria-expanded={open === schedule.name}
                    onClick={() =>
                      navigate(path(open === schedule.name ? {} : { schedule: schedule.name }), true)
                    }
                  >
                    Why?
                  </button>
                  {can("run") && (
                    <button
                      type="button"
                      onClick={() => act(() => pauseSchedule(schedule.name, !schedule.paused))}
                    >
                      {schedule.paused ? "Resume" : "Pause"}
                    </button>
                  )}
                  {can("admin") && !schedule.mesh && (
                    <button
                      type="button"
                      class="danger"
                      onClick={() => {
                        setToRemove(schedule.name);
                        dialog.current?.showModal();
                      }}
                    >
                      Remove
                    </button>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <Pages list="schedules_after" next={nextPage} what="schedules" />
      {open && <WhyNot key={open} name={open} round={round} />}
      {can("admin") && (
        <NewSchedule
          hosts={hosts}
          onProblem={setProblem}
          onAdd={(name) => {
            onChange();
            navigate(path({ schedule: name }), true);
          }}
        />
      )}
      <dialog ref={dialog} aria-labelledby="remove">
        <h2 id="remove">Remove the schedule {toRemove}?</h2>
        <p>Its coming runs are cancelled. Its results stay.</p>
        <p class="actions">
          <button type="button" onClick={() => dialog.current?.close()}>
            Keep it
          </button>
          <button
            type="button"
            class="danger"
            onClick={() => {
              dialog.current?.close();
              act(async () => {
                await removeSchedule(toRemove);
                if (open === toRemove) navigate(path({}), true);
              });
            }}
          >
            Remove
          </button>
        </p>
      </dialog>
    </section>
  );
}

/** Why a schedule does not measure now, asked again with everything else: the answer is soon out of date. */
function WhyNot({ name, round }: { name: string; round: number }) {
  const { value, problem } = useLoad(`${name} ${round}`, () => getWhy(name));
  if (problem)
    return (
      <p class="trouble" role="alert">
        {problem.text}
      </p>
    );
  if (!value) return <p role="status">Asking…</p>;
  return (
    <div class="card" role="status">
      <h3>Why does {name} not measure now?</h3>
      {value.active && <p>It measures now, until {when(value.active.ends)} at the latest.</p>}
      {value.obstacles.length > 0 ? (
        <ul>
          {value.obstacles.map((one) => (
            <li key={obstacle(one)}>{obstacle(one)}</li>
          ))}
        </ul>
      ) : (
        !value.active && <p>Nothing keeps it from measuring.</p>
      )}
      <p>
        {value.next_free
          ? `Everything that it uses is free at ${when(value.next_free)}.`
          : "Everything that it uses is at no time free in the next seven days."}
      </p>
    </div>
  );
}
