// The event logs inside the page: base64 of gzip of JSON lines.

import { save } from "./save";

/** The compressed bytes of a log. */
export function packed(text: string): Uint8Array<ArrayBuffer> {
  const letters = atob(text.trim());
  const bytes = new Uint8Array(letters.length);
  for (let at = 0; at < letters.length; at += 1) bytes[at] = letters.charCodeAt(at);
  return bytes;
}

/** The uncompressed log. */
export async function unpacked(text: string): Promise<Blob> {
  const stream = new Blob([packed(text)]).stream().pipeThrough(new DecompressionStream("gzip"));
  return await new Response(stream).blob();
}

/** Makes each button save the log that it names. */
export function serve(root: ParentNode): void {
  for (const button of root.querySelectorAll<HTMLButtonElement>("button[data-log]")) {
    button.addEventListener("click", async () => {
      const text = root.querySelector(`#log-${button.dataset.log}`)?.textContent;
      if (!text) return;
      save(await unpacked(text), button.dataset.name ?? "linerate.jsonl");
    });
  }
}
