// Plans: a bundled one or one's own, its mistakes, and what it would do.

import { useEffect, useRef, useState } from "preact/hooks";
import { getPlan, getPlans, previewPlan, runPlan } from "./api";
import { copyText } from "./clipboard";
import { Choice, Labelled } from "./Fields";
import { useLoad, useProblem, useVisitor } from "./load";
import {
  commandOf,
  type Mistake,
  offsetOf,
  type PlanWorld,
  type Preview,
  settingsOf,
  worldsOf,
} from "./plans";
import { navigate, runPath, useAddress } from "./router";
import { Trouble } from "./Trouble";
import { useAnswer } from "./TypedFields";

/** Prefix of changed plans in the storage of this window. */
const KEPT = "linerate plan ";
const OWN = `# A plan of your own: what is measured, and what varies.
name = "my-plan"
repeats = 3

[lab]
topology = "pair"

[test]
duration = 5
upload = true

[axis.window]
values = ["64K", "256K", "1M"]
`;

/** A plan in the editor. */
interface OpenedPlan {
  name: string;
  /** The text before any change. */
  original: string;
  text: string;
}

export function PlansPage() {
  const address = useAddress();
  const name = address.searchParams.get("plan") ?? "";
  const typed = address.searchParams.getAll("set").join("\n");
  const { value: known, problem: unlisted } = useLoad("plans", getPlans);
  const [opened, setOpened] = useState<OpenedPlan>();
  const [problem, setProblem] = useProblem();
  useEffect(() => {
    document.title = "Plans · linerate";
  }, []);
  useEffect(() => {
    let wanted = true;
    setProblem(undefined);
    const show = (original: string) => wanted && setOpened({ name, original, text: kept(name) ?? original });
    if (name === "") show(OWN);
    else
      getPlan(name).then(
        ({ text }) => show(text),
        (error) => wanted && setProblem(error),
      );
    return () => {
      wanted = false;
    };
  }, [name]);
  const goTo = (plan: string, settings: string, replace: boolean) => {
    const query = new URLSearchParams();
    if (plan !== "") query.set("plan", plan);
    for (const line of settings === "" ? [] : settings.split("\n")) query.append("set", line);
    navigate(query.size > 0 ? `/plans?${query}` : "/plans", replace);
  };
  // Not under the name of another one, which is on its way.
  const { text, original = "" } = opened?.name === name ? opened : {};
  const change = (text: string) => {
    setOpened({ name, original, text });
    keep(name, text === original ? undefined : text);
  };
  const settings = settingsOf(typed);
  const about = known?.plans.find((plan) => plan.name === name)?.about;
  const asked = text === undefined ? undefined : { text, set: settings };
  const { answer: preview, stale, problem: refused } = useAnswer(asked, [], previewPlan);
  const wrong = (stale ? [] : (preview?.mistakes ?? []))
    .filter(({ line }) => line === undefined)
    .map(({ quoted, text }) => (quoted === "" ? text : `${quoted}: ${text}`))
    .join("; ");
  const options = [
    ["", "One of your own"],
    ...(known?.plans ?? []).map(({ name }) => [name, name] as const),
  ] as const;
  return (
    <div class="tool plans">
      <h1>Plans</h1>
      <p class="faint">
        A plan measures the same thing under many settings, again and again, and says what differs. Here you
        see what one would do, and start it.
      </p>
      <form onSubmit={(event) => event.preventDefault()} noValidate>
        <div class="field">
          <label for="plan">Plan</label>
          <Choice
            id="plan"
            name="plan"
            value={name}
            options={options}
            onChange={(plan) => goTo(plan, "", false)}
          />
          {about !== undefined && <p class="hint">{about}</p>}
        </div>
        {text !== undefined && <Editor text={text} preview={stale ? undefined : preview} onChange={change} />}
        {text !== undefined && text !== original && (
          <p class="actions">
            <button type="button" onClick={() => change(original)}>
              Undo all changes
            </button>
          </p>
        )}
        <Labelled
          field="settings"
          label="Settings instead of those in the plan"
          hint="One in each line, as KEY=VALUE: repeats=3, test.duration=5s, axis.window=64K,1M"
          errors={wrong === "" ? {} : { settings: wrong }}
        >
          {(props) => (
            <textarea
              {...props}
              class="pasted"
              rows={2}
              spellcheck={false}
              value={typed}
              onInput={(event) => goTo(name, event.currentTarget.value, true)}
            />
          )}
        </Labelled>
      </form>
      <Trouble problem={problem ?? unlisted ?? refused} />
      {preview && text !== undefined && (
        <Answer
          preview={preview}
          stale={stale}
          text={text}
          plan={name !== "" && text === original ? name : undefined}
          settings={settings}
        />
      )}
    </div>
  );
}

/** The changed plan; undefined if there is none, or the browser keeps nothing for pages. */
function kept(plan: string): string | undefined {
  try {
    return sessionStorage.getItem(KEPT + plan) ?? undefined;
  } catch {
    return undefined;
  }
}

function keep(plan: string, text: string | undefined): void {
  try {
    if (text === undefined) sessionStorage.removeItem(KEPT + plan);
    else sessionStorage.setItem(KEPT + plan, text);
  } catch {
    // The text is lost with the page then.
  }
}

interface EditorProps {
  text: string;
  preview: Preview | undefined;
  onChange: (text: string) => void;
}

function Editor({ text, preview, onChange }: EditorProps) {
  const editor = useRef<HTMLTextAreaElement>(null);
  // Those of settings are shown at their field.
  const mistakes = (preview?.mistakes ?? []).filter(({ line }) => line !== undefined);
  const show = ({ line, column }: Mistake) => {
    if (line === undefined || !editor.current) return;
    const at = offsetOf(text, line, column ?? 1);
    editor.current.focus();
    editor.current.setSelectionRange(at, at + 1);
  };
  return (
    <div class="field">
      <label for="text">File (TOML)</label>
      <textarea
        id="text"
        ref={editor}
        class="pasted"
        rows={18}
        spellcheck={false}
        autocapitalize="off"
        value={text}
        aria-invalid={mistakes.length > 0}
        aria-describedby="mistakes"
        onInput={(event) => onChange(event.currentTarget.value)}
      />
      <ul id="mistakes" class="mistakes" role="status">
        {mistakes.map((mistake) => (
          <li key={`${mistake.line} ${mistake.column} ${mistake.text}`} class="trouble">
            <button type="button" class="link" onClick={() => show(mistake)}>
              Line {mistake.line}:
            </button>{" "}
            {mistake.text}
          </li>
        ))}
      </ul>
    </div>
  );
}

interface AnswerProps {
  preview: Preview;
  stale: boolean;
  text: string;
  /** The name of an unchanged bundled plan. */
  plan: string | undefined;
  settings: string[];
}

function Answer({ preview, stale, text, plan, settings }: AnswerProps) {
  const [copied, setCopied] = useState("");
  if (preview.text === undefined) return null;
  const file = `${/^name\s*=\s*"([\w-]+)"/m.exec(text)?.[1] ?? "plan"}.toml`;
  const command = commandOf(plan ?? file, settings);
  const copy = async () => {
    setCopied((await copyText(command)) ? "Copied" : "Copy the command from the page");
    setTimeout(() => setCopied(""), 3000);
  };
  return (
    <section class={stale ? "answer stale" : "answer"} aria-label="What it would do">
      <h2>What it would do</h2>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by keyboard */}
      <pre class="described" tabIndex={0}>
        {preview.text}
      </pre>
      <h2>Carry it out</h2>
      <StartPlan preview={preview} stale={stale} text={text} settings={settings} />
      <p>
        <span class="faint">In a terminal: </span>
        {plan === undefined && (
          <>
            <a download={file} href={`data:application/toml;charset=utf-8,${encodeURIComponent(text)}`}>
              Save {file}
            </a>
            , then in its folder{" "}
          </>
        )}
        <code>{command}</code>
      </p>
      <p class="actions">
        <button type="button" onClick={copy}>
          Copy the command
        </button>
        <span role="status" class="faint">
          {copied}
        </span>
      </p>
    </section>
  );
}

interface StartPlanProps {
  preview: Preview;
  stale: boolean;
  text: string;
  settings: string[];
}

/** Starts the plan from this page, or says why that cannot be. */
function StartPlan({ preview, stale, text, settings }: StartPlanProps) {
  const { session, can, askForToken } = useVisitor();
  const [chosen, setChosen] = useState<PlanWorld>();
  const [tls, setTls] = useState(false);
  const [starting, setStarting] = useState(false);
  const [problem, setProblem] = useProblem();
  const { possible, missing } = worldsOf(preview, session.plan_worlds, session.host);
  const world = possible.find((one) => one === chosen) ?? possible[0];
  if (world === undefined) {
    const unplaced = "Some hosts of the plan have no address, and it has no [lab] with a topology.";
    return (missing.length > 0 ? missing : [unplaced]).map((reason) => (
      <p key={reason} class="faint">
        {reason}
      </p>
    ));
  }
  if (!can("run"))
    return (
      <p>
        Carrying out plans from {session.host} needs a token that may start tests.{" "}
        {!session.signed_in && (
          <button type="button" onClick={askForToken}>
            Sign in
          </button>
        )}
      </p>
    );
  const labels: Record<PlanWorld, string> = {
    hosts: "between the hosts of the plan",
    lab: `in a network that ${session.host} emulates`,
  };
  const start = async () => {
    setStarting(true);
    setProblem(undefined);
    try {
      const { id } = await runPlan({ text, set: settings, world, tls: tls && world === "hosts" });
      navigate(runPath(id));
    } catch (error) {
      setProblem(error);
      setStarting(false);
    }
  };
  return (
    <form
      class="start-plan"
      onSubmit={(event) => {
        event.preventDefault();
        void start();
      }}
    >
      {possible.length > 1 ? (
        <div class="field">
          <label for="world">Where</label>
          <Choice
            id="world"
            name="world"
            value={world}
            options={possible.map((one) => [one, labels[one]] as const)}
            onChange={setChosen}
          />
        </div>
      ) : (
        <p>It is measured {labels[world]}.</p>
      )}
      {world === "hosts" && (
        <label class="check">
          <input type="checkbox" checked={tls} onChange={(event) => setTls(event.currentTarget.checked)} />{" "}
          Encrypt the control connections: the agents were started with <code>--tls</code>
        </label>
      )}
      <p class="actions">
        <button type="submit" class="primary" disabled={starting || stale}>
          {starting ? "Starting…" : "Run this plan"}
        </button>
      </p>
      <Trouble problem={problem} />
    </form>
  );
}
