//! Datagrams whose departure times the queueing discipline keeps (SO_TXTIME): the program hands them over a little earlier,
//! so that it may be late without a wrong gap on the wire.

use std::net::UdpSocket;
use std::time::Duration;

use linerate_sock::departure::{DepartureBatch, DepartureClock};
use linerate_sock::{Mono, SockError, iface};
use linerate_units::{Bitrate, Bytes};

use crate::flow::FlowSide;
use crate::pacer::PacingSchedule;
use crate::setup::Txtime;

/// How early datagrams are handed over, and for how long a wake-up provides: as late as a busy host wakes a thread most
/// of the time.
const AHEAD: Duration = Duration::from_micros(500);
/// Most datagrams per wake-up. With those of the wake-up before, `fq` holds twice as many of a socket; by default it drops
/// what exceeds 100.
const MOST_TOGETHER: usize = 40;
/// A datagram that is handed over too late departs after this time. `etf` drops one whose time has passed.
const LATE: Duration = Duration::from_micros(50);

/// The clock of departure times, if departure times are requested; or why the queues do not keep them. The sockets are
/// ready for them then.
pub(crate) fn clock(flow: &FlowSide) -> Result<Option<DepartureClock>, String> {
    let Some(asked) = flow.setup.txtime.filter(|_| flow.writes() && flow.setup.offered.is_some()) else {
        return Ok(None);
    };
    let clock = match asked {
        Txtime::OnClock(clock) => clock,
        Txtime::ByDiscipline => by_discipline(flow.setup.interface.as_deref())?,
    };
    for stream in 0..flow.plan.streams {
        let Some(socket) = flow.sockets.udp(stream) else { return Ok(None) };
        DepartureBatch::enable(socket, clock).map_err(|error| format!("{error}: {}", error.source))?;
    }
    Ok(Some(clock))
}

fn by_discipline(interface: Option<&str>) -> Result<DepartureClock, String> {
    let name = interface.ok_or("the interface towards the receiver is not known")?;
    let kinds = iface::link(name).and_then(|link| iface::queue_kinds(link.index));
    let mut kinds = kinds.map_err(|error| format!("{error}: {}", error.source))?;
    DepartureClock::of_disciplines(&kinds).ok_or_else(|| {
        kinds.dedup();
        let has = if kinds.is_empty() { "no queueing discipline".to_owned() } else { kinds.join(", ") };
        format!(
            "only the queueing disciplines fq and etf keep departure times, and {name} has {has} \
             (tc qdisc replace dev {name} root fq)"
        )
    })
}

/// Datagrams between two wake-ups.
pub(crate) fn together(length: usize, offered: Bitrate) -> usize {
    let gap = offered.time_for(Bytes::new(length as u64)).map_or(u64::MAX, |gap| gap.as_ns().max(1));
    let due = u64::try_from(AHEAD.as_nanos()).unwrap_or(u64::MAX) / gap;
    usize::try_from(due).unwrap_or(MOST_TOGETHER).clamp(1, MOST_TOGETHER)
}

/// The departure times of the datagrams that leave next.
pub(crate) struct TimedDepartures {
    batch: DepartureBatch,
    length: usize,
    /// Schedule and bytes before the next datagram.
    next: Option<(PacingSchedule, u64)>,
    /// How early they are handed over: by as much as a wake-up provides for.
    ahead: Duration,
}

impl TimedDepartures {
    /// For datagrams of `length` bytes, at most `together` at once.
    pub(crate) fn new(clock: DepartureClock, length: usize, offered: Bitrate, together: usize) -> Self {
        let covered = offered.time_for(Bytes::new((length * together) as u64));
        let ahead = covered.map_or(AHEAD, |time| time.as_duration().min(AHEAD));
        Self { batch: DepartureBatch::new(clock, together), length, next: None, ahead }
    }

    /// How early datagrams are handed over.
    pub(crate) const fn ahead(&self) -> Duration {
        self.ahead
    }

    /// The next datagrams follow `offered` bytes of the schedule.
    pub(crate) const fn follow(&mut self, schedule: PacingSchedule, offered: u64) {
        self.next = Some((schedule, offered));
    }

    /// How many of `most` datagrams depart before `end`.
    pub(crate) fn before(&self, end: Mono, most: u64) -> u64 {
        let Some((schedule, offered)) = self.next else { return most };
        (0..most).take_while(|n| schedule.due(offered + n * self.length as u64) < end).count() as u64
    }

    /// When the datagrams after this moment depart, in turn.
    pub(crate) fn times(&self, now: Mono) -> impl Iterator<Item = Mono> + use<> {
        let (next, length) = (self.next, self.length as u64);
        (0u64..).map(move |n| {
            let due = next.map_or(now, |(schedule, offered)| schedule.due(offered + n * length));
            due.max(now + LATE)
        })
    }

    /// Hands datagrams over; returns how many the kernel took.
    pub(crate) fn send(&mut self, socket: &UdpSocket, bytes: &[u8], now: Mono) -> Result<usize, SockError> {
        let times = self.times(now);
        self.batch.send(socket, bytes, self.length, times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(bps: f64) -> Bitrate {
        Bitrate::from_bps(bps).unwrap()
    }

    #[test]
    fn a_wake_up_provides_for_half_a_millisecond_or_for_what_a_queue_holds() {
        assert_eq!(together(1448, rate(1e6)), 1, "11.6 ms");
        assert_eq!(together(1448, rate(100e6)), 4, "115.84 µs");
        assert_eq!(together(1448, rate(10e9)), 40, "1.16 µs");
        assert_eq!(together(1448, rate(1.0)), 1);
        let ahead = |bps| {
            let together = together(1448, rate(bps));
            TimedDepartures::new(DepartureClock::Monotonic, 1448, rate(bps), together).ahead()
        };
        assert_eq!(ahead(1e6), AHEAD);
        assert_eq!(ahead(10e9), Duration::from_nanos(46_336));
    }

    #[test]
    fn datagrams_depart_on_their_schedule_and_late_ones_soon() {
        let mut departures = TimedDepartures::new(DepartureClock::Monotonic, 1000, rate(8e6), 3);
        // A datagram per millisecond, after the 7000 bytes of the first seven.
        departures.follow(PacingSchedule::new(Mono(0), rate(8e6)).unwrap(), 7000);
        let times = |now| -> Vec<u64> { departures.times(Mono(now)).take(3).map(Mono::as_ns).collect() };
        assert_eq!(times(6_500_000), [7_000_000, 8_000_000, 9_000_000]);
        assert_eq!(times(8_000_000), [8_050_000, 8_050_000, 9_000_000]);
        let before = |end| departures.before(Mono(end), 3);
        assert_eq!([7_000_000, 7_000_001, 9_000_000, 9_000_001, u64::MAX].map(before), [0, 1, 2, 3, 3]);
    }
}
