// The tags of a run: shown, and added and removed by those who may.

import { useId, useState } from "preact/hooks";
import { addTag, removeTag } from "./api";
import { useVisitor } from "./load";
import { asProblem } from "./problem";

/** The address of the history with the runs of a tag. */
export const tagPath = (tag: string) => `/history?${new URLSearchParams({ tag })}`;

/** The tags of a run with links to the others that have them. */
export function TagList({ tags }: { tags: string[] | undefined }) {
  if (!tags?.length) return null;
  return (
    <span class="tags">
      {tags.map((tag) => (
        <a key={tag} class="tag" href={tagPath(tag)}>
          {tag}
        </a>
      ))}
    </span>
  );
}

interface TagsProps {
  run: string;
  tags: string[];
  /** A tag was added or removed: how the tags change, which may have changed meanwhile. */
  onChange: (changed: Change) => void;
}

type Change = (tags: string[]) => string[];

export function Tags({ run, tags, onChange }: TagsProps) {
  const { can, askForToken } = useVisitor();
  const [typed, setTyped] = useState("");
  const [trouble, setTrouble] = useState("");
  const id = useId();
  if (!can("run")) return tags.length > 0 ? <TagList tags={tags} /> : null;
  const change = async (done: Promise<void>, changed: Change) => {
    setTrouble("");
    try {
      await done;
      onChange(changed);
      return true;
    } catch (error) {
      const problem = asProblem(error);
      if (problem.status === 401) askForToken();
      setTrouble(problem.text);
      return false;
    }
  };
  const add = async (event: Event) => {
    event.preventDefault();
    const tag = typed.trim();
    if (!tag) return setTrouble("Type a tag.");
    const added = await change(addTag(run, tag), (tags) => [...new Set([...tags, tag])].sort());
    // What was typed since is the next one.
    if (added) setTyped((typed) => (typed.trim() === tag ? "" : typed));
  };
  return (
    <section class="tags" aria-label="Tags">
      {tags.map((tag) => (
        <span key={tag} class="tag">
          <a href={tagPath(tag)}>{tag}</a>
          <button
            type="button"
            aria-label={`Remove the tag ${tag}`}
            title="Remove this tag"
            onClick={() => change(removeTag(run, tag), (tags) => tags.filter((one) => one !== tag))}
          >
            ✕
          </button>
        </span>
      ))}
      <form onSubmit={add} noValidate>
        <label class="unseen" for={id}>
          New tag
        </label>
        <input
          id={id}
          value={typed}
          maxLength={64}
          placeholder="new tag"
          autocomplete="off"
          autocapitalize="none"
          aria-invalid={trouble !== ""}
          aria-describedby={trouble ? `${id}-trouble` : undefined}
          onInput={(event) => setTyped(event.currentTarget.value)}
        />
        <button type="submit">Add tag</button>
      </form>
      {trouble && (
        <p class="trouble" id={`${id}-trouble`} role="alert">
          {trouble}
        </p>
      )}
    </section>
  );
}
