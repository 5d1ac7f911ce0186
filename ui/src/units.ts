// Quantities for people, formatted exactly as the program prints them: both are tested against
// fixtures/units.json.

const RATES: [string, number][] = [
  ["Tb/s", 1e12],
  ["Gb/s", 1e9],
  ["Mb/s", 1e6],
  ["kb/s", 1e3],
];
const SIZES: [string, number][] = [
  ["TiB", 2 ** 40],
  ["GiB", 2 ** 30],
  ["MiB", 2 ** 20],
  ["KiB", 2 ** 10],
];
const TIMES: [string, number][] = [
  ["s", 1e9],
  ["ms", 1e6],
  ["us", 1e3],
  ["ns", 1],
];

const DECIMAL: [string, number][] = [
  ["b/s", 1],
  ["B", 1],
  ["kB", 1e3],
  ["MB", 1e6],
  ["GB", 1e9],
  ["%", 0.01],
];
const SIZE_OF = new Map([...RATES, ...SIZES, ...TIMES, ...DECIMAL]);

/** How many of the smallest unit of its quantity this unit is; undefined for another word. */
export function unitSize(unit: string): number | undefined {
  return SIZE_OF.get(unit);
}

/** Units whose values are whole numbers. */
const WHOLE = new Set(["ns", "bytes", "octets"]);

/** Printed if nothing was measured. */
export const ABSENT = "-";

/** Bits per second, decimal, four digits. */
export function bitrate(bps: number): string {
  for (const [name, size] of RATES) {
    const value = bps / size;
    if (value >= 0.99995) {
      const digits = value >= 999.95 ? 0 : value >= 99.995 ? 1 : value >= 9.9995 ? 2 : 3;
      return `${fixed(value, digits)} ${name}`;
    }
  }
  return `${fixed(bps, 0)} b/s`;
}

/** Bytes, with binary prefixes; without decimals if exact. */
export function bytes(count: number): string {
  for (const [name, size] of SIZES) {
    if (count >= size) return `${fixed(count / size, count % size === 0 ? 0 : 2)} ${name}`;
  }
  return `${fixed(count, 0)} B`;
}

/** The size of a packet: always in bytes, without a prefix. */
export function octets(count: number): string {
  return `${fixed(count, 0)} B`;
}

/** A time in nanoseconds. */
export function span(ns: number): string {
  const [name, size] = (ns === 0 ? undefined : TIMES.find(([, size]) => ns >= size)) ?? ["s", 1e9];
  const value = ns / size;
  return `${fixed(value, ns % size === 0 ? 0 : value < 9.995 ? 2 : 1)} ${name}`;
}

/** A time of minutes and hours, rounded up to minutes, as the program prints that of a plan. */
export function longTime(seconds: number): string {
  const minutes = Math.ceil(seconds / 60);
  if (minutes <= 2) return `${Math.ceil(seconds)} s`;
  return minutes < 120 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** A share in percent. */
export function ratio(share: number): string {
  const percent = share * 100;
  if (percent === 0 || percent >= 0.1) return `${fixed(percent, 1)} %`;
  if (percent >= 0.01) return `${fixed(percent, 3)} %`;
  return `${percent.toExponential(2).replace("e+", "e")} %`;
}

/** A value in a unit of the metric catalogue. */
export function inUnit(unit: string, value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return ABSENT;
  const of = { "bit/s": bitrate, bytes, octets, ns: span, ratio }[unit];
  if (of && value >= 0) return of(WHOLE.has(unit) ? Math.round(value) : value);
  if (unit === "s") return `${shortest(value)} s`;
  return shortest(value);
}

/** The same without trailing zeros, for the ticks of an axis. */
export function tick(unit: string, value: number): string {
  if (unit === "s") return shortest(value);
  const [number = "", name] = inUnit(unit, value).split(" ");
  const bare = number.includes(".") && !number.includes("e") ? number.replace(/\.?0+$/, "") : number;
  return name ? `${bare} ${name}` : bare;
}

function shortest(value: number): string {
  return String(Number(value.toPrecision(4)));
}

/** Rounds halves to even, as the program does; both round the exact value of the number otherwise. */
function fixed(value: number, digits: number): string {
  const scaled = value * 10 ** digits;
  if (Number.isInteger(scaled * 2) && !Number.isInteger(scaled) && Math.abs(scaled) < 2 ** 50) {
    const down = Math.floor(scaled);
    // Only an exact half is a tie: the scaling itself may round.
    if ((down + 0.5) / 10 ** digits === value) {
      const even = down % 2 === 0 ? down : down + 1;
      return (even / 10 ** digits).toFixed(digits);
    }
  }
  return value.toFixed(digits);
}
