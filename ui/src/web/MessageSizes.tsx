// A series over message sizes: how long a message takes, and which rate that is.

import { useEffect, useRef, useState } from "preact/hooks";
import { startRun } from "./api";
import { focusField } from "./Fields";
import { useProblem, useVisitor } from "./load";
import { asProblem } from "./problem";
import { navigate, runPath, useAddress } from "./router";
import { FIELDS, fieldOf, MAIN, MORE, requestOf } from "./sizes";
import { Trouble } from "./Trouble";
import { FoldedFields, TypedFields } from "./TypedFields";
import { addressOf, summaryOf, valuesOf } from "./typed";

const PATH = "/sizes";

export function MessageSizesPage() {
  const { session, can, askForToken } = useVisitor();
  const values = valuesOf(useAddress().searchParams, FIELDS);
  const [errors, setErrors] = useState<Record<string, string>>({});
  const [problem, setProblem] = useProblem();
  const [busy, setBusy] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    document.title = "How long does a message take? · linerate";
  }, []);
  const onChange = (name: string, value: string) => {
    setErrors(({ [name]: _, ...others }) => others);
    navigate(addressOf(PATH, { ...values, [name]: value }, FIELDS), true);
  };
  const blame = (errors: Record<string, string>) => {
    setErrors(errors);
    const first = FIELDS.find(({ name }) => errors[name]);
    if (first) focusField(form.current, first.name);
  };
  const submit = async (event: Event) => {
    event.preventDefault();
    if (busy) return;
    setProblem(undefined);
    const made = requestOf(values);
    if ("errors" in made) return blame(made.errors);
    setErrors({});
    setBusy(true);
    try {
      const { id } = await startRun(made.request);
      navigate(runPath(id));
    } catch (error) {
      const problem = asProblem(error);
      const field = fieldOf(problem.field);
      if (field) blame({ [field]: problem.text });
      else setProblem(problem);
      setBusy(false);
    }
  };
  return (
    <div class="tool">
      <h1>How long does a message take?</h1>
      <p class="faint">
        Messages of one size after the other go between {session.host} and another host, each as soon as the
        one before has arrived. The curves show the time of a message and its rate: where they bend, a buffer
        or a segment ends.
      </p>
      {can("run") ? (
        <form ref={form} onSubmit={submit} noValidate>
          <TypedFields fields={MAIN} values={values} errors={errors} onChange={onChange} />
          <FoldedFields
            fields={MORE}
            summary={summaryOf(values, MORE)}
            values={values}
            errors={errors}
            onChange={onChange}
          />
          <p class="actions">
            <button type="submit" class="primary" disabled={busy}>
              {busy ? "Starting…" : "Start"}
            </button>
          </p>
          <Trouble problem={problem} />
        </form>
      ) : (
        <p>
          To start tests from {session.host}, you need a token that may do so.{" "}
          {!session.signed_in && (
            <button type="button" onClick={askForToken}>
              Sign in
            </button>
          )}
        </p>
      )}
    </div>
  );
}
