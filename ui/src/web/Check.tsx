// Whether printed or typed figures can be true: the judgement in words, what makes it so, and an acceptance rule.

import { useEffect, useRef, useState } from "preact/hooks";
import { bitrate, ratio } from "../units";
import { getCheck } from "./api";
import {
  type Acceptance,
  because,
  type Check,
  counted,
  FIELDS,
  type Figure,
  FOLDED,
  headline,
  isAsked,
  type Line,
  MAIN,
  outcome,
  SIGNS,
  type Test,
  told,
  VERDICTS,
  withRule,
} from "./check";
import { navigate, useAddress } from "./router";
import { Trouble } from "./Trouble";
import { FoldedFields, TypedFields, useAnswer } from "./TypedFields";
import { addressOf, bodyOf, hashOf, summaryOf, textOf, type Values, valuesOf } from "./typed";
import { plural, words } from "./words";

const PATH = "/check";
/** Most tests of a text whose acceptance is shown. */
const MAX_ACCEPTED = 10;
const EXAMPLE = { rate: "966.5M", link: "1G", duration: "10s" };

/** The pasted text, which the address has after its #. */
function usePasted(hash: string): [string, (text: string) => void] {
  const [text, setText] = useState(() => textOf(hash) ?? "");
  const written = useRef(hash);
  useEffect(() => {
    const found = textOf(hash);
    // Another link to this page: neither what was typed here, nor a place in the page.
    if (hash !== written.current && found !== undefined) setText(found);
    written.current = hash;
  }, [hash]);
  return [
    text,
    (text: string) => {
      written.current = hashOf(text);
      setText(text);
    },
  ];
}

export function CheckPage() {
  const { searchParams, hash } = useAddress();
  const values = valuesOf(searchParams, FIELDS);
  const [text, setText] = usePasted(hash);
  const asked = isAsked(values, text);
  const body = { ...bodyOf(values, FIELDS), ...(text.trim() ? { text } : {}) };
  const { answer, stale, errors, problem } = useAnswer(asked ? body : undefined, FIELDS, getCheck);
  useEffect(() => {
    document.title = "Can this be true? · linerate";
  }, []);
  const show = (values: Values, text: string) =>
    navigate(addressOf(PATH, values, FIELDS) + hashOf(text), true);
  const edit = (values: Values) => show(values, text);
  const paste = (text: string) => {
    setText(text);
    show(values, text);
  };
  const fields = {
    values,
    errors,
    onChange: (name: string, value: string) => edit({ ...values, [name]: value }),
  };
  return (
    <div class="tool">
      <h1>Can this be true?</h1>
      <form onSubmit={(event) => event.preventDefault()} noValidate>
        <div class="field">
          <label for="text">Result of a program</label>
          <textarea
            id="text"
            rows={5}
            class="pasted"
            value={text}
            spellcheck={false}
            autocomplete="off"
            placeholder="Paste what iperf3, iperf, ttcp, nuttcp, NTttcp, NetPIPE or netperf printed, or give figures below"
            aria-describedby="text-hint"
            onInput={(event) => paste(event.currentTarget.value)}
          />
          <p class="hint" id="text-hint">
            {text && !hashOf(text)
              ? "This text is too long for the address of the page: a link to the page is without it."
              : "It is checked on this server and not kept."}
          </p>
        </div>
        <div class="main">
          <TypedFields fields={MAIN} {...fields} />
        </div>
        <label class="check rule">
          <input
            type="checkbox"
            checked={Boolean(values.acceptance)}
            onChange={(event) => edit(withRule(values, event.currentTarget.checked))}
          />
          <span>
            Acceptance of a gigabit link: one TCP connection, 10 s, no retransmits, at least 941 Mb/s (the
            rule of SANET)
          </span>
        </label>
        {answer && <Lead check={answer} stale={stale} />}
        <FoldedFields fields={FOLDED} summary={summaryOf(values, FOLDED)} {...fields} />
      </form>
      {!asked && (
        <p class="chips">
          <span class="faint">Paste a result, give a figure, or begin with: </span>
          <button type="button" class="chip" onClick={() => edit({ ...values, ...EXAMPLE })}>
            966.5 Mb/s over a gigabit link
          </button>
        </p>
      )}
      <Trouble problem={problem} />
      {answer && <Answer check={answer} stale={stale} />}
    </div>
  );
}

/** The judgement in words, after that of the acceptance rule if there is one. */
function Lead({ check, stale }: { check: Check; stale: boolean }) {
  const tests = check.inputs.flatMap(({ readings }) => readings.flatMap(({ tests }) => tests));
  const kind = check.verdict === "impossible" || !check.verdict ? "bad" : check.verdict;
  return (
    <div class={stale ? "answer stale" : "answer"} role="status">
      {tests
        .slice(0, MAX_ACCEPTED)
        .map(
          ({ acceptance, target }, number) =>
            acceptance && (
              <Accepted
                key={`${target} ${number}`}
                acceptance={acceptance}
                of={tests.length > 1 ? number + 1 : 0}
              />
            ),
        )}
      <div class={`verdict ${kind}`}>
        <p class="lead">{headline(check)}</p>
        <p class="statement">{because(check)}</p>
        {check.verdict && <p class="faint">{counted(check)}</p>}
      </div>
    </div>
  );
}

function Answer({ check, stale }: { check: Check; stale: boolean }) {
  return (
    <div class={stale ? "answer stale" : "answer"}>
      {stale && <p class="faint">This is the answer to what was typed before.</p>}
      {check.inputs.map(({ readings }) =>
        readings.map((reading, number) => (
          <section key={`${reading.tool} ${number}`} aria-label={reading.tool ?? "typed figures"}>
            <h2>{reading.tool ? `${reading.tool} ${reading.version ?? ""}` : "Typed figures"}</h2>
            {reading.unread.slice(0, 5).map(({ line, why }) => (
              <p key={line} class="warn">
                ⚠ line {line} could not be read: {why}
              </p>
            ))}
            {reading.unread.length > 5 && (
              <p class="warn">⚠ {plural(reading.unread.length - 5, "more part")} could not be read.</p>
            )}
            {reading.tests.map((test, number) => (
              <Tested key={`${test.target} ${number}`} test={test} />
            ))}
          </section>
        )),
      )}
    </div>
  );
}

function Accepted({ acceptance, of }: { acceptance: Acceptance; of: number }) {
  return (
    <section class={`acceptance ${acceptance.verdict}`} aria-label="Acceptance">
      <h2>
        {of > 0 && `Test ${of}: `}
        {outcome(acceptance)}
      </h2>
      <ul>
        {acceptance.criteria.map(({ name, verdict, text }) => (
          <li key={name} class={verdict}>
            <span class="sign" aria-hidden="true">
              {SIGNS[verdict]}
            </span>
            <span class="unseen">{verdict}: </span>
            {text}
          </li>
        ))}
      </ul>
    </section>
  );
}

function Tested({ test }: { test: Test }) {
  const { shown, others } = told(test.lines);
  return (
    <>
      {test.target && (
        <p class="faint">
          with {test.target}
          {test.started_at && `, ${test.started_at}`}
        </p>
      )}
      {shown.map((line, number) => (
        <Judged key={`${line.line} ${number}`} line={line} />
      ))}
      {others > 0 && <p class="faint">{plural(others, "more line")} of the text, with nothing to say.</p>}
      {test.error && <p class="warn">⚠ The test ended with: {test.error}</p>}
    </>
  );
}

function Judged({ line }: { line: Line }) {
  return (
    <article class="judged">
      {line.line !== undefined && (
        <p class="quote">
          <span class="faint">line {line.line}</span> <code>{line.quote}</code>
        </p>
      )}
      <ul>
        {line.figures.map((figure, number) => (
          <li key={`${figure.quantity} ${number}`}>
            <p>
              <strong>{words(figure.quantity)}</strong> {figure.printed}{" "}
              <span class={`badge ${figure.verdict}`}>{VERDICTS[figure.verdict]}</span>
              <span class="faint"> {limitOf(figure)}</span>
            </p>
            {figure.reasons.map(({ text, causes }) => (
              <div key={text} class="reason">
                <p>{text}</p>
                {causes.length > 0 && (
                  <>
                    <p class="faint">Likeliest first, it may be:</p>
                    <ol>
                      {causes.map(({ text, remedy }) => (
                        <li key={text}>
                          {text}; <em>{remedy}</em>
                        </li>
                      ))}
                    </ol>
                  </>
                )}
              </div>
            ))}
          </li>
        ))}
      </ul>
    </article>
  );
}

/** The ceiling of a figure, and how much of it the figure is. */
function limitOf({ ceiling, share }: Figure): string {
  if (!ceiling) return "";
  const of = `${bitrate(ceiling.bitrate_bps)}: ${ceiling.because}`;
  return share === undefined ? `more than ${of}` : `${ratio(share)} of ${of}`;
}
