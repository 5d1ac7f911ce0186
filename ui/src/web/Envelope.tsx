// What a described path can carry: the answer in words, its ceilings on one axis, and what it needs.

import { useEffect } from "preact/hooks";
import { getEnvelope } from "./api";
import {
  type CeilingBars,
  carried,
  ceilingBars,
  type Envelope,
  EXAMPLES,
  FIELDS,
  FOLDED,
  facts,
  MAIN,
  reason,
} from "./envelope";
import { navigate, useAddress } from "./router";
import { Trouble } from "./Trouble";
import { FoldedFields, TypedFields, useAnswer } from "./TypedFields";
import { addressOf, bodyOf, summaryOf, type Values, valuesOf } from "./typed";
import { words } from "./words";

const PATH = "/envelope";

export function EnvelopePage() {
  const values = valuesOf(useAddress().searchParams, FIELDS);
  const body = bodyOf(values, FIELDS);
  const isEmpty = Object.keys(body).length === 0;
  const { answer, stale, errors, problem } = useAnswer(isEmpty ? undefined : body, FIELDS, getEnvelope);
  useEffect(() => {
    document.title = "What can this path carry? · linerate";
  }, []);
  const show = (values: Values) => navigate(addressOf(PATH, values, FIELDS), true);
  const fields = {
    values,
    errors,
    onChange: (name: string, value: string) => show({ ...values, [name]: value }),
  };
  return (
    <div class="tool">
      <h1>What can this path carry?</h1>
      <form onSubmit={(event) => event.preventDefault()} noValidate>
        <div class="main">
          <TypedFields fields={MAIN} {...fields} />
        </div>
        {answer && <Lead document={answer} stale={stale} />}
        <FoldedFields fields={FOLDED} summary={summaryOf(values, FOLDED)} {...fields} />
      </form>
      {isEmpty && (
        <p class="chips">
          <span class="faint">Give the rate of the slowest link, or begin with: </span>
          {EXAMPLES.map(([label, values]) => (
            <button key={label} type="button" class="chip" onClick={() => show(values)}>
              {label}
            </button>
          ))}
        </p>
      )}
      <Trouble problem={problem} />
      {answer && <Answer document={answer} hasRtt={Boolean(values.rtt)} stale={stale} />}
    </div>
  );
}

/** The answer in words and one number. */
function Lead({ document, stale }: { document: Envelope; stale: boolean }) {
  return (
    <div class={stale ? "answer stale" : "answer"}>
      <div class="verdict" role="status">
        <p class="lead">{carried(document)}</p>
        <p class="statement">of payload at most. {reason(document)}</p>
      </div>
    </div>
  );
}

function Answer({ document, hasRtt, stale }: { document: Envelope; hasRtt: boolean; stale: boolean }) {
  return (
    <div class={stale ? "answer stale" : "answer"}>
      {stale && <p class="faint">These are the numbers of the values before.</p>}
      {!hasRtt && !stale && (
        <p class="faint">Give the round-trip time to see windows, buffers, slow start and what loss costs.</p>
      )}
      <h2>Ceilings, lowest first</h2>
      <Ceilings {...ceilingBars(document)} />
      <h2>What it needs, and what it gives</h2>
      <Facts rows={facts(document)} />
    </div>
  );
}

function Ceilings({ bars, ticks }: CeilingBars) {
  const percent = (share: number) => `${(share * 100).toFixed(2)}%`;
  return (
    <div class="ceiling-bars">
      <ol>
        {bars.map(({ limit, rate, because, binds, low, high }) => (
          <li key={limit} class={binds ? "binds" : ""}>
            <p>
              <strong>{words(limit)}</strong> {binds && <span class="badge">the limit</span>}
              <span class="rate">{rate}</span>
            </p>
            <div class="track" aria-hidden="true">
              {high > low && <div class="range" style={{ width: percent(high) }} />}
              <div class="solid" style={{ width: percent(low) }} />
            </div>
            <p class="because">{because}</p>
          </li>
        ))}
      </ol>
      <div class="axis" aria-hidden="true">
        {ticks.map(({ at, label }) => (
          <span key={label} style={{ left: percent(at) }}>
            {label}
          </span>
        ))}
      </div>
      <p class="faint">Payload per second, on a logarithmic axis.</p>
    </div>
  );
}

function Facts({ rows }: { rows: [string, string, string][] }) {
  return (
    <div class="wide">
      <table class="facts">
        <caption class="unseen">Numbers of this path</caption>
        <tbody>
          {rows.map(([name, value, about]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td class="value">{value}</td>
              <td class="faint">{about}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
