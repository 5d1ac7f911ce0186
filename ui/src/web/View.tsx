// A finished run or a comparison as the server wrote it, with its charts drawn by the code of the report.

import { useLayoutEffect, useRef } from "preact/hooks";
import { draw } from "../draw";
import { open } from "../sections";
import { addTableControls } from "../tables";
import type { View } from "./api";

export function Document({ view }: { view: View }) {
  const place = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const root = place.current;
    if (!root) return;
    // The server escapes everything in it that came from a user or another host.
    root.innerHTML = view.html;
    const remove = draw(root, view.charts);
    addTableControls(root);
    open(root, location.hash.slice(1));
    return () => {
      remove();
      root.replaceChildren();
    };
  }, [view]);
  return <div class="document" ref={place} />;
}

/** Whether the document has a title of its own. */
export const hasHeading = (view: View) => /<h1[\s>]/.test(view.html);
