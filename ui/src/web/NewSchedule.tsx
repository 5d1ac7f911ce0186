// A new schedule of a fleet: which hosts, what to measure, and when.

import { useRef, useState } from "preact/hooks";
import { addSchedule } from "./api";
import { focusField } from "./Fields";
import { newSchedule, scheduleFields } from "./fleet";
import { asProblem } from "./problem";
import { TypedFields } from "./TypedFields";
import type { Values } from "./typed";

interface NewScheduleProps {
  hosts: string[];
  onAdd: (name: string) => void;
  onProblem: (problem: unknown) => void;
}

export function NewSchedule({ hosts, onAdd, onProblem }: NewScheduleProps) {
  const fields = scheduleFields(hosts);
  const empty = { from: hosts[0] ?? "", to: hosts[1] ?? "" };
  const [values, setValues] = useState<Values>(empty);
  const [errors, setErrors] = useState<Record<string, string>>({});
  const [sending, setSending] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const details = useRef<HTMLDetailsElement>(null);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (sending) return;
    onProblem(undefined);
    const made = newSchedule(values);
    setErrors("errors" in made ? made.errors : {});
    if ("errors" in made) {
      const first = fields.find(({ name }) => made.errors[name]);
      return first && focusField(form.current, first.name);
    }
    setSending(true);
    try {
      await addSchedule(made.request);
      setValues(empty);
      if (details.current) details.current.open = false;
      onAdd(made.request.name);
    } catch (error) {
      const problem = asProblem(error);
      const field = fields.find(({ at }) => at === problem.field);
      if (!field) return onProblem(problem);
      setErrors({ [field.name]: problem.text });
      focusField(form.current, field.name);
    } finally {
      setSending(false);
    }
  };
  return (
    <details ref={details}>
      <summary>Add a schedule</summary>
      <form ref={form} onSubmit={submit} noValidate aria-label="New schedule">
        <TypedFields
          fields={fields}
          values={values}
          errors={errors}
          onChange={(name, value) => setValues((values) => ({ ...values, [name]: value }))}
        />
        <button type="submit" class="primary" disabled={sending}>
          Add schedule
        </button>
      </form>
    </details>
  );
}
