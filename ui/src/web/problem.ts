// Why a request failed: RFC 9457 problems of the server, and a server that does not answer.

interface Details {
  title?: string;
  detail?: string;
  field?: string;
  limit?: number;
  retry_after?: number;
}

/** A request that was not carried out. */
export class Problem extends Error {
  /** The HTTP status; 0 if there was no answer. */
  readonly status: number;
  /** JSON path of the setting that is to blame. */
  readonly field: string | undefined;
  readonly limit: number | undefined;
  /** Seconds after which another attempt makes sense. */
  readonly retryAfter: number | undefined;

  constructor(status: number, details: Details) {
    super(details.detail || details.title || `The server answered with status ${status}.`);
    this.name = "Problem";
    this.status = status;
    this.field = details.field;
    this.limit = details.limit;
    this.retryAfter = details.retry_after;
  }

  /** What to say to the user. */
  get text(): string {
    if (this.retryAfter === undefined) return this.message;
    const sentence = /[.!?]$/.test(this.message) ? this.message : `${this.message}.`;
    return `${sentence} Try again in ${this.retryAfter} s.`;
  }
}

export const SILENT = "The server does not answer.";

/** The problem that an answer describes. */
export async function problemOf(answer: Response): Promise<Problem> {
  const isJson = /\bjson\b/.test(answer.headers.get("content-type") ?? "");
  const details: unknown = isJson ? await answer.json().catch(() => null) : null;
  const known = typeof details === "object" && details !== null ? (details as Details) : {};
  return new Problem(answer.status, known);
}

/** Any failure as a problem. */
export function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  // `fetch` rejects with a TypeError if there is no answer, and with the reason of its signal if that came first.
  const silent = error instanceof TypeError || (error instanceof Error && error.name === "TimeoutError");
  return new Problem(0, { detail: silent ? SILENT : String(error) });
}

/** Reads JSON in which a value that is null is as absent as one that is not there, except in a list. */
export function parsed(text: string): unknown {
  return JSON.parse(text, function (this: unknown, _, value) {
    return value === null && !Array.isArray(this) ? undefined : value;
  });
}
