//! Standard input to standard output: the data pass through the stand-in itself.

use linerate_units::{Span, Timestamp};

use super::report::{self, TtcpResult};
use super::tool::Ttcp;
use super::transfer::IDLE;
use super::{EXTRA_END_MARKS, MARK_BYTES};
use crate::stand_in::{Link, Output, SystemError};

/// A copy between standard input or output and the network.
#[derive(Debug)]
pub(super) struct TtcpPipe {
    pub(super) link: Link,
    pub(super) due: Option<Timestamp>,
    bytes: u64,
    calls: u64,
    first_at: Option<Timestamp>,
    last_at: Option<Timestamp>,
    /// Bytes that do not fill a block yet (-B).
    partial: Vec<u8>,
    /// The first bytes of the stream. A UDP mark repeats the start of the last buffer, which is mostly the
    /// same.
    start: Vec<u8>,
    /// A datagram that is a mark if another mark follows, and otherwise data.
    doubtful: Option<Vec<u8>>,
}

impl TtcpPipe {
    pub(super) const fn new(link: Link) -> Self {
        Self {
            link,
            due: None,
            bytes: 0,
            calls: 0,
            first_at: None,
            last_at: None,
            partial: Vec::new(),
            start: Vec::new(),
            doubtful: None,
        }
    }

    fn count(&mut self, now: Timestamp, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes as u64);
        self.calls = self.calls.saturating_add(1);
        self.first_at.get_or_insert(now);
        self.last_at = Some(now);
    }

    fn outcome(&self) -> TtcpResult {
        let elapsed = self.first_at.zip(self.last_at).map_or(Span::ZERO, |(first, last)| last.since(first));
        TtcpResult { bytes: self.bytes, calls: self.calls, elapsed, ..TtcpResult::default() }
    }
}

impl Ttcp {
    /// Handles bytes of a connection: writes them to standard output, or counts them until the engine uses the
    /// link.
    pub(super) fn bytes(&mut self, now: Timestamp, link: Link, bytes: &[u8]) {
        let length = self.settings.length as usize;
        match &mut self.pipe {
            Some(pipe) if pipe.link == link && !self.settings.transmit => {
                pipe.count(now, bytes.len());
                if !self.settings.whole_blocks {
                    self.put(Output::Write(bytes.to_vec()));
                    return;
                }
                pipe.partial.extend_from_slice(bytes);
                let whole = pipe.partial.len() - pipe.partial.len() % length.max(1);
                if whole > 0 {
                    let blocks = pipe.partial.drain(..whole).collect();
                    self.put(Output::Write(blocks));
                }
            }
            Some(_) => {}
            None => self.early_bytes(now, link, bytes.len()),
        }
    }

    /// Handles a block of standard input, or its end.
    pub(super) fn pipe_text(&mut self, now: Timestamp, block: Option<&[u8]>) {
        let (udp, length) = (self.settings.udp, self.settings.length as usize);
        let Some(pipe) = &mut self.pipe else { return };
        let link = pipe.link;
        let Some(block) = block else {
            self.pipe_ended(now, None);
            return;
        };
        for buffer in block.chunks(length.max(1)) {
            pipe.count(now, buffer.len());
            pipe.start = buffer.iter().copied().take(MARK_BYTES).collect();
            self.outputs.push_back(Output::Send { link, bytes: buffer.to_vec() });
        }
        // Over TCP the next block is read only after this one has been sent.
        if udp || block.is_empty() {
            self.put(Output::Read);
        }
    }

    pub(super) fn pipe_sent(&mut self, now: Timestamp, link: Link) {
        let tcp = !self.settings.udp && self.settings.transmit;
        if let Some(pipe) = self.pipe.as_mut().filter(|pipe| pipe.link == link && tcp) {
            pipe.last_at = Some(now);
            self.put(Output::Read);
        }
    }

    pub(super) fn pipe_datagram(&mut self, now: Timestamp, bytes: &[u8]) {
        let Some(pipe) = &mut self.pipe else { return };
        if self.settings.transmit {
            return;
        }
        // A pipe over UDP has no end except marks, which could be data, and silence.
        pipe.due = Some(now + IDLE);
        if pipe.start.is_empty() {
            pipe.start = bytes.iter().copied().take(MARK_BYTES).collect();
        } else if bytes == pipe.start {
            if pipe.doubtful.is_some() {
                pipe.doubtful = None;
                self.pipe_ended(now, None);
            } else {
                pipe.doubtful = Some(bytes.to_vec());
            }
            return;
        }
        if let Some(doubtful) = pipe.doubtful.take() {
            pipe.count(now, doubtful.len());
            self.outputs.push_back(Output::Write(doubtful));
        }
        pipe.count(now, bytes.len());
        self.put(Output::Write(bytes.to_vec()));
    }

    pub(super) fn pipe_closed(&mut self, now: Timestamp, reason: Option<&SystemError>) {
        // A receiver that ends before its transmitter is like a broken connection.
        let early = self.settings.transmit.then_some("the receiver closed the connection");
        self.pipe_ended(now, reason.map(|reason| reason.text.as_str()).or(early));
    }

    pub(super) fn pipe_tick(&mut self, now: Timestamp) {
        let Some(pipe) = self.pipe.as_mut().filter(|pipe| pipe.due.is_some_and(|due| due <= now)) else {
            return;
        };
        if let Some(doubtful) = pipe.doubtful.take() {
            pipe.count(now, doubtful.len());
            self.outputs.push_back(Output::Write(doubtful));
        }
        self.pipe_ended(now, Some("no datagram for 60 seconds: taken for the end"));
    }

    pub(super) fn pipe_ended(&mut self, now: Timestamp, trouble: Option<&str>) {
        let Some(mut pipe) = self.pipe.take() else { return };
        let link = pipe.link;
        if !pipe.partial.is_empty() {
            self.put(Output::Write(std::mem::take(&mut pipe.partial)));
        }
        if self.settings.transmit && self.settings.udp {
            pipe.start.resize(MARK_BYTES, 0);
            for _ in 0..EXTRA_END_MARKS {
                pipe.count(now, 0);
                self.put(Output::Send { link, bytes: pipe.start.clone() });
            }
        }
        self.put(Output::Close { link });
        if let Some(trouble) = trouble {
            self.print_error(Some(report::failed(&self.settings, "IO", 0, trouble)));
        }
        let outcome = pipe.outcome();
        self.print_result(report::result(&self.settings, &outcome, None));
        self.print_error(Some(report::honest(&self.settings, &outcome)));
        self.exit(i32::from(trouble.is_some()));
    }
}
