// Plans as texts: where a mistake is, and what to type to carry one out.

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
