//! Sending datagrams: one call for each when their gap can be slept, otherwise several in one that the kernel cuts.

use std::net::UdpSocket;
use std::time::Duration;

use linerate_proto::StampLayout;
use linerate_sock::batch::{MAX_SEGMENTS, send_segments};
use linerate_sock::stream::{send, set_nonblocking, set_send_timeout};
use linerate_sock::{Moved, SockError, clock, sockopt};
use linerate_units::{Bitrate, Bytes};

use super::feed::pattern;
use super::{PumpEnd, Shift, StreamEnd};
use crate::control::{Control, PATIENCE};
use crate::counters::Meter;
use crate::flow::Flow;
use crate::pacer::Schedule;
use crate::stamp::{self, Stamp};

/// A gap between datagrams that a thread can sleep; below it several leave together.
const SLEEPABLE: Duration = Duration::from_micros(10);
/// Datagrams that leave together span about so long.
const TOGETHER: Duration = Duration::from_micros(50);
/// Most bytes of one call, below what every kernel takes.
const CALL_BYTES: usize = 65_000;
/// Headers below the payload of a datagram over IPv4: 20 bytes of IP and 8 of UDP. With IPv6 the kernel says no.
const HEADERS: usize = 28;

/// Datagrams handed to the kernel together.
pub(crate) struct Parcel {
    bytes: Vec<u8>,
    length: usize,
    /// Datagrams between two deadlines.
    burst: usize,
    /// Whether the kernel cuts a burst into datagrams; otherwise each takes a call.
    cut: bool,
    layout: StampLayout,
}

/// Makes every call of this socket return within [`PATIENCE`].
pub(crate) fn prepare(socket: &UdpSocket) -> Result<(), SockError> {
    set_nonblocking(socket, false)?;
    set_send_timeout(socket, Some(PATIENCE))
}

/// Datagrams between two deadlines.
fn burst(length: usize, offered: Option<Bitrate>) -> usize {
    let most = (CALL_BYTES / length.max(1)).clamp(1, MAX_SEGMENTS);
    let Some(gap) = offered.and_then(|rate| rate.time_for(Bytes::new(length as u64))) else { return most };
    if gap.as_duration() >= SLEEPABLE {
        return 1;
    }
    let together = TOGETHER.as_nanos().div_ceil(u128::from(gap.as_ns().max(1)));
    usize::try_from(together).unwrap_or(most).clamp(1, most)
}

impl Parcel {
    pub(crate) fn new(flow: &Flow) -> Self {
        let (setup, length) = (&flow.setup, flow.setup.datagram_length());
        let burst = burst(length, setup.offered);
        let mut bytes = pattern(length * burst);
        for datagram in bytes.chunks_mut(length) {
            stamp::write_tag(datagram, &setup.stamp, setup.tag);
        }
        // Longer datagrams are fragmented by IP, which excludes cutting.
        let fits = flow
            .sockets
            .udp(0)
            .and_then(|socket| sockopt::path_mtu(socket).ok())
            .is_none_or(|mtu| length + HEADERS <= mtu as usize);
        Self { bytes, length, burst, cut: burst > 1 && fits, layout: setup.stamp }
    }

    /// Datagrams of one call.
    pub(crate) const fn per_call(&self) -> u32 {
        if self.cut { self.burst as u32 } else { 1 }
    }

    /// Sends the next datagrams of a stream, numbered from `seq`, at most `left` bytes; returns datagrams and bytes.
    fn send(
        &mut self,
        socket: &UdpSocket,
        stream: u32,
        seq: u64,
        left: u64,
    ) -> Result<(u64, u64), SockError> {
        let sent_ns = clock::now().as_ns();
        let whole = usize::try_from(left).unwrap_or(usize::MAX).min(self.bytes.len());
        // The last datagram may be shorter, but never than its header.
        let rest = whole % self.length;
        let length = if rest > 0 { whole - rest + rest.max(self.layout.length) } else { whole };
        let bytes = &mut self.bytes[..length];
        for (datagram, seq) in bytes.chunks_mut(self.length).zip(seq..) {
            stamp::write(datagram, &self.layout, stream, Stamp { seq, sent_ns });
        }
        if self.cut && length > self.length {
            match send_segments(socket, bytes, self.length as u16) {
                Err(error) if error.refuses_segments() => self.cut = false,
                moved => return moved.map(|moved| self.count(moved)),
            }
        }
        let (mut packets, mut total) = (0, 0);
        for datagram in self.bytes[..length].chunks(self.length) {
            match send(socket, datagram) {
                Ok(Moved::Bytes(bytes)) => {
                    packets += 1;
                    total += bytes as u64;
                }
                // What has been sent is to be counted; a lasting trouble shows again.
                Ok(_) => break,
                Err(_) if packets > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok((packets, total))
    }

    fn count(&self, moved: Moved) -> (u64, u64) {
        (moved.bytes().div_ceil(self.length) as u64, moved.bytes() as u64)
    }
}

struct Slot<'f> {
    end: StreamEnd,
    socket: &'f UdpSocket,
    meter: Meter<'f>,
    next_seq: u64,
    left: u64,
}

/// Sends every stream's datagrams until the limit.
pub(crate) fn write(flow: &Flow, pump: usize, shift: &mut Shift<'_>, mut parcel: Parcel) -> PumpEnd {
    let mut slots: Vec<Slot<'_>> = flow
        .plan
        .streams_of(pump)
        .filter_map(|stream| {
            let (socket, left) = (flow.sockets.udp(stream)?, flow.plan.share(&flow.setup, stream));
            let end = StreamEnd { stream, ..StreamEnd::default() };
            Some(Slot { end, socket, meter: flow.meter(stream), next_seq: 0, left })
        })
        .collect();
    if flow.setup.offered.is_some() {
        // Refused by no current kernel, and then the gaps are 50 µs less exact.
        let _ = clock::set_timer_slack_ns(1);
    }
    let start = clock::now();
    for slot in &slots {
        if slot.meter.begin(start, 0) {
            flow.control.tell_begun();
        }
    }
    let pace = flow.setup.offered.and_then(|rate| Schedule::new(start, rate));
    let mut offered = 0;
    while flow.control.may_write() {
        let until = flow.write_until();
        if let Some(pace) = &pace {
            let due = pace.due(offered);
            if !flow.control.rest_until(due.min(until), Control::may_write) || due >= until {
                break;
            }
            offered += (parcel.burst * parcel.length) as u64;
        }
        let mut open = 0;
        for slot in &mut slots {
            open += usize::from(slot.burst(&mut parcel));
        }
        if open == 0 || clock::now() >= until {
            break;
        }
    }
    for slot in &slots {
        flow.stream_ended(&slot.meter, slot.end.trouble.as_ref());
    }
    shift.written();
    PumpEnd {
        streams: slots.into_iter().map(|slot| slot.end).collect(),
        per_call: Some(parcel.per_call()),
        ..PumpEnd::default()
    }
}

impl Slot<'_> {
    /// Sends the stream's next datagrams; true while there are more to send.
    fn burst(&mut self, parcel: &mut Parcel) -> bool {
        if self.left == 0 || self.end.trouble.is_some() {
            return false;
        }
        match parcel.send(self.socket, self.end.stream as u32, self.next_seq, self.left) {
            Ok((packets, bytes)) => {
                if packets > 0 {
                    self.meter.count(clock::now(), bytes);
                    self.meter.sent(packets, 0);
                }
                self.next_seq += packets;
                self.end.bytes += bytes;
                self.left = self.left.saturating_sub(bytes);
            }
            Err(error) if error.is_out_of_buffers() => self.meter.sent(0, 1),
            Err(error) => self.end.trouble = Some(error.into()),
        }
        self.left > 0 && self.end.trouble.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_leave_one_by_one_while_the_gap_can_be_slept() {
        let burst = |length, bps| burst(length, Bitrate::from_bps(bps));
        assert_eq!(burst(1448, 1e9), 1, "11.6 µs");
        assert_eq!(burst(1448, 1.2e9), 6, "9.65 µs, of which six are more than 50 µs");
        assert_eq!(burst(64, 1e11), 64, "as many as a call takes");
        assert_eq!(burst(60_000, 1e12), 1, "no two fit into a call");
        assert_eq!(super::burst(1448, None), 44, "65000 / 1448");
    }
}
