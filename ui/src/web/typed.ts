// Forms whose values the server reads as the command line does: their state is in the address of the page.

/** A field of such a form. */
export interface TypedField {
  /** As the request calls it. */
  name: string;
  label: string;
  hint?: string;
  /** Unit or example in the empty field. */
  example?: string;
  /** A choice among these, the first of them being the usual one; a text without them. */
  options?: readonly (readonly [value: string, label: string])[];
  /** Yes or no. */
  flag?: true;
  /** Unit of a bare number. */
  unit?: string;
}

/** What was typed, by the names of the fields; blank values are absent. */
export type Values = Record<string, string>;

/** The values that an address has. */
export function valuesOf(query: URLSearchParams, fields: readonly TypedField[]): Values {
  const values: Values = {};
  for (const { name } of fields) {
    const value = query.get(name);
    if (value) values[name] = value;
  }
  return values;
}

/** The address of a page with these values. */
export function addressOf(path: string, values: Values, fields: readonly TypedField[]): string {
  const query = new URLSearchParams();
  for (const { name } of fields) if (values[name]) query.set(name, values[name]);
  return query.size > 0 ? `${path}?${query}` : path;
}

/** The body of the request: flags as such, everything else as it was typed. */
export function bodyOf(values: Values, fields: readonly TypedField[]): Record<string, string | boolean> {
  const body: Record<string, string | boolean> = {};
  for (const { name, flag } of fields) {
    const value = values[name]?.trim();
    if (value) body[name] = flag ? true : value;
  }
  return body;
}

/** The values of the folded fields in a few words. */
export function summaryOf(values: Values, fields: readonly TypedField[]): string {
  const given = fields.filter(({ name }) => values[name]);
  return given
    .map((field) => (field.flag ? field.label : `${field.label} ${shown(field, values[field.name] ?? "")}`))
    .join(" · ");
}

/** A choice as the form calls it; a bare number with its unit. */
function shown({ options, unit }: TypedField, value: string): string {
  const choice = options?.find(([name]) => name === value);
  if (choice) return choice[1];
  return unit && /^\d+(\.\d+)?$/.test(value) ? `${value} ${unit}` : value;
}

/** Longest text in the address of a page; browsers and chat programs cut longer ones. */
export const MAX_TEXT_IN_ADDRESS = 8000;
const TEXT = "#text=";

/** The part of the address that keeps a pasted text, which no server and no log sees. */
export function hashOf(text: string): string {
  const packed = encodeURIComponent(text);
  return text && packed.length <= MAX_TEXT_IN_ADDRESS ? TEXT + packed : "";
}

/** The text of an address; undefined if it has none. */
export function textOf(hash: string): string | undefined {
  if (!hash.startsWith(TEXT)) return undefined;
  try {
    return decodeURIComponent(hash.slice(TEXT.length));
  } catch {
    return undefined;
  }
}
