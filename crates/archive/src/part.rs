//! Parts of a log: stretches of events with consecutive numbers, compressed.
//!
//! A part is a zstd frame of lines. Each line has the time in nanoseconds, the number of the host, and the body as
//! JSON, with spaces between them. The body is the text that was written with the event, so that a log stays exact.

use std::io::{self, BufRead, BufReader, Read};

use linerate_model::flow::FlowId;
use linerate_model::{Body, Event, ForeignText, Sample};
use linerate_units::Timestamp;
use serde::Deserialize;

/// Most events of a part. Parts that grew to this number are not merged again.
pub(crate) const MAX_PART_EVENTS: usize = 4096;
/// Most bytes of text of a part with several events, so that a part can be read into memory.
const MAX_PART_BYTES: usize = 4 << 20;
/// Most bytes of text that are read of a part, which is more than one with a single event can have. What a file says must
/// not fill the memory.
const MAX_READ_BYTES: u64 = 64 << 20;
/// Level of compression. Of the levels that cost less than writing the text as JSON, the smallest result.
const LEVEL: i32 = 3;

/// Consecutive events of one run, as lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogPart {
    /// Number of its first event. A number beyond the signed range keeps its bits.
    pub(crate) first: i64,
    /// Number of its last event.
    pub(crate) last: i64,
    /// Its lines.
    pub(crate) text: String,
}

impl LogPart {
    /// A part with one event, whose body is `body` as JSON on one line.
    pub(crate) fn new(seq: i64, at: Timestamp, host: u16, body: &str) -> Self {
        Self { first: seq, last: seq, text: format!("{} {host} {body}\n", at.as_ns()) }
    }

    /// Number of its events.
    pub(crate) fn len(&self) -> usize {
        self.last.abs_diff(self.first).saturating_add(1) as usize
    }

    /// Appends `next` if it has the numbers that follow and there is room, otherwise returns it.
    pub(crate) fn append(&mut self, next: Self) -> Option<Self> {
        let follows = self.last.checked_add(1) == Some(next.first);
        let events = self.len() + next.len();
        if !follows || events > MAX_PART_EVENTS || self.text.len() + next.text.len() > MAX_PART_BYTES {
            return Some(next);
        }
        self.last = next.last;
        self.text += &next.text;
        None
    }

    /// Merges parts, in order, into as few as possible.
    pub(crate) fn merge(parts: impl IntoIterator<Item = Self>) -> Vec<Self> {
        let mut merged: Vec<Self> = Vec::new();
        for part in parts {
            let rest = match merged.last_mut() {
                Some(open) => open.append(part),
                None => Some(part),
            };
            merged.extend(rest);
        }
        merged
    }

    /// Its lines, compressed.
    pub(crate) fn compressed(&self) -> io::Result<Vec<u8>> {
        zstd::bulk::compress(self.text.as_bytes(), LEVEL)
    }

    /// A part as it is in the archive.
    ///
    /// # Errors
    /// It is damaged.
    pub(crate) fn decompress(first: i64, last: i64, content: &[u8]) -> io::Result<Self> {
        let (mut text, mut unpacked) = (String::new(), unpacked(content)?);
        unpacked.read_to_string(&mut text)?;
        if unpacked.limit() == 0 {
            return Err(damaged());
        }
        Ok(Self { first, last, text })
    }
}

/// Reads the events of a part of the log of `run`.
///
/// # Errors
/// It is damaged. An event that this version cannot read is replaced by a caveat.
pub(crate) fn events_of(
    run: &ForeignText,
    first: i64,
    content: &[u8],
    into: &mut Vec<Event>,
) -> io::Result<()> {
    let mut lines = BufReader::new(unpacked(content)?);
    let (mut line, mut seq) = (String::new(), first);
    while lines.read_line(&mut line)? > 0 {
        into.push(event(run, seq as u64, line.trim_end_matches('\n')).ok_or_else(damaged)?);
        line.clear();
        seq = seq.wrapping_add(1);
    }
    if lines.get_ref().limit() == 0 {
        return Err(damaged());
    }
    Ok(())
}

/// The text of a part, but not more than is read of one.
fn unpacked(content: &[u8]) -> io::Result<io::Take<impl Read>> {
    Ok(zstd::stream::Decoder::new(content)?.take(MAX_READ_BYTES))
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a line of the log is damaged")
}

fn event(run: &ForeignText, seq: u64, line: &str) -> Option<Event> {
    let (at_ns, rest) = line.split_once(' ')?;
    let (host, text) = rest.split_once(' ')?;
    let at = Timestamp::from_ns(at_ns.parse().ok()?);
    let body = sample(text).map_or_else(|| serde_json::from_str(text).and_then(Body::read), Ok);
    let body = body.unwrap_or_else(|error| Body::unreadable(seq, &error));
    Some(Event { run: run.clone(), host: host.parse().ok()?, seq, at, body })
}

/// Parses a sample, the most frequent event of a long log, without trying the other event types first. That
/// takes less than half the time. `None` for other events and for errors.
fn sample(text: &str) -> Option<Body> {
    #[derive(Deserialize)]
    struct SampleBody<'t> {
        kind: &'t str,
        flow: FlowId,
        sample: Sample,
    }

    if !text.starts_with(r#"{"kind":"sample""#) {
        return None;
    }
    let SampleBody { kind, flow, sample } = serde_json::from_str(text).ok()?;
    (kind == "sample").then_some(Body::Sample { flow, sample })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(seqs: std::ops::RangeInclusive<i64>) -> LogPart {
        let text = seqs.clone().map(|seq| format!("{seq} 0 {{}}\n")).collect();
        LogPart { first: *seqs.start(), last: *seqs.end(), text }
    }

    /// Everything that is not exactly a sample is left to the general parser.
    #[test]
    fn a_sample_is_read_as_every_other_body() {
        let readings = r#""readings":{"flow.bytes":18446744073709551615,"host.busy":0.1,"new.thing":-2}"#;
        let times = r#""side":"sender","start_ns":5,"end_ns":9"#;
        let whole = format!(r#"{{"kind":"sample","flow":3,"sample":{{{times},"outside":true,{readings}}}}}"#);
        assert_eq!(sample(&whole), serde_json::from_str(&whole).ok());
        assert!(sample(&whole).is_some());
        let others = [
            r#"{"kind":"run_ended","outcome":"failed"}"#.to_owned(),
            whole.replace("\"sample\",", "\"sampler\","),
            whole.replace("\"flow\":3", "\"flow\":65536"),
            whole.replace("\"flow\":3,", "\"flow\":3,\"kind\":\"sample\","),
            whole.replace("\"end_ns\":9,", ""),
        ];
        for text in others {
            assert_eq!(sample(&text), None, "{text}");
        }
    }

    #[test]
    fn parts_merge_where_their_numbers_follow_and_there_is_room() {
        let merged = LogPart::merge([part(0..=1), part(2..=2), part(4..=5), part(6..=6)]);
        assert_eq!(merged, [part(0..=2), part(4..=6)]);
        let most = MAX_PART_EVENTS as i64;
        let merged = LogPart::merge([part(0..=most - 2), part(most - 1..=most - 1), part(most..=most)]);
        assert_eq!(merged, [part(0..=most - 1), part(most..=most)]);
        // The numbers at both ends of the signed range do not follow each other.
        let ends = [part(i64::MAX..=i64::MAX), part(i64::MIN..=i64::MIN)];
        assert_eq!(LogPart::merge(ends.clone()), ends);
        let long = |seq| LogPart { first: seq, last: seq, text: "x".repeat(MAX_PART_BYTES / 2 + 1) };
        assert_eq!(LogPart::merge([long(0), long(1)]).len(), 2);
    }

    #[test]
    fn an_event_of_a_later_version_does_not_hide_the_others() {
        let text = "5 0 {\"kind\":\"teleported\"}\n7 1 {\"kind\":\"plan_resumed\"}\n".to_owned();
        let part = LogPart { first: 3, last: 4, text };
        let mut events = Vec::new();
        events_of(&"r".into(), 3, &part.compressed().unwrap(), &mut events).unwrap();
        let Body::Caveat { caveat, .. } = &events[0].body else { panic!("{:?}", events[0]) };
        assert!(caveat.text.contains("event 3"), "{caveat:?}");
        let expected =
            Event { run: "r".into(), host: 1, seq: 4, at: Timestamp::from_ns(7), body: Body::PlanResumed };
        assert_eq!(events[1], expected);
    }

    #[test]
    fn damage_is_an_error_whatever_it_hits() {
        let part = part(0..=9);
        let whole = part.compressed().unwrap();
        let read = |content: &[u8]| events_of(&"r".into(), 0, content, &mut Vec::new());
        read(&whole).unwrap();
        assert_eq!(LogPart::decompress(0, 9, &whole).unwrap(), part);
        assert!(read(&whole[..whole.len() - 3]).is_err());
        assert!(read(b"no zstd").is_err());
        let endless =
            LogPart { first: 0, last: 0, text: format!("5 0 {{{}}}\n", " ".repeat(1 << 20)).repeat(64) };
        let endless = endless.compressed().unwrap();
        assert!(endless.len() < 1 << 20 && read(&endless).is_err());
        assert!(LogPart::decompress(0, 0, &endless).is_err());
        for text in ["5\n", "x 0 {}\n", "5 70000 {}\n"] {
            let bad = LogPart { first: 0, last: 0, text: text.to_owned() };
            assert!(read(&bad.compressed().unwrap()).is_err(), "{text}");
        }
    }
}
