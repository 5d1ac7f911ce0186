// Files that the page itself makes, saved by the browser.

/** Starts to save a file. */
export function save(content: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  // The browser has started to save within a minute.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** A file name for something with this title that is valid on all file systems. */
export function fileName(title: string, extension: string): string {
  const words = title
    .normalize("NFKD")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-");
  const name = words.replace(/^-+|-+$/g, "").slice(0, 60);
  return `linerate-${name || "page"}.${extension}`;
}

/** A small button for such a file. */
export function saveButton(
  label: string,
  about: string,
  make: () => void | Promise<void>,
): HTMLButtonElement {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "save";
  button.textContent = label;
  button.title = about;
  button.setAttribute("aria-label", about);
  button.addEventListener("click", () => void make());
  return button;
}
