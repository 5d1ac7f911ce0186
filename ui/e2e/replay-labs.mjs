// Emulated networks that are made up, for the stand-in of the web service: two hosts at a switch, and four around two
// switches with a LAG between them. The queue to the second host grows, overflows and drains.

const FRAME_MS = 500;
const COURSE = 120;

const link = (name, ends, rate_bps, buffer_bytes, more = {}) => {
  const direction = { rate_bps, drain_bps: rate_bps, buffer_bytes, delay_ns: 0, ...more.direction };
  return { name, ends, members: more.members ?? 1, directions: [direction, { ...direction, ...more.back }] };
};
const NETWORKS = {
  pair: {
    hosts: ["a", "b"],
    switches: ["s"],
    links: [
      link("a", ["a", "s"], 1e9, 256_000),
      link("b", ["b", "s"], 1e9, 256_000, {
        back: { rate_bps: 100e6, drain_bps: 100e6 },
        direction: { delay_ns: 5e6 },
      }),
    ],
    busy: [0, 3],
  },
  "lag-2x1g": {
    hosts: ["a", "b", "client-of-c", "d"],
    switches: ["s1", "s2"],
    links: [
      link("a", ["a", "s1"], 1e9, 256_000),
      link("b", ["b", "s1"], 1e9, 256_000),
      link("c", ["client-of-c", "s2"], 1e9, 256_000),
      link("d", ["d", "s2"], undefined, 256_000),
      link("lag", ["s1", "s2"], 2e9, 512_000, { members: 2 }),
    ],
    busy: [0, 8],
  },
};

export const labs = () => ({ labs: Object.keys(NETWORKS).map((name) => ({ name })) });

/** A network now; undefined if there is none of that name. */
export function lab(name, now = Date.now()) {
  const network = NETWORKS[name];
  if (!network) return undefined;
  const at = Array.from({ length: COURSE }, (_, step) => now - (COURSE - 1 - step) * FRAME_MS);
  const { hosts, switches, links } = network;
  return {
    name,
    topology: name,
    seed: 1,
    backend: "switch",
    hosts: hosts.map((name, at) => ({
      name,
      address: `10.77.0.${at + 1}/24`,
      address6: `fd77::${at + 1}/64`,
    })),
    switches,
    links,
    notes: [],
    frame: labFrame(network, now),
    course: {
      at_ns: at.map(upOf),
      queue_max_bytes: links.flatMap((_, link) =>
        [0, 1].map((end) => at.map((at) => queue(network, 2 * link + end, at))),
      ),
    },
  };
}

export function watchLab(name, send) {
  const network = NETWORKS[name];
  send("snapshot", lab(name));
  return setInterval(() => send("frame", labFrame(network, Date.now())), FRAME_MS);
}

const upOf = (now) => (now % 1e8) * 1e6;

/** A saw tooth of 12 s, at the last of the busy ports. */
function queue({ links, busy }, port, now) {
  if (port !== busy[1]) return 0;
  const { buffer_bytes } = links[port >> 1].directions[port % 2];
  return Math.round(buffer_bytes * Math.min(1, ((now / 1000) % 12) / 10));
}

function labFrame(network, now) {
  const ports = network.links.flatMap(({ directions }, link) =>
    directions.map(({ rate_bps = 1e9 }, end) => {
      const port = 2 * link + end;
      const isBusy = network.busy.includes(port);
      const waiting = queue(network, port, now);
      const busy = isBusy ? Math.min(1, 100e6 / rate_bps) : 0;
      const dropped = port === network.busy[1] ? Math.floor((now % 1e8) / 12_000) * 17 : 0;
      return {
        wire_bps: busy * rate_bps,
        pps: (busy * rate_bps) / 12304,
        busy,
        queue_bytes: Math.round(waiting * 0.9),
        ...(network.links[link].members > 1 ? { members_queue_bytes: [Math.round(waiting * 0.45), 0] } : {}),
        queue_max_bytes: waiting,
        dropped,
        dropped_queue: dropped,
        marked: 0,
      };
    }),
  );
  const state = { cpu: 0.21, frames: 182_331, late: 0, late_bound_ns: 250_000, overrun: 0 };
  return { up_ns: upOf(now), ports, switch: state };
}
