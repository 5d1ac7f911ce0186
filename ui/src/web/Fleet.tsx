// The calendar of a fleet: who sees whom how well, what needs attention, and what is measured when.

import { useEffect, useRef, useState } from "preact/hooks";
import {
  cancelCalendarRun,
  getAgents,
  getCell,
  getFleet,
  getMeshes,
  getSchedules,
  getWhy,
  pauseSchedule,
  removeSchedule,
} from "./api";
import {
  type Agent,
  type Alarm,
  type CalendarRun,
  isImpossible,
  type Mesh,
  mark,
  obstacle,
  recurrence,
  type Schedule,
  sentence,
} from "./fleet";
import { useLoad, usePolled, useProblem, useVisitor } from "./load";
import { NewSchedule } from "./NewSchedule";
import { navigate, runPath, useAddress } from "./router";
import { Trouble } from "./Trouble";
import { flowRate, IMPOSSIBLE, NOTHING, plural, when, words } from "./words";

/** How often the page asks again, milliseconds. */
const REFRESH_MS = 10_000;
/** The lists that have pages: the name after which the page that is shown begins is in the address. */
const LISTS = ["meshes_after", "schedules_after"] as const;
type List = (typeof LISTS)[number];

/** Everything that the page shows, of about the same moment. */
async function getAll(meshesAfter: string | null, schedulesAfter: string | null) {
  const fleet = await getFleet();
  const [meshes, schedules, agents] = await Promise.all([
    getMeshes(meshesAfter),
    getSchedules(schedulesAfter),
    getAgents(),
  ]);
  return { fleet, meshes, schedules, agents };
}

/** Addresses of this page with something open. The lists stay at their pages, unless another one is given. */
function useFleetPath() {
  const { searchParams } = useAddress();
  return (open: Record<string, string>) => {
    const query = new URLSearchParams();
    for (const list of LISTS) query.set(list, searchParams.get(list) ?? "");
    for (const [name, value] of Object.entries(open)) query.set(name, value);
    for (const list of LISTS) if (!query.get(list)) query.delete(list);
    return query.size > 0 ? `/fleet?${query}` : "/fleet";
  };
}

/** The way to the next page of a list, and back to its first one. */
function Pages({ list, next, what }: { list: List; next: string | undefined; what: string }) {
  const { searchParams } = useAddress();
  const path = useFleetPath();
  const isFirst = !searchParams.get(list);
  if (isFirst && next === undefined) return null;
  return (
    <p class="actions">
      {!isFirst && <a href={path({ [list]: "" })}>First {what}</a>}
      {next !== undefined && <a href={path({ [list]: next })}>More {what}</a>}
    </p>
  );
}

export function FleetPage() {
  const { searchParams } = useAddress();
  const [meshesAfter, schedulesAfter] = [searchParams.get(LISTS[0]), searchParams.get(LISTS[1])];
  const { value, at, problem, reload, round } = usePolled(
    `fleet ${meshesAfter} ${schedulesAfter}`,
    () => getAll(meshesAfter, schedulesAfter),
    REFRESH_MS,
  );
  useEffect(() => {
    document.title = "Fleet · linerate";
  }, []);
  if (problem?.status === 404) return <NoFleet />;
  if (value)
    return (
      <>
        <Trouble problem={problem} shown={at} />
        <Overview all={value} round={round} onChange={reload} />
      </>
    );
  if (!problem) return <p role="status">Loading…</p>;
  return (
    <>
      <h1>Fleet</h1>
      <p class="trouble" role="alert">
        {problem.text}
      </p>
    </>
  );
}

type Everything = Awaited<ReturnType<typeof getAll>>;

function Overview({ all, round, onChange }: { all: Everything; round: number; onChange: () => void }) {
  const { searchParams } = useAddress();
  const { fleet, meshes, schedules, agents } = all;
  const [mesh, from, to] = ["mesh", "from", "to"].map((name) => searchParams.get(name));
  const open = searchParams.get("schedule");
  return (
    <>
      <h1>Fleet {fleet.name}</h1>
      <p class={fleet.coordinator ? undefined : "trouble"}>
        {plural(fleet.agents.length, "host")}, {plural(fleet.schedules.all, "schedule")}
        {fleet.schedules.paused > 0 && ` (${fleet.schedules.paused} paused)`}.{" "}
        {fleet.coordinator
          ? `A coordinator carries out the calendar (epoch ${fleet.coordinator.epoch}).`
          : "No coordinator carries out the calendar: nothing is measured."}
      </p>
      <Alarms alarms={fleet.alarms} />
      {meshes.meshes.map((mesh) => (
        <Grid key={mesh.mesh} mesh={mesh} />
      ))}
      <Pages list="meshes_after" next={meshes.next} what="meshes" />
      {mesh && from && to && (
        <CellHistory key={`${mesh} ${from} ${to}`} mesh={mesh} from={from} to={to} round={round} />
      )}
      <Hosts agents={fleet.agents} />
      {agents.agents.length > 0 && <Agents agents={agents.agents} />}
      <Schedules
        schedules={schedules.schedules}
        runs={schedules.runs}
        next={schedules.next}
        hosts={fleet.agents.map(({ name }) => name)}
        open={open}
        round={round}
        onChange={onChange}
      />
    </>
  );
}

function NoFleet() {
  return (
    <>
      <h1>There is no fleet</h1>
      <p>
        A fleet is many hosts that measure each other by a calendar. Describe it in a file, and start{" "}
        <code>linerate fleet run FILE</code> with the archive of this server. <code>linerate fleet up</code>{" "}
        starts one for trying out.
      </p>
    </>
  );
}

function Alarms({ alarms }: { alarms: Alarm[] }) {
  if (alarms.length === 0) return <p>No alarms.</p>;
  return (
    <section aria-labelledby="alarms">
      <h2 id="alarms">{plural(alarms.length, "alarm")}</h2>
      <ul class="alarms">
        {alarms.map((alarm) => (
          <li key={`${alarm.from} ${alarm.to} ${alarm.kind}`}>
            ⚠{" "}
            <b>
              {alarm.from} → {alarm.to}
            </b>{" "}
            since {when(alarm.since)}: {alarm.text}
          </li>
        ))}
      </ul>
    </section>
  );
}

const MARKS = { alarm: "⚠ ", stale: "? ", good: "", none: "" } as const;

function Grid({ mesh }: { mesh: Mesh }) {
  const path = useFleetPath();
  const cells = new Map(mesh.cells.map((cell) => [`${cell.from} ${cell.to}`, cell]));
  return (
    <section aria-labelledby={`mesh-${mesh.mesh}`}>
      <h2 id={`mesh-${mesh.mesh}`}>Mesh {mesh.mesh}</h2>
      <div class="scroll">
        <table class="mesh">
          <caption>Goodput from the host of the row to the host of the column</caption>
          <thead>
            <tr>
              <td />
              {mesh.hosts.map((host) => (
                <th scope="col" key={host}>
                  {host}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {mesh.hosts.map((from) => (
              <tr key={from}>
                <th scope="row">{from}</th>
                {mesh.hosts.map((to) => {
                  const cell = cells.get(`${from} ${to}`);
                  if (!cell) return <td key={to} class="empty" />;
                  return (
                    <td key={to} class={mark(cell)}>
                      <a
                        href={path({ mesh: mesh.mesh, from, to })}
                        title={sentence(cell)}
                        aria-label={sentence(cell)}
                      >
                        {MARKS[mark(cell)]}
                        {isImpossible(cell) ? IMPOSSIBLE : (cell.short ?? NOTHING)}
                      </a>
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {mesh.left_out !== undefined && (
        <p>
          And {plural(mesh.left_out, "more pair")}: <code>linerate mesh {mesh.mesh}</code> has all of them.
        </p>
      )}
    </section>
  );
}

function CellHistory({ mesh, from, to, round }: { mesh: string; from: string; to: string; round: number }) {
  const path = useFleetPath();
  const { value, problem } = useLoad(`${mesh} ${from} ${to} ${round}`, () => getCell(mesh, from, to));
  return (
    <section aria-labelledby="cell">
      <h2 id="cell">
        {from} → {to}
      </h2>
      {problem && (
        <p class="trouble" role="alert">
          {problem.text}
        </p>
      )}
      {value && <RunTable runs={value.runs} />}
      <p>
        <a href={path({})}>Close</a>
      </p>
    </section>
  );
}

function RunTable({
  runs,
  actions,
}: {
  runs: CalendarRun[];
  actions?: (run: CalendarRun) => preact.ComponentChild;
}) {
  if (runs.length === 0) return <p>No runs yet.</p>;
  return (
    <div class="scroll">
      <table>
        <thead>
          <tr>
            <th scope="col">Starts</th>
            <th scope="col">State</th>
            <th scope="col" class="number">
              Goodput
            </th>
            <th scope="col">Verdict or reason</th>
            {actions && <th scope="col">Actions</th>}
          </tr>
        </thead>
        <tbody>
          {runs.map((run) => (
            <tr key={run.run}>
              <td>{run.result ? <a href={runPath(run.run)}>{when(run.starts)}</a> : when(run.starts)}</td>
              <td>{words(run.state)}</td>
              <td class="number">
                {flowRate({ bitrate_bps: run.result?.goodput_bps, cause: run.result?.cause })}
              </td>
              <td>{run.reason ?? (run.confirms ? "second test" : words(run.result?.cause ?? ""))}</td>
              {actions && <td>{actions(run)}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Hosts({
  agents,
}: {
  agents: { name: string; address: string; port: number; state: string; reason?: string }[];
}) {
  return (
    <section aria-labelledby="hosts">
      <h2 id="hosts">Hosts</h2>
      <div class="scroll">
        <table>
          <thead>
            <tr>
              <th scope="col">Host</th>
              <th scope="col">Address</th>
              <th scope="col">State</th>
              <th scope="col">Note</th>
            </tr>
          </thead>
          <tbody>
            {agents.map((agent) => (
              <tr key={agent.name}>
                <th scope="row">{agent.name}</th>
                <td>
                  {agent.address}:{agent.port}
                </td>
                <td>{agent.state}</td>
                <td>{agent.reason}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

/** The agents that carry out the calendar by themselves. */
function Agents({ agents }: { agents: Agent[] }) {
  return (
    <section aria-labelledby="agents">
      <h2 id="agents">Agents</h2>
      <div class="scroll">
        <table>
          <thead>
            <tr>
              <th scope="col">Agent</th>
              <th scope="col">State</th>
              <th scope="col">Heard</th>
              <th scope="col">Has a calendar until</th>
              <th scope="col">Results to store</th>
              <th scope="col">linerate</th>
              <th scope="col">Note</th>
            </tr>
          </thead>
          <tbody>
            {agents.map((agent) => (
              <tr key={agent.name}>
                <th scope="row">{agent.name}</th>
                <td>{agent.state}</td>
                <td>{agent.heard ? when(agent.heard) : NOTHING}</td>
                <td>{agent.until ? when(agent.until) : NOTHING}</td>
                <td>{agent.waiting}</td>
                <td>{agent.program ?? NOTHING}</td>
                <td>{agent.note}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

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

function Schedules({ schedules, runs, next: nextPage, hosts, open, round, onChange }: SchedulesProps) {
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
      ...runs.filter((run) => run.schedule === schedule.name).map((run) => run.starts),
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
            actions={(run) =>
              can("run") && (
                <button type="button" onClick={() => act(() => cancelCalendarRun(run.run))}>
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
