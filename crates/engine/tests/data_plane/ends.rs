//! Pairs of connected sockets, and flows over them.

use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use linerate_engine::{FlowHandle, FlowReport, FlowSetup, Sockets, complete_udp, start};
use linerate_model::flow::{FlowId, FlowTask, RunId, SeqField, StampLayout, TimeField, TimeForm};
use linerate_model::{Direction, Side, StopAfter, Transport};
use linerate_sock::{Mono, clock, limits};
use linerate_units::{Bitrate, Bytes, Span};

/// `count` connections over loopback: the sender's ends and the receiver's.
pub(crate) fn tcp_pairs(count: usize) -> (Vec<TcpStream>, Vec<TcpStream>) {
    limits::raise_open_files(count as u64 * 2 + 200).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (0..count)
        .map(|_| {
            let near = TcpStream::connect(address).unwrap();
            (near, listener.accept().unwrap().0)
        })
        .unzip()
}

/// Setups of both ends of a flow limited by time.
pub(crate) fn timed(ms: u64) -> (FlowSetup, FlowSetup) {
    let of =
        |side| FlowSetup { tick: Span::from_ms(20), ..FlowSetup::new(FlowId(0), side, Span::from_ms(ms)) };
    (of(Side::Sender), of(Side::Receiver))
}

/// Setups of both ends of a flow limited by bytes.
pub(crate) fn sized(bytes: u64) -> (FlowSetup, FlowSetup) {
    let (sender, receiver) = timed(0);
    let of = |setup| FlowSetup { stop_after: StopAfter::Bytes(Bytes::new(bytes)), measured: None, ..setup };
    (of(sender), of(receiver))
}

/// Starts both ends over `streams` connections, the receiver first.
pub(crate) fn start_tcp(setups: (FlowSetup, FlowSetup), streams: usize) -> (FlowHandle, FlowHandle) {
    let (near, far) = tcp_pairs(streams);
    let epoch = clock::now();
    let receiver = start(setups.1, Sockets::Tcp(far), epoch).unwrap();
    let sender = start(setups.0, Sockets::Tcp(near), epoch).unwrap();
    (sender, receiver)
}

/// Runs both ends to their regular end.
pub(crate) fn run_tcp(setups: (FlowSetup, FlowSetup), streams: usize) -> (FlowReport, FlowReport) {
    let (sender, receiver) = start_tcp(setups, streams);
    (sender.finish(), receiver.finish())
}

/// `count` pairs of connected UDP sockets over loopback: the sender's ends and the receiver's.
pub(crate) fn udp_pairs(count: usize) -> (Vec<UdpSocket>, Vec<UdpSocket>) {
    limits::raise_open_files(count as u64 * 2 + 200).unwrap();
    let pair = |_| {
        let (near, far) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        near.connect(far.local_addr().unwrap()).unwrap();
        far.connect(near.local_addr().unwrap()).unwrap();
        (near, far)
    };
    (0..count).map(pair).unzip()
}

/// A header of 32 bytes with every possible field.
pub(crate) const HEADER: StampLayout = StampLayout {
    tag_at: Some(0),
    seq: SeqField::Wide { at: 8, first: 0 },
    time: Some(TimeField { at: 16, form: TimeForm::Nanoseconds }),
    stream_at: Some(24),
    length: 32,
};

/// The same setups for datagrams of `length` bytes at `mbps` Mbit/s; 0 saturates.
pub(crate) fn as_udp(setups: (FlowSetup, FlowSetup), length: u64, mbps: f64) -> (FlowSetup, FlowSetup) {
    let of = |setup| FlowSetup {
        transport: Transport::Udp,
        length: Some(Bytes::new(length)),
        offered: Bitrate::from_bps(mbps * 1e6).filter(|_| mbps > 0.0),
        stamp: HEADER,
        tag: *b"thistest",
        ..setup
    };
    (of(setups.0), of(setups.1))
}

/// Runs both ends of a datagram flow: stops the receiver when the sender has ended.
pub(crate) fn run_udp(setups: (FlowSetup, FlowSetup), streams: usize) -> (FlowReport, FlowReport) {
    let (near, far) = udp_pairs(streams);
    let receiver = start(setups.1, Sockets::Udp(far), clock::now()).unwrap();
    let sender = start(setups.0, Sockets::Udp(near), clock::now()).unwrap().finish();
    receiver.stop_reading(in_ms(30_000));
    let mut receiver = receiver.finish();
    complete_udp(&sender.tally, &mut receiver.tally);
    (sender, receiver)
}

/// The instant `ms` milliseconds from now.
pub(crate) fn in_ms(ms: u64) -> Mono {
    clock::now() + Duration::from_millis(ms)
}

/// A stand-in's task: an endless, saturating TCP flow in blocks of `length` bytes.
pub(crate) fn task(side: Side, length: u64) -> FlowTask {
    FlowTask::new(FlowId(7), RunId(1), side, Direction::Upload, Bytes::new(length))
}

/// Starts one end of a stand-in's flow over duplicates of these connections.
pub(crate) fn lend_tcp(task: &FlowTask, links: &[TcpStream]) -> FlowHandle {
    let duplicates = links.iter().map(|link| link.try_clone().unwrap()).collect();
    start(FlowSetup::of_task(task), Sockets::Tcp(duplicates), clock::now()).unwrap()
}

/// Starts one end of a stand-in's flow over a duplicate of this socket.
pub(crate) fn lend_udp(task: &FlowTask, link: &UdpSocket) -> FlowHandle {
    let task = FlowTask { transport: Transport::Udp, ..task.clone() };
    let sockets = Sockets::Udp(vec![link.try_clone().unwrap()]);
    start(FlowSetup::of_task(&task), sockets, clock::now()).unwrap()
}

/// Waits until the flow satisfies a condition.
pub(crate) fn wait_until(handle: &FlowHandle, there: impl Fn(&FlowHandle) -> bool) {
    let deadline = in_ms(60_000);
    while !there(handle) {
        assert!(!deadline.has_passed(), "a minute later: {:?}", handle.counts());
        clock::sleep_until(in_ms(1));
    }
}

/// Waits until the flow is over.
pub(crate) fn wait_ended(handle: &FlowHandle) {
    wait_until(handle, |handle| handle.progress().ended);
}

/// Conditions that hold for every undisturbed TCP flow.
pub(crate) fn check_conserved(sender: &FlowReport, receiver: &FlowReport) {
    let (sent, read) = (&sender.tally, &receiver.tally);
    for (tally, samples) in [(sent, &sender.samples), (read, &receiver.samples)] {
        assert!(tally.complete, "{:?}", tally.error);
        let parts = tally.omitted_bytes.get() + tally.bytes.get() + tally.tail_bytes.get();
        assert_eq!(parts, tally.total_bytes.get());
        let sampled: u64 = samples.iter().map(|sample| sample.bytes().get()).sum();
        assert_eq!(sampled, tally.total_bytes.get(), "the intervals tile the flow");
        for pair in samples.windows(2) {
            assert_eq!(pair[0].end_ns, pair[1].start_ns);
        }
        if !tally.streams.is_empty() {
            assert_eq!(
                tally.streams.iter().map(|stream| stream.bytes.get()).sum::<u64>(),
                tally.total_bytes.get()
            );
        }
    }
    assert_eq!(sent.total_bytes, read.total_bytes, "written is read");
    assert_eq!(sent.queued_bytes, Some(Bytes::new(0)));
    assert_eq!(sent.first_read_bytes, Bytes::new(0));
    assert!(sent.retransmits.is_some() && read.retransmits.is_none());
}
