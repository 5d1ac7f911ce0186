// What went wrong with a request. A missing token is not trouble: the page then asks for it.

import type { Problem } from "./problem";

export function Trouble({ problem }: { problem: Problem | undefined }) {
  if (!problem || problem.status === 401) return null;
  return (
    <p class="trouble" role="alert">
      {problem.text}
    </p>
  );
}
