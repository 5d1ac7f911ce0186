// What a page fetches.

import { createContext } from "preact";
import { useCallback, useContext, useEffect, useRef, useState } from "preact/hooks";
import { type Ability, CURRENT_RUNS_URL, type CurrentRuns, type Session } from "./api";
import { asProblem, type Problem } from "./problem";
import { listen } from "./stream";

export interface Visitor {
  session: Session;
  can(ability: Ability): boolean;
  /** Shows the form for the token. */
  askForToken(): void;
}

export const VisitorContext = createContext<Visitor | undefined>(undefined);

export function useVisitor(): Visitor {
  const visitor = useContext(VisitorContext);
  if (!visitor) throw new Error("a page outside of the frame of the pages");
  return visitor;
}

/**
 * Where this browser can measure to the host; undefined if it takes no such tests, and for a page over HTTPS, also behind
 * a proxy, if the port has no TLS: browsers let no such page connect there.
 */
export function browserPort(session: Session, protocol = location.protocol): BrowserPort | undefined {
  const at = session.browser_test;
  const encrypted = protocol === "https:";
  return at && (at.tls || !encrypted) ? { port: at.port, encrypted } : undefined;
}

export interface BrowserPort {
  port: number;
  /** Whether the connections of a test are encrypted, as those of its page are. */
  encrypted: boolean;
}

/** Reports a problem; one that a token would solve shows the form for it. */
export function useProblem(): [Problem | undefined, (error: unknown) => void] {
  const { askForToken } = useVisitor();
  const [problem, setProblem] = useState<Problem>();
  const set = useCallback((error: unknown) => {
    const problem = error === undefined ? undefined : asProblem(error);
    if (problem?.status === 401) askForToken();
    setProblem(problem);
  }, []);
  return [problem, set];
}

/**
 * The answer of `get`, again whenever `key` changes or `reload` is called; the old one stays until then, and also if
 * there is a problem. `at` is when it came.
 */
export function useLoad<T>(key: string, get: () => Promise<T>) {
  const [value, setValue] = useState<T>();
  const [at, setAt] = useState<Date>();
  const [problem, setProblem] = useProblem();
  const [round, setRound] = useState(0);
  // Answers and problems so far.
  const [settled, setSettled] = useState(0);
  const latest = useRef(get);
  latest.current = get;
  useEffect(() => {
    let wanted = true;
    latest.current().then(
      (value) => {
        if (!wanted) return;
        setValue(value);
        setAt(new Date());
        setProblem(undefined);
        setSettled((settled) => settled + 1);
      },
      (error) => {
        if (!wanted) return;
        setProblem(error);
        setSettled((settled) => settled + 1);
      },
    );
    return () => {
      wanted = false;
    };
  }, [key, round]);
  const reload = useCallback(() => setRound((round) => round + 1), []);
  return { value, at, problem, reload, round, settled };
}

/** The same, asked again after each pause of this length, ms, while the page is visible. */
export function usePolled<T>(key: string, get: () => Promise<T>, pause: number) {
  const loaded = useLoad(key, get);
  const { settled, reload } = loaded;
  useEffect(() => {
    // A slow server is not asked again before it has answered: its answer would not count.
    if (settled === 0) return;
    let timer = setTimeout(again, pause);
    function again() {
      if (document.hidden) timer = setTimeout(again, pause);
      else reload();
    }
    return () => clearTimeout(timer);
  }, [settled, reload]);
  return loaded;
}

/** What runs, what waits, and what ended last; undefined until the server has said it. */
export function useCurrentRuns(inBackground = false): CurrentRuns | undefined {
  const [currentRuns, setRuns] = useState<CurrentRuns>();
  const { askForToken } = useVisitor();
  useEffect(
    () =>
      listen(
        CURRENT_RUNS_URL,
        {
          message: (event, data) => event === "runs" && setRuns(data as CurrentRuns),
          refused: (problem) => problem.status === 401 && askForToken(),
        },
        !inBackground,
      ),
    [],
  );
  return currentRuns;
}
