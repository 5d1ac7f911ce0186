// The clipboard of the system.

/** Copies a text. Pages without HTTPS have no clipboard: there, a selected field is copied. */
export async function copyText(text: string, within: HTMLElement | null = document.body): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = document.createElement("textarea");
    field.value = text;
    // Behind an open dialog nothing can be selected.
    (within ?? document.body).append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done;
  }
}
