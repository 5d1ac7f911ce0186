//! A peer that sends without pause.

use linerate_sock::handle::AsFd;
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

use linerate_proto::{PeerError, Session, SessionInput, SessionOutput};
use linerate_sock::clock;
use linerate_sock::poll::{Interest, poll_few};
use linerate_units::{Span, Timestamp};

use super::{Dialogue, MAX_BYTES_PER_TURN, gap_for};
use crate::control_stream::ControlStream;

/// Counts its bytes and ticks; requests its first tick one millisecond after the start.
#[derive(Default)]
struct CountingSession {
    received: usize,
    ticks: u32,
}

impl Session for CountingSession {
    fn input(&mut self, _: Timestamp, input: SessionInput<'_>) -> Result<(), PeerError> {
        match input {
            SessionInput::Bytes(bytes) => self.received += bytes.len(),
            SessionInput::Tick => self.ticks += 1,
            _ => {}
        }
        Ok(())
    }

    fn output(&mut self) -> Option<SessionOutput> {
        None
    }

    fn deadline(&self) -> Option<Timestamp> {
        Some(Timestamp::START)
    }
}

/// A connection on which the other end writes until it is closed.
fn flooded() -> (TcpStream, std::thread::JoinHandle<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let mut far = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (near, _) = listener.accept().unwrap();
    let flood = std::thread::spawn(move || while far.write_all(&[b'x'; 64 << 10]).is_ok() {});
    (near, flood)
}

#[test]
fn whoever_owns_a_dialogue_and_its_deadlines_get_their_turn_however_much_the_peer_says() {
    let (near, flood) = flooded();
    let mut dialogue =
        Dialogue::new(CountingSession::default(), ControlStream::plain(near), clock::now(), true).unwrap();
    for turn in 1..=20 {
        let readable = [(dialogue.stream().as_fd(), Interest::READ)];
        poll_few(&readable, clock::now() + Duration::from_secs(20)).unwrap();
        dialogue.turn(clock::now(), &[]).unwrap();
        let CountingSession { received, ticks } = dialogue.session;
        // A turn may exceed the bound by one read.
        assert!(received <= turn * (MAX_BYTES_PER_TURN + (16 << 10)), "{received} bytes in {turn} turns");
        assert!(
            received >= turn && ticks as usize >= turn,
            "{received} bytes and {ticks} ticks in {turn} turns"
        );
    }
    drop(dialogue);
    flood.join().unwrap();
}

#[test]
fn progress_is_no_load_on_a_slow_path() {
    for (path_bps, gap) in [(f64::NAN, 250), (0.0, 250), (1e6, 1000), (5e6, 496), (1e9, 250)] {
        assert_eq!(gap_for(path_bps), Span::from_ms(gap), "{path_bps}");
    }
}
