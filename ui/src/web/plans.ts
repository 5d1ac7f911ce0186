// Plans as texts: where a mistake is, where one can be carried out, and what to type for it.

/** A bundled plan. */
export interface KnownPlan {
  name: string;
  about: string;
}

/** What is wrong with a plan, or with a setting if there is no line. */
export interface Mistake {
  line?: number;
  column?: number;
  quoted: string;
  text: string;
}

/** What a plan would do, or its mistakes. */
export interface Preview {
  mistakes: Mistake[];
  text?: string;
  points?: number;
  trials?: number;
  time_ns?: number;
  /** Where it can be carried out, the usual world first. */
  worlds: PlanWorld[];
}

/** Where plans are carried out. */
export type PlanWorld = "hosts" | "lab";

/** A plan to carry out. */
export interface PlanRequest {
  text: string;
  set: string[];
  world: PlanWorld;
  /** Whether the connections to the agents of the hosts are encrypted. */
  tls?: boolean;
}

/** The worlds in which this server can carry out a plan, and for each of the others, why it cannot. */
export function worldsOf(
  preview: Preview,
  server: PlanWorld[],
  host: string,
): { possible: PlanWorld[]; missing: string[] } {
  const reasons: Record<PlanWorld, string> = {
    hosts: `${host} has no token for the agents of other hosts. Whoever runs it can give it one with linerate serve --web-agent-token-file.`,
    lab: `${host} cannot emulate networks: its server would have to run as root.`,
  };
  return {
    possible: preview.worlds.filter((world) => server.includes(world)),
    missing: preview.worlds.filter((world) => !server.includes(world)).map((world) => reasons[world]),
  };
}

/** Settings as typed, one in each line. */
export const settingsOf = (typed: string): string[] =>
  typed
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");

/** The position of a line and a column, both from 1, in a text; columns count letters, as the server does. */
export function offsetOf(text: string, line: number, column: number): number {
  const lines = text.split("\n");
  const before = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
  const letters = [...(lines[line - 1] ?? "")].slice(0, column - 1).join("");
  return Math.min(before + letters.length, text.length);
}

/** A word as a shell takes it. */
export const quoted = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;

/** The command that executes a plan: a bundled one, or a file. */
export const commandOf = (plan: string, settings: string[]): string =>
  ["linerate run", quoted(plan), ...settings.map((one) => `--set ${quoted(one)}`)].join(" ");
