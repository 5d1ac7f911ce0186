//! Peers that send without pause or read slowly, and flows that are cut.

use linerate_sock::handle::AsFd;
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

use linerate_engine::{FlowSetup, Sockets};
use linerate_model::flow::FlowId;
use linerate_model::{Readings, Sample, Side, SideSettings, Tally};
use linerate_proto::{Ended, PeerError, Session, SessionInput, SessionOutput};
use linerate_sock::poll::{Interest, poll_few};
use linerate_sock::{clock, sockopt};
use linerate_units::{Span, Timestamp};

use super::waiting_reports::ENOUGH_UNSENT_BYTES;
use super::{DELIVERY_TIMEOUT, Dialogue, DialogueEvent, MAX_BYTES_PER_TURN, gap_for};
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
fn a_cut_interrupts_the_flows_that_have_not_failed() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let pair = || {
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, listener.accept().unwrap().0)
    };
    let ((control, _control_peer), (near, far), (other, _other_peer), (healthy, _healthy_peer)) =
        (pair(), pair(), pair(), pair());
    let mut dialogue =
        Dialogue::new(CountingSession::default(), ControlStream::plain(control), clock::now(), true).unwrap();
    let setup = |flow| FlowSetup::new(FlowId(flow), Side::Receiver, Span::from_secs(60));
    let flows = [(setup(0), vec![near, other]), (setup(1), vec![healthy])];
    dialogue.arm(flows.into_iter().map(|(setup, streams)| (setup, Sockets::Tcp(streams))).collect()).unwrap();
    // A reset ends one of two streams of the first flow.
    sockopt::set_linger_abort(&far).unwrap();
    drop(far);
    let deadline = clock::now() + Duration::from_secs(60);
    while !dialogue.flows[&FlowId(0)].handle.has_failed() {
        assert!(!deadline.has_passed(), "the reset was not noticed");
        clock::sleep_until(clock::now() + Duration::from_millis(1));
    }
    dialogue.cut();
    let events = std::mem::take(&mut dialogue.events);
    let [DialogueEvent::Cut { interrupted }] = &events[..] else { panic!("{events:?}") };
    assert_eq!(interrupted, &[FlowId(1)]);
}

#[test]
fn progress_is_no_load_on_a_slow_path() {
    for (path_bps, gap) in [(f64::NAN, 250), (0.0, 250), (1e6, 1000), (5e6, 496), (1e9, 250)] {
        assert_eq!(gap_for(path_bps), Span::from_ms(gap), "{path_bps}");
    }
}

/// Makes a message of each input with samples, and a short one of a final report.
#[derive(Default)]
struct ReportingSession {
    outputs: VecDeque<SessionOutput>,
    reports: usize,
}

impl ReportingSession {
    const SAMPLES_BYTES: usize = 64 << 10;
    const REPORT: &'static [u8] = b"end";
}

impl Session for ReportingSession {
    fn input(&mut self, _: Timestamp, input: SessionInput<'_>) -> Result<(), PeerError> {
        match input {
            SessionInput::Samples { .. } => {
                self.outputs.push_back(SessionOutput::Send(vec![b's'; Self::SAMPLES_BYTES]));
            }
            SessionInput::FlowEnded(_) => {
                self.reports += 1;
                self.outputs.push_back(SessionOutput::Send(Self::REPORT.to_vec()));
            }
            _ => {}
        }
        Ok(())
    }

    fn output(&mut self) -> Option<SessionOutput> {
        self.outputs.pop_front()
    }

    fn deadline(&self) -> Option<Timestamp> {
        None
    }
}

/// A dialogue in which a flow with this many messages of samples has ended, and the other end.
fn reporting(messages: usize) -> (Dialogue<ReportingSession>, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let far = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let near = ControlStream::plain(listener.accept().unwrap().0);
    let mut dialogue = Dialogue::new(ReportingSession::default(), near, clock::now(), false).unwrap();
    let sample = Sample {
        side: Side::Sender,
        start_ns: Timestamp::START,
        end_ns: Timestamp::from_ns(1),
        outside: false,
        readings: Readings::default(),
    };
    let ended = Ended {
        flow: FlowId(0),
        side: Side::Sender,
        settings: SideSettings::default(),
        tally: Tally::default(),
        caveats: Vec::new(),
    };
    dialogue.reports.add(vec![sample; 16 * messages], Box::new(ended));
    (dialogue, far)
}

#[test]
fn samples_wait_for_a_peer_that_reads_slowly_and_their_memory_is_bounded() {
    const MESSAGES: usize = 300;
    let (mut dialogue, mut far) = reporting(MESSAGES);
    let whole = MESSAGES * ReportingSession::SAMPLES_BYTES + ReportingSession::REPORT.len();
    let reader = std::thread::spawn(move || {
        let mut bytes = vec![0; whole];
        far.read_exact(&mut bytes).map(|()| bytes)
    });
    let deadline = clock::now() + Duration::from_secs(60);
    while !dialogue.reports.is_empty() || dialogue.stream.unsent() > 0 {
        assert!(!deadline.has_passed(), "{} bytes are left", dialogue.stream.unsent());
        dialogue.turn(clock::now() + Duration::from_millis(100), &[]).unwrap();
        let unsent = dialogue.stream.unsent();
        assert!(unsent < ENOUGH_UNSENT_BYTES + ReportingSession::SAMPLES_BYTES, "{unsent}");
    }
    assert_eq!(dialogue.session.reports, 1);
    let bytes = reader.join().unwrap().unwrap();
    assert!(bytes.ends_with(b"send") && bytes.iter().filter(|byte| **byte == b'e').count() == 1);
}

#[test]
fn a_peer_that_takes_no_report_for_a_minute_is_given_up() {
    let (mut dialogue, _far) = reporting(1000);
    // The buffers of the connection take a part.
    let mut full = 0;
    while full < 10 {
        let before = dialogue.stream.unsent();
        dialogue.turn(clock::now() + Duration::from_millis(20), &[]).unwrap();
        full = if dialogue.stream.unsent() == before { full + 1 } else { 0 };
    }
    assert!(!dialogue.reports.is_empty() && dialogue.session.reports == 0);
    dialogue.delivered = dialogue.delivered.earlier(DELIVERY_TIMEOUT.as_duration());
    let error = dialogue.turn(clock::now(), &[]).unwrap_err();
    assert_eq!(error.to_string(), "the other end does not read its messages");
}
