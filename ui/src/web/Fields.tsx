// Parts of forms.

import type { ComponentChildren } from "preact";

interface LabelledProps<F extends string> {
  field: F;
  label: string;
  hint?: string;
  errors: Partial<Record<F, string>>;
  children: (props: {
    id: string;
    "aria-invalid": boolean;
    "aria-describedby": string | undefined;
  }) => ComponentChildren;
}

/** A field with its label, a hint, and what is wrong with it. */
export function Labelled<F extends string>({ field, label, hint, errors, children }: LabelledProps<F>) {
  const trouble = errors[field];
  const described = [hint && `${field}-hint`, trouble && `${field}-trouble`].filter(Boolean).join(" ");
  return (
    <div class="field">
      <label for={field}>{label}</label>
      {children({
        id: field,
        "aria-invalid": trouble !== undefined,
        "aria-describedby": described || undefined,
      })}
      {trouble && (
        <p class="trouble" id={`${field}-trouble`}>
          {trouble}
        </p>
      )}
      {hint && (
        <p class="hint" id={`${field}-hint`}>
          {hint}
        </p>
      )}
    </div>
  );
}

interface ChoiceProps<T extends string> {
  id: string;
  name: string;
  value: T;
  options: readonly (readonly [T, string])[];
  onChange: (value: T) => void;
}

export function Choice<T extends string>({ value, options, onChange, ...props }: ChoiceProps<T>) {
  return (
    <select {...props} value={value} onChange={(event) => onChange(event.currentTarget.value as T)}>
      {options.map(([name, label]) => (
        <option key={name} value={name}>
          {label}
        </option>
      ))}
    </select>
  );
}

/** Goes to a field, once it is in sight. */
export function focusField(form: HTMLFormElement | null, name: string): void {
  setTimeout(() => form?.querySelector<HTMLElement>(`[name="${name}"]`)?.focus());
}
