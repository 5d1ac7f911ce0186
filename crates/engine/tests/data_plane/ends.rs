//! Pairs of connected sockets, and flows over them.

use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use linerate_engine::{FlowHandle, FlowReport, FlowSetup, Sockets, start};
use linerate_model::{Limit, Side};
use linerate_sock::{Mono, clock, limits};
use linerate_units::{Bytes, Span};

/// As many connections over loopback as asked: the sender's ends and the receiver's.
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
    let of = |side| FlowSetup { tick: Span::from_ms(20), ..FlowSetup::new(0, side, Span::from_ms(ms)) };
    (of(Side::Sender), of(Side::Receiver))
}

/// Setups of both ends of a flow limited by bytes.
pub(crate) fn sized(bytes: u64) -> (FlowSetup, FlowSetup) {
    let (sender, receiver) = timed(0);
    let of = |setup| FlowSetup { limit: Limit::Bytes(Bytes::new(bytes)), measured: None, ..setup };
    (of(sender), of(receiver))
}

/// Starts both ends over so many connections, the receiver first.
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

/// The instant so many milliseconds from now.
pub(crate) fn in_ms(ms: u64) -> Mono {
    clock::now() + Duration::from_millis(ms)
}

/// What must hold for a TCP flow that nobody disturbed.
pub(crate) fn check_conserved(sender: &FlowReport, receiver: &FlowReport) {
    let (sent, read) = (&sender.tally, &receiver.tally);
    for (tally, samples) in [(sent, &sender.samples), (read, &receiver.samples)] {
        assert!(tally.complete, "{:?}", tally.trouble);
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
