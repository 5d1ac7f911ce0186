//! Messages of a hostile end: invalid numbers, texts and message types, generated from a seed; and which end is
//! hostile in a session.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::{Rng, hello};

/// Number of sessions in `make test`.
const SAMPLE: u64 = 120;

/// The hostile end of a session. The seeds assign all sessions of `make hostile` to roles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostileRole {
    /// A client, against our server.
    Client,
    /// A server, against our client.
    Server,
    /// An agent or a coordinator, against the other one.
    Agent,
}

impl HostileRole {
    /// Two of twenty sessions are a server's and one is an agent's, as each of these needs its own program.
    fn of(seed: u64) -> Self {
        match seed % 20 {
            3 | 13 => Self::Server,
            8 => Self::Agent,
            _ => Self::Client,
        }
    }

    /// The sessions of this role in this run.
    pub(crate) fn sessions(self) -> HostileSessions {
        let number = |name: &str| {
            let text = std::env::var(name).ok()?;
            Some(text.parse::<u64>().unwrap_or_else(|error| panic!("{name}={text}: {error}")))
        };
        let (sessions, seed) = (number("LINERATE_HOSTILE"), number("LINERATE_HOSTILE_SEED").unwrap_or(1));
        let all = seed..seed + sessions.unwrap_or(SAMPLE);
        let name = format!("seeds {all:?}, those of a hostile {self:?}");
        let seeds = all.filter(|seed| Self::of(*seed) == self).collect();
        HostileSessions { name, seeds, next: AtomicUsize::new(0), asked: sessions.is_some() }
    }
}

/// Sessions of one role, distributed to threads.
pub(crate) struct HostileSessions {
    name: String,
    seeds: Vec<u64>,
    next: AtomicUsize,
    /// Whether the sessions were requested by `make hostile`.
    pub(crate) asked: bool,
}

impl HostileSessions {
    /// The seed of the next session.
    pub(crate) fn next(&self) -> Option<u64> {
        self.seeds.get(self.next.fetch_add(1, Ordering::Relaxed)).copied()
    }

    /// Runs all sessions, `at_once` in parallel; panics with the seeds of those that failed.
    pub(crate) fn run(&self, at_once: usize, session: impl Fn(u64) + Sync) {
        let failed = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..at_once.min(self.seeds.len()) {
                scope.spawn(|| {
                    while let Some(seed) = self.next() {
                        if catch_unwind(AssertUnwindSafe(|| session(seed))).is_err() {
                            failed.lock().unwrap().push(seed);
                        }
                    }
                });
            }
        });
        let failed = failed.into_inner().unwrap();
        assert!(failed.is_empty(), "{self}: failed with {failed:?}; see above");
    }
}

impl fmt::Display for HostileSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Numbers at which programs break.
pub(crate) const NUMBERS: [u64; 14] = [
    0,
    1,
    2,
    31,
    255,
    65_508,
    (1 << 20) + 1,
    (64 << 20) + 1,
    1 << 31,
    (1 << 32) - 1,
    1 << 40,
    1 << 53,
    u64::MAX - 1,
    u64::MAX,
];

/// All message types, and one that does not exist.
const WORDS: [&str; 20] = [
    "hello",
    "welcome",
    "busy",
    "refused",
    "prepare",
    "prepared",
    "flows_ready",
    "start",
    "trial",
    "trial_counted",
    "stop",
    "sender_done",
    "cut",
    "progress",
    "samples",
    "ended",
    "heartbeat",
    "failed",
    "bye",
    "no such word",
];

/// A message with all possible fields, some of them absurd.
pub(crate) fn word(rng: &mut Rng) -> Value {
    let number = rng.of(&NUMBERS);
    let flow = rng.of(&[0, 0, 0, 1, 7, u64::from(u16::MAX)]);
    let side = rng.of(&["sender", "receiver"]);
    match rng.of(&WORDS) {
        "hello" => hello(&spec(rng)),
        "prepare" => orders(rng),
        "trial" => {
            json!({"type": "trial", "trial": 0, "message_bytes": number, "repeats": rng.of(&[1, 100_001]), "timeout_ns": rng.of(&NUMBERS)})
        }
        "progress" => {
            json!({"type": "progress", "flow": flow, "side": side, "bytes": number, "elapsed_ns": rng.of(&NUMBERS)})
        }
        "samples" => {
            let sample = json!({"side": side, "start_ns": number, "end_ns": rng.of(&NUMBERS), "readings": {"x": number}});
            json!({"type": "samples", "flow": flow, "samples": vec![sample; rng.below(200)]})
        }
        "ended" => json!({"type": "ended", "flow": flow, "side": side, "tally": {"total_bytes": number}}),
        "failed" | "refused" => json!({"type": "failed", "why": "w".repeat(rng.below(100_000))}),
        other => json!({"type": other, "flow": flow, "position": number, "wait_ns": number}),
    }
}

/// A specification with one or two replaced values.
pub(crate) fn spec(rng: &mut Rng) -> Value {
    let mut spec =
        json!({"traffic": {"upload": rng.percent(50), "bidir": rng.percent(20), "no_latency": true}});
    const TRAFFIC: [&str; 11] = [
        "duration_ns",
        "bytes",
        "blocks",
        "streams",
        "rate_bps",
        "fq_rate_bps",
        "length_bytes",
        "omit_ns",
        "interval_ns",
        "read_rate_bps",
        "until",
    ];
    for _ in 0..=rng.below(2) {
        let value = match rng.below(8) {
            0 => json!(-1),
            1 => json!(1e308),
            2 => json!("x".repeat(rng.below(60_000))),
            3 => Value::Null,
            _ => json!(rng.of(&NUMBERS)),
        };
        match rng.below(4) {
            0 => spec["socket"]["window_bytes"] = value,
            1 => spec["host"]["server_affinity"] = value,
            _ => spec["traffic"][rng.of(&TRAFFIC)] = value,
        }
    }
    if rng.percent(20) {
        spec["traffic"]["udp"] = json!(true);
    }
    if rng.percent(15) {
        spec["sweep"] =
            json!({"to_bytes": rng.of(&NUMBERS), "sizes": vec![rng.of(&NUMBERS); rng.below(3_000)]});
    }
    spec
}

/// Any number of flows with arbitrary values.
pub(crate) fn orders(rng: &mut Rng) -> Value {
    let mut flow = || {
        let direction = rng.of(&["upload", "download"]);
        json!({"flow": rng.of(&[0, 0, 1, 65_535]), "direction": direction, "length_bytes": rng.of(&NUMBERS)})
    };
    let flows: Vec<Value> = (0..3).map(|_| flow()).collect();
    json!({"type": "prepare", "flows": flows[..rng.of(&[0, 1, 1, 1, 2, 3])]})
}

/// Texts that affect terminals, tables and file names, and a long one.
fn text(rng: &mut Rng) -> String {
    let nasty =
        ["", "\u{1b}]0;x\u{7}\u{1b}[2J", "=1+1\r\n,\"", "\u{202e}\u{9b}31m\0", "../../etc/x", "NaN", "-1"];
    if rng.percent(5) { "w".repeat(rng.below(200_000)) } else { rng.of(&nasty).to_owned() }
}

/// A replacement for a value: mostly of the same type, so that it is parsed and has an effect.
fn absurd(value: &Value, rng: &mut Rng) -> Value {
    match (value, rng.below(20)) {
        (_, 0) if rng.percent(20) => Value::Null,
        (Value::Number(_), 1) if rng.percent(20) => json!(-1),
        (Value::Number(_), 2) if rng.percent(20) => json!(1e308),
        (Value::Number(number), 3..10) => json!(number.as_u64().unwrap_or(1).wrapping_mul(1_000)),
        (Value::Number(_), _) => json!(rng.of(&NUMBERS)),
        (Value::Bool(yes), _) => json!(!yes),
        _ => json!(text(rng)),
    }
}

/// Fields without whose correct value a message is not parsed, or refers to nothing.
const KEYS: [&str; 14] = [
    "type",
    "flow",
    "side",
    "version",
    "versions",
    "cookie",
    "kind",
    "capabilities",
    "proof",
    "nonce",
    "number",
    "job",
    "trial",
    "sent_ns",
];

/// Replaces values of a message, each with a probability of `of_hundred` percent, rarely including required
/// ones.
pub(crate) fn twist(value: &mut Value, rng: &mut Rng, of_hundred: usize) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                if !KEYS.contains(&name.as_str()) || name != "type" && rng.percent(1) {
                    twist(field, rng, of_hundred);
                }
            }
        }
        Value::Array(elements) => {
            if rng.percent(of_hundred.min(5)) {
                let first = elements.first().cloned().unwrap_or_default();
                elements.extend(vec![first; rng.below(3_000)]);
            }
            elements.iter_mut().for_each(|element| twist(element, rng, of_hundred));
        }
        leaf if rng.percent(of_hundred) => *leaf = absurd(leaf, rng),
        _ => {}
    }
}
