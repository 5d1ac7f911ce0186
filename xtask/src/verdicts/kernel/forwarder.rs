//! The tests' own delay: a thread that forwards frames between two TAP devices, each at its own absolute time.
//!
//! It shares no code with the emulator: one heap of frames, no rate, no queue limit except memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use linerate_sock::clock;
use linerate_sock::netns::with_netns;
use linerate_sock::poll::{Events, Interest, Poller};
use linerate_sock::priority::Urgent;
use linerate_sock::tap::{HEADER_BYTES, Tap};
use linerate_sock::{Mono, SockError};

use super::situation::Forwarding;

/// The largest GSO frame with its headers.
const FRAME_BYTES: usize = HEADER_BYTES + 18 + (64 << 10);
/// Frames read from one side before the other has its turn.
const FRAMES_PER_TURN: usize = 64;
/// Most bytes in transit; more indicate an error in the situation.
const MAX_HELD_BYTES: usize = 512 << 20;
/// How often it checks whether it should end.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A running forwarder, stopped on drop.
pub(super) struct Forwarder {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Forwarder {
    /// Creates `right` in the western and `left` in the eastern namespace, and forwards frames between them.
    pub(super) fn start(west: &str, east: &str, what: Forwarding, seed: u64) -> Result<Self, String> {
        let open = |namespace: &str, device: &str| {
            let tap = with_netns(namespace, || Tap::create(device)).map_err(|e| e.to_string())?;
            tap.map_err(|e| format!("cannot make {device} in {namespace}: {e}"))
        };
        let taps = [open(west, "right")?, open(east, "left")?];
        let stop = Arc::new(AtomicBool::new(false));
        let carry = Carry { taps, held: FramesInTransit::new(what, seed), stop: Arc::clone(&stop) };
        let thread = linerate_sock::thread::spawn("forwarder", move || {
            if let Err(error) = carry.run() {
                eprintln!("the delay forwarder ended: {error}");
            }
        });
        let thread = thread.map_err(|e| format!("the delay forwarder: {e}"))?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Carry {
    /// West, east.
    taps: [Tap; 2],
    held: FramesInTransit,
    stop: Arc<AtomicBool>,
}

impl Carry {
    fn run(mut self) -> Result<(), SockError> {
        // Both only improve precision.
        let _urgent = Urgent::claim().ok();
        let _ = clock::set_timer_slack_ns(1);
        let poller = Poller::new()?;
        for (token, tap) in self.taps.iter().enumerate() {
            poller.add(tap, token as u64, Interest::READ)?;
        }
        let mut events = Events::with_capacity(2);
        let mut buffer = vec![0; FRAME_BYTES];
        while !self.stop.load(Ordering::Relaxed) {
            let due = self.held.next().unwrap_or(Mono::FAR);
            poller.wait_ns(&mut events, due.min(clock::now() + POLL_INTERVAL))?;
            for (from, tap) in self.taps.iter().enumerate() {
                for _ in 0..FRAMES_PER_TURN {
                    let Some(length) = tap.read(&mut buffer)? else { break };
                    self.held.push(clock::now(), from, &buffer[..length]);
                }
            }
            while let Some((to, frame)) = self.held.pop(clock::now()) {
                // An interface that is going down accepts no frame, like an unplugged cable.
                let _ = self.taps[to].write(&frame);
            }
        }
        Ok(())
    }
}

/// A frame in transit: ordered by due time, then by arrival.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct OnTheWay {
    due: Mono,
    number: u64,
    to: usize,
    frame: Vec<u8>,
}

/// The frames in transit, without sockets or clocks.
struct FramesInTransit {
    what: Forwarding,
    heap: BinaryHeap<Reverse<OnTheWay>>,
    bytes: usize,
    /// Number of the next frame.
    number: u64,
    /// Number of frames towards the server.
    forward: u64,
    /// Due time of the last frame of each direction, so that jitter keeps the order.
    last: [Mono; 2],
    random: u64,
}

impl FramesInTransit {
    fn new(what: Forwarding, seed: u64) -> Self {
        // Odd, as xorshift must not start at 0.
        let random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        Self { what, heap: BinaryHeap::new(), bytes: 0, number: 0, forward: 0, last: [Mono(0); 2], random }
    }

    fn draw(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    fn push(&mut self, now: Mono, from: usize, frame: &[u8]) {
        let what = self.what;
        if self.bytes + frame.len() > MAX_HELD_BYTES {
            return;
        }
        let mut due = now + Duration::from_micros(what.delay_us.into());
        if what.jitter_us > 0 {
            due += Duration::from_micros(self.draw() % u64::from(what.jitter_us));
            if !what.overtaking {
                due = due.max(self.last[from]);
                self.last[from] = due;
            }
        }
        let every = |count: u64, every: u32| every > 0 && count.is_multiple_of(u64::from(every));
        let mut copies = 1;
        if from == 0 {
            self.forward += 1;
            if every(self.forward, what.late_every) {
                due += Duration::from_micros(what.late_us.into());
            }
            if every(self.forward, what.twice_every) {
                copies = 2;
            }
        }
        for _ in 0..copies {
            self.number += 1;
            self.bytes += frame.len();
            let number = self.number;
            self.heap.push(Reverse(OnTheWay { due, number, to: 1 - from, frame: frame.to_vec() }));
        }
    }

    fn next(&self) -> Option<Mono> {
        self.heap.peek().map(|Reverse(first)| first.due)
    }

    /// A frame that is due, and its destination side.
    fn pop(&mut self, now: Mono) -> Option<(usize, Vec<u8>)> {
        self.next().filter(|due| *due <= now)?;
        let Reverse(first) = self.heap.pop()?;
        self.bytes -= first.frame.len();
        Some((first.to, first.frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Mono {
        Mono(1_000_000 + us * 1000)
    }

    /// Sends frames 0, 1, … towards the server, one per 100 µs, and returns when each left.
    fn arrivals(what: Forwarding, frames: u8) -> Vec<(u8, u64)> {
        let mut held = FramesInTransit::new(what, 7);
        for frame in 0..frames {
            held.push(at(100 * u64::from(frame)), 0, &[frame]);
        }
        let mut out = Vec::new();
        while let Some(due) = held.next() {
            let us = (due.as_ns() - 1_000_000) / 1000;
            assert_eq!(held.pop(at(us - 1)), None, "nothing comes early");
            let (to, frame) = held.pop(due).unwrap();
            assert_eq!(to, 1);
            out.push((frame[0], us));
        }
        assert_eq!(held.bytes, 0);
        out
    }

    #[test]
    fn frames_come_in_order_after_their_delay() {
        let what = Forwarding { delay_us: 5000, ..Forwarding::default() };
        assert_eq!(arrivals(what, 3), [(0, 5000), (1, 5100), (2, 5200)]);
    }

    #[test]
    fn every_third_is_late_or_comes_twice() {
        let late = Forwarding { delay_us: 1000, late_every: 3, late_us: 150, ..Forwarding::default() };
        assert_eq!(arrivals(late, 4), [(0, 1000), (1, 1100), (3, 1300), (2, 1350)]);
        let twice = Forwarding { delay_us: 1000, twice_every: 2, ..Forwarding::default() };
        assert_eq!(arrivals(twice, 3), [(0, 1000), (1, 1100), (1, 1100), (2, 1200)]);
    }

    #[test]
    fn jitter_keeps_the_order_unless_frames_may_overtake() {
        let what = Forwarding { delay_us: 1000, jitter_us: 5000, ..Forwarding::default() };
        let names = |what| arrivals(what, 50).into_iter().map(|(frame, _)| frame).collect::<Vec<_>>();
        assert!(names(what).is_sorted());
        let overtaking = Forwarding { overtaking: true, ..what };
        assert!(!names(overtaking).is_sorted());
        assert!(
            arrivals(overtaking, 50)
                .iter()
                .all(|(frame, us)| { (1000..6000).contains(&(us - 100 * u64::from(*frame))) })
        );
    }

    #[test]
    fn the_way_back_is_only_delayed() {
        let mut held =
            FramesInTransit::new(Forwarding { delay_us: 10, twice_every: 1, ..Forwarding::default() }, 1);
        held.push(at(0), 1, b"back");
        assert_eq!(held.pop(at(10)), Some((0, b"back".to_vec())));
        assert_eq!(held.pop(at(1000)), None);
    }
}
