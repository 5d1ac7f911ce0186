//! Requests and responses: every request is answered once and timed, over connections that stay and over new ones.

use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use linerate_engine::{
    AcceptedConnections, ByteAccount, Connector, FlowReport, FlowSetup, Sockets, TransactionConnections,
    TransactionSetup, start,
};
use linerate_model::Side;
use linerate_model::flow::FlowId;
use linerate_sock::{SockError, SocketOptions, clock};
use linerate_units::{Bytes, Span};

use crate::ends::{HEADER, tcp_pairs, udp_pairs};

fn setup(request: usize, response: usize) -> TransactionSetup {
    TransactionSetup {
        request,
        response,
        pipeline: 1,
        per_second: None,
        requests: None,
        spin: false,
        connections: TransactionConnections::Kept,
    }
}

fn sides(ms: u64, setup: &TransactionSetup) -> (FlowSetup, FlowSetup) {
    let of = |side| FlowSetup {
        tick: Span::from_ms(20),
        length: Some(Bytes::new(setup.request as u64)),
        transactions: Some(setup.clone()),
        ..FlowSetup::new(FlowId(0), side, Span::from_ms(ms))
    };
    (of(Side::Sender), of(Side::Receiver))
}

fn over_tcp(ms: u64, setup: &TransactionSetup, streams: usize) -> (FlowReport, FlowReport) {
    let (near, far) = tcp_pairs(streams);
    let epoch = clock::now();
    let (sender, receiver) = sides(ms, setup);
    let receiver = start(receiver, Sockets::Tcp(far), epoch).unwrap();
    let sender = start(sender, Sockets::Tcp(near), epoch).unwrap();
    (sender.finish(), receiver.finish())
}

/// Number of transactions, after both ends were found to agree and to be complete.
fn agreed(reports: &(FlowReport, FlowReport), setup: &TransactionSetup) -> u64 {
    let (sender, receiver) = (&reports.0.tally, &reports.1.tally);
    assert!(sender.complete && receiver.complete, "{:?} {:?}", sender.error, receiver.error);
    let (asked, answered) = (sender.transactions.as_ref().unwrap(), receiver.transactions.as_ref().unwrap());
    assert_eq!(asked.failed, 0);
    assert_eq!(sender.total_bytes.get(), asked.completed * setup.request as u64);
    assert_eq!(receiver.total_bytes, sender.total_bytes);
    // The measured part of the side that responds may end before the last responses.
    assert!(answered.completed <= asked.completed);
    let times = asked.times.unwrap();
    assert!(times.min_ns > 0 && times.min_ns <= times.p50_ns && times.p50_ns <= times.p9999_ns);
    assert!(times.p9999_ns <= times.max_ns);
    assert_eq!(asked.histogram.iter().map(|bucket| bucket.count).sum::<u64>(), asked.completed);
    asked.completed
}

#[test]
fn each_way_of_waiting_answers_every_request() {
    let one = setup(1, 1);
    let large = setup(1 << 20, 3 << 20);
    let deep = TransactionSetup { pipeline: 16, ..setup(100, 1000) };
    let spinning = TransactionSetup { spin: true, ..setup(64, 64) };
    for (setup, streams) in
        [(&one, 1), (&one, 3), (&one, 100), (&large, 1), (&large, 2), (&deep, 1), (&deep, 40), (&spinning, 1)]
    {
        // On a busy machine it takes a while until each stream has had a turn.
        let reports = over_tcp(1000, setup, streams);
        assert!(agreed(&reports, setup) >= streams as u64, "{setup:?} {streams}");
    }
}

#[test]
fn large_messages_under_way_in_both_directions_do_not_wait_for_each_other() {
    let setup = TransactionSetup { pipeline: 8, requests: Some(40), ..setup(4 << 20, 4 << 20) };
    assert_eq!(agreed(&over_tcp(0, &setup, 2), &setup), 40);
}

#[test]
fn a_number_of_requests_is_made_exactly() {
    for (requests, streams, pipeline) in [(1, 1, 1), (1000, 3, 1), (7, 10, 4), (1001, 4, 16)] {
        let setup = TransactionSetup { requests: Some(requests), pipeline, ..setup(10, 10) };
        assert_eq!(agreed(&over_tcp(0, &setup, streams), &setup), requests);
    }
}

#[test]
fn requests_are_sent_at_the_rate_and_their_times_count_from_when_they_were_due() {
    let setup = TransactionSetup { per_second: Some(500), ..setup(1, 1) };
    for streams in [1, 5] {
        let reports = over_tcp(400, &setup, streams);
        // 500 per second for 0.4 s: those that are due after the end of the time are not sent.
        let made = agreed(&reports, &setup);
        assert!((1..=200).contains(&made), "{made}");
        let unsent = reports.0.caveats.iter().any(|caveat| caveat.text.contains("requests that were due"));
        // At the end, one of each stream may be under way.
        assert!(made + streams as u64 >= 198 || unsent, "{made} {:?}", reports.0.caveats);
    }
}

#[test]
fn each_request_at_a_rate_has_its_slot() {
    // Requests at 0, 100 and 200 ms, and the rest of the last slot: not three in 200 ms.
    let setup = TransactionSetup { per_second: Some(10), ..setup(1, 1) };
    let reports = over_tcp(250, &setup, 1);
    let made = agreed(&reports, &setup) as f64;
    let counted = reports.0.tally.transactions.as_ref().unwrap();
    assert!(counted.per_second <= made / (0.1 * made).min(0.25) + 1e-6, "{counted:?}");
}

#[test]
fn the_omitted_part_is_not_in_the_result() {
    let setup = setup(1, 1);
    let (near, far) = tcp_pairs(1);
    let epoch = clock::now();
    let (sender, receiver) = sides(2_000, &setup);
    let omit = Span::from_ms(1_000);
    let receiver = start(FlowSetup { omit, ..receiver }, Sockets::Tcp(far), epoch).unwrap();
    let sender = start(FlowSetup { omit, ..sender }, Sockets::Tcp(near), epoch).unwrap();
    let (report, _) = (sender.finish(), receiver.finish());
    let made = report.tally.transactions.unwrap();
    assert!(report.tally.omitted_bytes.get() > 0 && made.completed > 0);
    assert!(made.completed <= report.tally.total_bytes.get() - report.tally.omitted_bytes.get() + 1);
}

#[test]
fn intervals_have_transactions_and_their_times() {
    let reports = over_tcp(200, &setup(1, 1), 1);
    let made = reports.0.tally.transactions.unwrap().completed;
    let samples = &reports.0.samples;
    use linerate_model::metrics::flow::{TRANSACTION_P50, TRANSACTION_P99, TRANSACTIONS};
    assert_eq!(samples.iter().filter_map(|sample| sample.readings.get(TRANSACTIONS)).sum::<u64>(), made);
    assert!(samples.iter().any(|sample| sample.readings.get(TRANSACTION_P50) > Some(Span::ZERO)));
    assert!(samples.iter().all(|s| s.readings.get(TRANSACTION_P50) <= s.readings.get(TRANSACTION_P99)));
}

#[test]
fn datagrams_are_answered_too() {
    for (streams, pipeline) in [(1, 1), (1, 8), (20, 1)] {
        let setup = TransactionSetup { pipeline, ..setup(32, 100) };
        let (near, far) = udp_pairs(streams);
        let epoch = clock::now();
        let stamped = |side: FlowSetup| FlowSetup {
            stamp: HEADER,
            tag: *b"thistest",
            transport: linerate_model::Transport::Udp,
            ..side
        };
        let (sender, receiver) = sides(100, &setup);
        let receiver = start(stamped(receiver), Sockets::Udp(far), epoch).unwrap();
        let sender = start(stamped(sender), Sockets::Udp(near), epoch).unwrap();
        let sent = sender.finish();
        receiver.stop_reading(clock::now() + Duration::from_secs(1));
        let received = receiver.finish();
        let made = sent.tally.transactions.unwrap();
        assert!(
            made.completed > 0 && sent.tally.complete && received.tally.complete,
            "{:?}",
            sent.tally.error
        );
        assert_eq!(sent.tally.udp.unwrap().packets, made.completed + made.failed);
    }
}

#[test]
fn datagrams_that_nobody_answers_have_failed() {
    let setup = setup(32, 32);
    let (near, far) = udp_pairs(1);
    let (sender, _) = sides(50, &setup);
    let udp = linerate_model::Transport::Udp;
    let sender = FlowSetup { stamp: HEADER, tag: *b"thistest", transport: udp, ..sender };
    let report = start(sender, Sockets::Udp(near), clock::now()).unwrap().finish();
    let made = report.tally.transactions.unwrap();
    assert_eq!((made.completed, made.failed, made.times), (0, 1, None));
    drop(far);
}

/// Runs both ends of a flow with a connection for each transaction. A thread accepts the connections and reads their
/// prefaces, as a server does.
fn reconnecting(setup: &TransactionSetup, streams: usize, ms: u64) -> (FlowReport, FlowReport) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let accepted = Arc::new(AcceptedConnections::new(1000, SocketOptions::default()));
    let queue = Arc::clone(&accepted);
    std::thread::spawn(move || {
        use std::io::Read;
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let mut preface = [0; 4];
            if connection.read_exact(&mut preface).is_ok() && preface == *b"this" {
                queue.put(connection);
            }
        }
    });
    let connect = move || TcpStream::connect(address).map_err(|error| SockError::new("connect", error));
    let opened = TransactionConnections::Opened(Connector::new(b"this", connect));
    let (near, far) = tcp_pairs(streams);
    let epoch = clock::now();
    let (sender, _) = sides(ms, &TransactionSetup { connections: opened, ..setup.clone() });
    let accepted = TransactionConnections::Accepted(accepted);
    let (_, receiver) = sides(ms, &TransactionSetup { connections: accepted, ..setup.clone() });
    let each = |side: FlowSetup| FlowSetup { one_pump_each: true, ..side };
    let receiver = start(each(receiver), Sockets::Tcp(far), epoch).unwrap();
    let sender = start(each(sender), Sockets::Tcp(near), epoch).unwrap();
    (sender.finish(), receiver.finish())
}

#[test]
fn a_connection_for_each_transaction_carries_one() {
    for (setup, streams) in [(setup(1, 1), 1), (setup(300_000, 700_000), 2), (setup(1, 1), 8)] {
        let reports = reconnecting(&setup, streams, 200);
        assert!(agreed(&reports, &setup) > 0);
    }
    let counted = TransactionSetup { requests: Some(50), ..setup(1, 1) };
    assert_eq!(agreed(&reconnecting(&counted, 4, 0), &counted), 50);
}

#[test]
fn connections_that_cannot_be_opened_end_the_flow_with_their_reason() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let connect = move || TcpStream::connect(closed).map_err(|error| SockError::new("connect", error));
    let opened = TransactionConnections::Opened(Connector::new(b"", connect));
    let (near, far) = tcp_pairs(1);
    let (sender, receiver) = sides(60_000, &TransactionSetup { connections: opened, ..setup(1, 1) });
    drop(receiver);
    let report = start(FlowSetup { one_pump_each: true, ..sender }, Sockets::Tcp(near), clock::now())
        .unwrap()
        .finish();
    drop(far);
    let error = report.tally.error.unwrap().to_string();
    assert!(error.contains("refused"), "{error}");
    assert_eq!(report.tally.transactions.unwrap().failed, 10);
}

#[test]
fn a_connection_that_drips_holds_no_flow_that_is_ended() {
    use std::io::Write;
    let accepted = Arc::new(AcceptedConnections::new(1, SocketOptions::default()));
    let setup = TransactionSetup {
        connections: TransactionConnections::Accepted(Arc::clone(&accepted)),
        ..setup(64 << 20, 1)
    };
    let ((mut client, server), (near, far)) = (tcp_pairs(1), tcp_pairs(1));
    accepted.put({ server }.remove(0));
    let (_, receiver) = sides(60_000, &setup);
    let flow = FlowSetup { one_pump_each: true, ..receiver };
    let flow = start(flow, Sockets::Tcp(far), clock::now()).unwrap();
    let dripping = std::thread::spawn(move || while client[0].write_all(b"x").is_ok() {});
    while accepted_waits(&accepted) {
        std::thread::yield_now();
    }
    flow.abort();
    let report = flow.finish();
    assert!(!report.tally.complete);
    drop(near);
    dripping.join().unwrap();
}

/// Whether no thread has taken the connection yet: a second one would be closed.
fn accepted_waits(accepted: &AcceptedConnections) -> bool {
    let (mut near, far) = tcp_pairs(1);
    accepted.put({ far }.remove(0));
    near[0].set_nonblocking(true).unwrap();
    matches!(std::io::Read::read(&mut near[0], &mut [0]), Ok(0))
}

#[test]
fn requests_and_responses_are_both_what_a_flow_has_moved() {
    let account = Arc::new(ByteAccount::default());
    let setup = TransactionSetup { requests: Some(30), ..setup(10, 1000) };
    let (near, far) = tcp_pairs(1);
    let (sender, receiver) = sides(0, &setup);
    let receiver = FlowSetup { account: Some(Arc::clone(&account)), ..receiver };
    let receiver = start(receiver, Sockets::Tcp(far), clock::now()).unwrap();
    let sender = start(sender, Sockets::Tcp(near), clock::now()).unwrap();
    drop((sender.finish(), receiver.finish()));
    assert_eq!(account.total(), Bytes::new(30 * (10 + 1000)));
}

#[test]
fn a_response_that_takes_longer_than_the_wait_for_the_last_ones_counts_while_it_arrives() {
    use std::io::{Read, Write};
    let setup = TransactionSetup { requests: Some(1), ..setup(1, 6) };
    let (near, mut far) = tcp_pairs(1);
    let (sender, _) = sides(0, &setup);
    let sender = start(sender, Sockets::Tcp(near), clock::now()).unwrap();
    let mut peer = far.remove(0);
    peer.read_exact(&mut [0]).unwrap();
    for _ in 0..6 {
        clock::sleep_until(clock::now() + Duration::from_millis(500));
        peer.write_all(b"x").unwrap();
    }
    let mut rest = [0];
    assert_eq!(peer.read(&mut rest).unwrap(), 0, "it half-closes when it has its response");
    drop(peer);
    let made = sender.finish().tally.transactions.unwrap();
    assert_eq!((made.completed, made.failed), (1, 0));
}

#[test]
fn what_broke_off_has_been_moved_too() {
    use std::io::{Read, Write};
    let account = Arc::new(ByteAccount::default());
    let accepted = Arc::new(AcceptedConnections::new(1, SocketOptions::default()));
    let connections = TransactionConnections::Accepted(Arc::clone(&accepted));
    let setup = TransactionSetup { connections, ..setup(2000, 1) };
    let (mut client, mut server) = tcp_pairs(1);
    let (near, far) = tcp_pairs(1);
    accepted.put(server.remove(0));
    let (_, receiver) = sides(60_000, &setup);
    let receiver = FlowSetup { one_pump_each: true, account: Some(Arc::clone(&account)), ..receiver };
    let receiver = start(receiver, Sockets::Tcp(far), clock::now()).unwrap();
    client[0].write_all(&[0; 1999]).unwrap();
    linerate_sock::queues::finish_writing(&client[0]).unwrap();
    assert_eq!(client[0].read(&mut [0]).unwrap(), 0, "no response to a part of a request");
    drop(near);
    let report = receiver.finish();
    assert_eq!(report.tally.transactions.unwrap().completed, 0);
    assert_eq!(account.total(), Bytes::new(1999));
}
