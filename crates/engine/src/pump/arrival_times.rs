//! When the bytes of a slow stream arrived, from the kernel's receive timestamps.
//!
//! On a busy machine a thread may read tens of milliseconds late. At 2 Mb/s a segment takes 6 ms, so the time of
//! such a read says when its bytes arrived only to within a segment. The kernel timestamps the arrival itself.
//! A timestamp costs a control message with every read, so fast streams, of which a segment takes microseconds,
//! do without.

use linerate_sock::handle::AsFd;
use std::time::Duration;

use linerate_sock::sockopt::{Timestamping, set_timestamping};
use linerate_sock::{Mono, clock};

/// Timestamps are switched on below this rate, bytes/s (20 Mb/s).
const SLOW_BYTES_PER_SECOND: u64 = 2_500_000;
/// Timestamps are switched off above this rate, bytes/s (50 Mb/s). The gap to [`SLOW_BYTES_PER_SECOND`] keeps a
/// stream from switching all the time.
const FAST_BYTES_PER_SECOND: u64 = 6_250_000;
/// Time over which the rate is observed: longer than the burst with which a token bucket lets a stream begin.
const OBSERVED: Duration = Duration::from_millis(100);

/// Whether a stream's packets are timestamped on arrival, and the rate that decides it.
#[derive(Debug)]
pub(super) struct ArrivalTimes {
    on: bool,
    /// Whether they may be switched on again.
    wanted: bool,
    /// Whether they stay on, however fast the stream is.
    kept: bool,
    bytes: u64,
    since: Mono,
    last: Mono,
}

impl ArrivalTimes {
    /// Switches timestamps of this socket on if they are `wanted` and the kernel has them.
    pub(super) fn new(fd: &impl AsFd, wanted: bool) -> Self {
        let on = wanted && switch(fd, true);
        Self { on, wanted: on, kept: false, bytes: 0, since: Mono::FAR, last: Mono::default() }
    }

    /// Leaves timestamps on, however fast the stream is.
    pub(super) const fn keep(&mut self) {
        self.kept = true;
    }

    /// Whether packets are timestamped.
    #[inline]
    pub(super) const fn are_on(&self) -> bool {
        self.on
    }

    /// When the bytes of a read that returned at `now` had arrived: by the kernel's timestamp, or absent without a
    /// credible one. Never before an earlier read's bytes.
    #[inline]
    pub(super) fn of_read(&mut self, now: Mono, stamp_ns: Option<u64>) -> Option<Mono> {
        let at = stamp_ns.and_then(clock::arrival).map(|at| at.clamp(self.last.min(now), now));
        self.last = at.unwrap_or(now);
        at
    }

    /// Observes a read of `bytes` bytes that returned at `now`, and switches if the rate asks for it.
    #[inline]
    pub(super) fn after(&mut self, fd: &impl AsFd, now: Mono, bytes: u64) {
        if !self.kept
            && let Some(on) = self.observe(now, bytes)
        {
            self.on = switch(fd, on) && on;
        }
    }

    /// What to switch to; absent if nothing changes.
    #[inline]
    fn observe(&mut self, now: Mono, bytes: u64) -> Option<bool> {
        self.since = self.since.min(now);
        self.bytes += bytes;
        let elapsed = now.since(self.since);
        if elapsed < OBSERVED {
            return None;
        }
        let rate = u128::from(self.bytes) * 1_000_000_000 / elapsed.as_nanos();
        (self.bytes, self.since) = (0, now);
        match self.on {
            true => (rate > u128::from(FAST_BYTES_PER_SECOND)).then_some(false),
            false => (self.wanted && rate < u128::from(SLOW_BYTES_PER_SECOND)).then_some(true),
        }
    }

    /// Leaves a borrowed connection as it was.
    pub(super) fn end(&self, fd: &impl AsFd) {
        if self.on {
            switch(fd, false);
        }
    }
}

/// True if the kernel did it.
fn switch(fd: &impl AsFd, on: bool) -> bool {
    set_timestamping(fd, Timestamping { receive: on, ..Timestamping::default() }).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_sock::poll::{Interest, wait_for};
    use linerate_sock::stream::recv_stamped;
    use linerate_sock::{Moved, queues};
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    fn connection() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, listener.accept().unwrap().0)
    }

    /// Feeds reads of `bytes` bytes every `gap_us` microseconds for a second; returns the last change.
    fn a_second_of(times: &mut ArrivalTimes, from_s: u64, gap_us: u64, bytes: u64) -> Option<bool> {
        let reads = 1_000_000 / gap_us;
        let changes = (0..reads).filter_map(|read| {
            let change = times.observe(Mono(from_s * 1_000_000_000 + read * gap_us * 1000), bytes)?;
            times.on = change;
            Some(change)
        });
        changes.last()
    }

    #[test]
    fn slow_streams_have_timestamps_and_fast_ones_do_not() {
        let (_near, far) = connection();
        let mut times = ArrivalTimes::new(&far, true);
        assert!(times.are_on());
        assert_eq!(a_second_of(&mut times, 1, 6000, 1448), None, "2 Mb/s");
        assert_eq!(a_second_of(&mut times, 2, 350, 1448), None, "33 Mb/s: as before");
        assert_eq!(a_second_of(&mut times, 3, 100, 1448), Some(false), "116 Mb/s");
        assert_eq!(a_second_of(&mut times, 4, 350, 1448), None, "33 Mb/s: as before");
        assert_eq!(a_second_of(&mut times, 5, 6000, 1448), Some(true), "2 Mb/s");
        let mut unwanted = ArrivalTimes::new(&far, false);
        assert_eq!((unwanted.are_on(), a_second_of(&mut unwanted, 1, 6000, 1448)), (false, None));
    }

    #[test]
    fn the_burst_of_a_token_bucket_is_no_fast_stream() {
        let (_near, far) = connection();
        let mut times = ArrivalTimes::new(&far, true);
        for read in 0..90 {
            assert_eq!(times.observe(Mono(read * 10_000), 1448), None, "130 kB at once");
        }
        assert_eq!(a_second_of(&mut times, 1, 6000, 1448), None);
    }

    #[test]
    fn a_late_read_learns_when_its_bytes_arrived() {
        const LATE: Duration = Duration::from_millis(200);
        let (mut near, far) = connection();
        let mut times = ArrivalTimes::new(&far, true);
        let mut buffer = [0; 64];
        // The kernel enables timestamps asynchronously for the first socket of a host that asks.
        let (before, arrived, after, late) = loop {
            let before = clock::now();
            near.write_all(b"four").unwrap();
            assert!(wait_for(&far, Interest::READ, Mono::FAR).unwrap());
            let after = clock::now();
            clock::sleep_until(after + LATE);
            assert_eq!(queues::readable(&far).unwrap(), 4);
            let (moved, stamp) = recv_stamped(&far, &mut buffer).unwrap();
            assert_eq!(moved, Moved::Bytes(4));
            let late = clock::now();
            if let Some(at) = times.of_read(late, stamp) {
                break (before, at, after, late);
            }
        };
        assert!(late.since(after) >= LATE);
        // The two clocks are read one after the other, and a busy machine may do something else in between.
        let margin = LATE / 2;
        assert!(before <= arrived + margin && arrived <= after + margin, "{before:?} {arrived:?} {after:?}");
        times.end(&far);
        near.write_all(b"more").unwrap();
        assert_eq!(recv_stamped(&far, &mut buffer).unwrap(), (Moved::Bytes(4), None));
    }

    #[test]
    fn times_never_go_back_and_are_never_in_the_future() {
        let (_near, far) = connection();
        let mut times = ArrivalTimes::new(&far, true);
        let now = clock::now();
        assert_eq!(times.of_read(now, None), None);
        let stamp = clock::wall_ns() - 50_000_000;
        assert_eq!(times.of_read(now, Some(stamp)), Some(now), "bytes before it were read at {now:?}");
    }
}
