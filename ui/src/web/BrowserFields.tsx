// The form of a test from this browser to this host.

import { useRef, useState } from "preact/hooks";
import type { CurrentRuns } from "./api";
import {
  aboutBrowser,
  BROWSER_DIRECTIONS,
  type BrowserErrors,
  type BrowserField,
  type BrowserForm,
  type BrowserSettings,
  EMPTY_BROWSER,
  fromBrowserQuery,
  settingsOf,
  toBrowserQuery,
} from "./browserForm";
import { Choice, focusField, Labelled } from "./Fields";
import { useVisitor } from "./load";
import { here } from "./router";
import { plural } from "./words";

interface BrowserFieldsProps {
  currentRuns: CurrentRuns | undefined;
  /** The form has changed: its address. */
  onChange: (query: URLSearchParams) => void;
  onStart: (settings: BrowserSettings) => void;
}

export function BrowserFields({ currentRuns, onChange, onStart }: BrowserFieldsProps) {
  const { session } = useVisitor();
  const [form, setForm] = useState<BrowserForm>(() => fromBrowserQuery(here().searchParams));
  const [errors, setErrors] = useState<BrowserErrors>({});
  const element = useRef<HTMLFormElement>(null);
  const edit = (change: Partial<BrowserForm>) => {
    const next = { ...form, ...change };
    setForm(next);
    // What is wrong with one field may depend on another one.
    setErrors({});
    onChange(toBrowserQuery(next));
  };
  const submit = (event: Event) => {
    event.preventDefault();
    const made = settingsOf(form);
    if ("settings" in made) return onStart(made.settings);
    setErrors(made.errors);
    const first = (Object.keys(EMPTY_BROWSER) as BrowserField[]).find((field) => made.errors[field]);
    if (first) focusField(element.current, first);
  };
  const text = (field: "connections" | "seconds") => ({
    name: field,
    value: form[field],
    inputMode: "numeric" as const,
    onInput: (event: { currentTarget: HTMLInputElement }) => edit({ [field]: event.currentTarget.value }),
  });
  const seconds = aboutBrowser(form);
  return (
    <form ref={element} onSubmit={submit} noValidate>
      <div class="grid">
        <Labelled field="connections" label="Connections" hint="1 to 16; downloads 1 to 6" errors={errors}>
          {(props) => <input {...props} {...text("connections")} autocomplete="off" />}
        </Labelled>
        <Labelled field="seconds" label="Seconds per direction" hint="1 to 60" errors={errors}>
          {(props) => <input {...props} {...text("seconds")} autocomplete="off" />}
        </Labelled>
        <Labelled field="directions" label="Directions" errors={errors}>
          {(props) => (
            <Choice
              {...props}
              name="directions"
              value={form.directions}
              options={BROWSER_DIRECTIONS}
              onChange={(directions) => edit({ directions })}
            />
          )}
        </Labelled>
      </div>
      <button type="submit" class="primary">
        Start test
      </button>
      <p class="faint">
        {seconds !== undefined && `About ${plural(seconds, "second")}. `}
        {currentRuns?.running && "Another test is running: this one starts when the host is free. "}
      </p>
      <WhoCounts host={session.host} />
    </form>
  );
}

/** Where the figures come from, and how good they are. */
export function WhoCounts({ host }: { host: string }) {
  return (
    <p class="faint">
      The figures are those that {host} counts: the payload that it has sent or received, by its own clock.
      Above a few Gb/s a browser is rougher than the native client: there, run <code>linerate</code> on this
      computer instead.
    </p>
  );
}
