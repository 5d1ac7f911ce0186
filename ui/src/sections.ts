// Parts of a long page that are folded: a link to one, or into one, opens it.

/** On paper nothing can be opened: what qualifies an answer is printed with it. */
export function print(root: ParentNode): void {
  for (const details of root.querySelectorAll<HTMLDetailsElement>(".verdict details")) details.open = true;
}

/** Opens the element that the address names, and everything around it, and shows it. */
export function open(root: ParentNode, name: string): void {
  const target = name ? root.querySelector(`#${CSS.escape(name)}`) : null;
  if (!target) return;
  const folded = [...(target.matches("details") ? [target] : []), ...around(target)];
  for (const details of folded) (details as HTMLDetailsElement).open = true;
  target.scrollIntoView();
}

function around(element: Element): Element[] {
  const parent = element.parentElement?.closest("details");
  return parent ? [parent, ...around(parent)] : [];
}

/** Follows links within the page, and closes the contents once one of them was chosen. */
export function follow(root: Document): void {
  const go = () => open(root, location.hash.slice(1));
  addEventListener("hashchange", go);
  root.addEventListener("click", (event) => {
    const link = (event.target as Element).closest?.<HTMLAnchorElement>('a[href^="#"]');
    if (!link) return;
    link.closest<HTMLDetailsElement>("nav details")?.removeAttribute("open");
    // The same address again is no change of it.
    if (link.hash === location.hash) go();
  });
  go();
}
