// The calendar of a fleet: who sees whom how well, what needs attention, and what is measured when.

import { useEffect } from "preact/hooks";
import { getAgents, getCell, getFleet, getMeshes, getSchedules } from "./api";
import { Schedules } from "./FleetSchedules";
import { type Agent, type Alarm, isImpossible, type Mesh, mark, sentence } from "./fleet";
import { LISTS, Pages, RunTable, useFleetPath } from "./fleetParts";
import { useLoad, usePolled } from "./load";
import { useAddress } from "./router";
import { Trouble } from "./Trouble";
import { IMPOSSIBLE, NOTHING, plural, when } from "./words";

/** How often the page asks again, milliseconds. */
const REFRESH_MS = 10_000;

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
  // The meshes after one that was removed are not there either.
  if (problem?.status === 404 && !meshesAfter) return <NoFleet />;
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
      {meshesAfter && <Pages list="meshes_after" next={undefined} what="meshes" />}
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
                  {agent.address.includes(":") ? `[${agent.address}]` : agent.address}:{agent.port}
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
