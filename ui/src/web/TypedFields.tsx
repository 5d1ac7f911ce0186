// Fields whose values the server reads, and its answer to them.

import { useEffect, useRef, useState } from "preact/hooks";
import { Choice, Labelled } from "./Fields";
import { useProblem } from "./load";
import { asProblem, type Problem } from "./problem";
import type { TypedField, Values } from "./typed";

/** Pause in typing after which the server is asked. */
const TYPING_MS = 250;

interface Answered<T> {
  /** The latest answer; that of the values before while new ones are wrong or on their way. */
  answer: T | undefined;
  /** Whether the answer is not that of these values. */
  stale: boolean;
  /** What is wrong, by the fields. */
  errors: Record<string, string>;
  /** What is wrong with no field. */
  problem: Problem | undefined;
}

/** The server's answer to a body, a moment after its last change; none for an undefined one. */
export function useAnswer<B, T>(
  body: B | undefined,
  fields: readonly TypedField[],
  ask: (body: B) => Promise<T>,
): Answered<T> {
  const key = body === undefined ? undefined : JSON.stringify(body);
  const [found, setFound] = useState<{ key: string; answer: T }>();
  const [errors, setErrors] = useState<Record<string, string>>({});
  const [problem, setProblem] = useProblem();
  const first = useRef(true);
  useEffect(() => {
    setErrors({});
    setProblem(undefined);
    if (key === undefined) return setFound(undefined);
    let wanted = true;
    const refused = (error: unknown) => {
      const problem = asProblem(error);
      const field = fields.find(({ name }) => name === problem.field);
      if (field) setErrors({ [field.name]: problem.text });
      else setProblem(problem);
    };
    const asked = () => {
      ask(JSON.parse(key) as B).then(
        (answer) => wanted && setFound({ key, answer }),
        (error) => wanted && refused(error),
      );
    };
    const timer = setTimeout(asked, first.current ? 0 : TYPING_MS);
    first.current = false;
    return () => {
      wanted = false;
      clearTimeout(timer);
    };
  }, [key]);
  return { answer: found?.answer, stale: found?.key !== key, errors, problem };
}

interface TypedFieldsProps {
  fields: readonly TypedField[];
  values: Values;
  errors: Record<string, string>;
  onChange: (name: string, value: string) => void;
}

export function TypedFields({ fields, values, errors, onChange }: TypedFieldsProps) {
  return (
    <div class="grid">
      {fields.map((field) => (
        <One
          key={field.name}
          field={field}
          value={values[field.name] ?? ""}
          errors={errors}
          onChange={onChange}
        />
      ))}
    </div>
  );
}

interface OneProps {
  field: TypedField;
  value: string;
  errors: Record<string, string>;
  onChange: (name: string, value: string) => void;
}

function One({ field, value, errors, onChange }: OneProps) {
  const { name, label, hint, example, options, flag } = field;
  if (flag)
    return (
      <div class="field flag">
        <label class="check">
          <input
            type="checkbox"
            id={name}
            name={name}
            checked={value !== ""}
            aria-describedby={errors[name] ? `${name}-trouble` : undefined}
            onChange={(event) => onChange(name, event.currentTarget.checked ? "yes" : "")}
          />
          {label}
        </label>
        {errors[name] && (
          <p class="trouble" id={`${name}-trouble`}>
            {errors[name]}
          </p>
        )}
      </div>
    );
  return (
    <Labelled field={name} label={label} errors={errors} {...(hint ? { hint } : {})}>
      {(props) =>
        options ? (
          <Choice
            {...props}
            name={name}
            value={value}
            options={options}
            onChange={(value) => onChange(name, value)}
          />
        ) : (
          <input
            {...props}
            name={name}
            value={value}
            placeholder={example ?? ""}
            autocomplete="off"
            autocapitalize="none"
            spellcheck={false}
            onInput={(event) => onChange(name, event.currentTarget.value)}
          />
        )
      }
    </Labelled>
  );
}

interface FoldedFieldsProps extends TypedFieldsProps {
  summary: string;
}

/** Fields that are folded away until one of them is wrong; the summary says which are given. */
export function FoldedFields({ summary, ...props }: FoldedFieldsProps) {
  const wrong = props.fields.some(({ name }) => props.errors[name]);
  const [open, setOpen] = useState(false);
  useEffect(() => {
    if (wrong) setOpen(true);
  }, [wrong]);
  return (
    <details open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        More <span class="settings">{summary}</span>
      </summary>
      <TypedFields {...props} />
    </details>
  );
}
