// What went wrong with a request. A missing token is not trouble: the page then asks for it.

import type { Problem } from "./problem";
import { clock } from "./words";

interface TroubleProps {
  problem: Problem | undefined;
  /** When the answer came that the page shows nevertheless. */
  shown?: Date | undefined;
}

export function Trouble({ problem, shown }: TroubleProps) {
  if (!problem || problem.status === 401) return null;
  return (
    <p class="trouble" role="alert">
      {problem.text}
      {shown && ` What is shown is of ${clock(shown)}.`}
    </p>
  );
}
