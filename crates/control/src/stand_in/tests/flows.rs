//! Flows: an invented tool with a control connection, a TCP flow in each direction, and a UDP flow.

use std::collections::BTreeMap;
use std::thread;

use linerate_compat::stand_in::{
    EndMark, Exchange, FlowCounts, FlowTask, Input, Link, LinkOptions, Output, Payload, Planned, Stop,
    Transport,
};
use linerate_model::flow::{FlowId, RunId, SeqField, StampLayout};
use linerate_model::{Body, CaveatKind, Direction, Outcome, RunRecord, Side, Tally, TestSpec};
use linerate_units::{Bytes, Span};

use super::script::{MemorySink, ScriptContext, loopback, options, port, run_with, script};
use crate::stand_in::Interrupts;

const CONTROL: Link = Link(0);
const LISTENER: Link = Link(10);
const DATAGRAMS: Link = Link(11);

/// Bytes that the sender of each flow sends: whole blocks in both TCP flows, datagrams in the UDP flow.
const BLOCK: u64 = 10_000;
const SENT: [u64; 3] = [64 * BLOCK, 7 * BLOCK, 20 * 500];

fn direction(flow: FlowId) -> Direction {
    if flow == FlowId(1) { Direction::Download } else { Direction::Upload }
}

fn task(flow: FlowId, link: Link, client: bool) -> FlowTask {
    let direction = direction(flow);
    let udp = flow == FlowId(2);
    FlowTask {
        flow,
        run: RunId(5),
        side: if (direction == Direction::Upload) == client { Side::Sender } else { Side::Receiver },
        direction,
        transport: if udp { Transport::Udp } else { Transport::Tcp },
        links: vec![link],
        length: Bytes::new(if udp { 500 } else { BLOCK }),
        payload: Payload::default(),
        framing: Default::default(),
        stamp: StampLayout {
            tag_at: None,
            seq: SeqField::Wide { at: 0, first: 1 },
            time: None,
            stream_at: None,
            length: 8,
        },
        bytes: Some(Bytes::new(SENT[usize::from(flow.0)])),
        time: None,
        together: false,
        file: None,
        omit: Span::ZERO,
        offered: None,
        burst: None,
        pacing_tick: None,
        fq_rate: None,
        socket: linerate_model::SocketKnobs::default(),
        affinity: None,
        end_mark: EndMark::None,
        read_before: Vec::new(),
        note: None,
        transit: Default::default(),
    }
}

fn planned(client: bool, link: Link) -> Box<Planned> {
    let flows = (0..3).map(FlowId).map(|flow| (flow, direction(flow))).collect();
    let peer = Some("nothing 1.0".to_owned());
    let spec = TestSpec::default();
    Box::new(Planned { run: RunId(5), tool: "nothing", peer, link, client, spec, flows, expected: None })
}

fn moved(counts: &FlowCounts) -> u64 {
    counts.streams.iter().map(|stream| stream.bytes).sum()
}

/// The report of a peer: the byte counts of its three flows.
fn report(counted: &BTreeMap<FlowId, u64>) -> Vec<u8> {
    counted.values().flat_map(|bytes| bytes.to_be_bytes()).collect()
}

fn check_report(bytes: &[u8], context: &mut ScriptContext) {
    let numbers = bytes.chunks_exact(8).map(|eight| u64::from_be_bytes(eight.try_into().unwrap()));
    for (flow, bytes) in (0..).zip(numbers) {
        let tally = Box::new(Tally { total_bytes: Bytes::new(bytes), complete: true, ..Tally::default() });
        context.output(Output::PeerCounted { flow: FlowId(flow), tally });
    }
}

/// The server: the first byte of each connection identifies its purpose.
fn server(sender: std::sync::mpsc::Sender<u16>) -> Box<dyn linerate_compat::stand_in::StandIn> {
    let (mut control, mut open, mut ports) = (None, BTreeMap::new(), Vec::new());
    let mut counted = BTreeMap::new();
    script(move |input, context| match input {
        Input::Begin => {
            context.output(Output::Listen { link: LISTENER, port: 0, options: LinkOptions::default() });
        }
        Input::Opened { link, opened } => {
            ports.push(opened.local.port());
            if link == LISTENER {
                let (port, options) = (opened.local.port(), options(Transport::Udp));
                context.output(Output::Listen { link: DATAGRAMS, port, options });
            } else {
                sender.send(ports[0]).unwrap();
            }
        }
        Input::Accepted { listener: DATAGRAMS, link, .. } => {
            open.insert(FlowId(2), link);
            context.output(Output::Send { link, bytes: b"hello".to_vec() });
            ask_when_complete(control, &open, context);
        }
        Input::Datagram { from, .. } => {
            let options = options(Transport::Udp);
            context.output(Output::Adopt { listener: DATAGRAMS, peer: from, options });
        }
        Input::Bytes { link, bytes: b"c" } => control = Some(link),
        Input::Bytes { link, bytes: [number @ (b'0' | b'1')] } => {
            open.insert(FlowId(u16::from(number - b'0')), link);
            ask_when_complete(control, &open, context);
        }
        Input::Admitted { run: RunId(5) } => {
            for (flow, link) in &open {
                context.output(Output::Start(Box::new(task(*flow, *link, false))));
            }
            context.output(Output::Send { link: control.unwrap(), bytes: b"go".to_vec() });
        }
        Input::Written { flow } => context.output(Output::Stop { flow, how: Stop::Regularly }),
        // The sender of datagrams is done.
        Input::Bytes { bytes: b"u", .. } => {
            context.output(Output::Stop { flow: FlowId(2), how: Stop::Regularly })
        }
        Input::Ended { counts } => {
            assert!(counts.tally.is_some() && counts.trouble.is_none(), "{counts:?}");
            counted.insert(counts.flow, moved(counts));
            if counted.len() == 3 {
                context.output(Output::Send { link: control.unwrap(), bytes: report(&counted) });
            }
        }
        Input::Bytes { link, bytes } => {
            assert_eq!((Some(link), bytes.len()), (control, 24));
            check_report(bytes, context);
            context.output(Output::RunOver { run: RunId(5), trouble: None });
            context.output(Output::Exit(0));
        }
        _ => {}
    })
}

/// The links of the flows arrive in any order.
fn ask_when_complete(control: Option<Link>, open: &BTreeMap<FlowId, Link>, context: &mut ScriptContext) {
    if let Some(control) = control.filter(|_| open.len() == 3) {
        context.output(Output::Ask(planned(false, control)));
    }
}

fn client(port: u16) -> Box<dyn linerate_compat::stand_in::StandIn> {
    let (mut counted, mut received) = (BTreeMap::new(), Vec::new());
    let (mut open, mut greeted, mut go) = (0, false, false);
    let link = |flow: FlowId| Link(u32::from(flow.0) + 1);
    let connect = move |link: Link, transport| Output::Connect {
        link,
        port,
        to: loopback(port),
        options: options(transport),
    };
    script(move |input, context| match input {
        Input::Begin => context.output(connect(CONTROL, Transport::Tcp)),
        Input::Opened { link: opened, .. } => {
            let greeting = [&b"c"[..], b"0", b"1", b"hello"][opened.0 as usize];
            context.output(Output::Send { link: opened, bytes: greeting.to_vec() });
            if opened == link(FlowId(1)) {
                context.output(Output::Hold { link: opened });
            }
        }
        Input::Sent { .. } if open < 3 => {
            let transport = if open == 2 { Transport::Udp } else { Transport::Tcp };
            context.output(connect(link(FlowId(open)), transport));
            open += 1;
        }
        // The greeting and the start message come on different connections, so in any order.
        Input::Datagram { .. } | Input::Bytes { bytes: b"go", .. } => {
            *if matches!(input, Input::Datagram { .. }) { &mut greeted } else { &mut go } = true;
            if greeted && go {
                context.output(Output::Plan(planned(true, CONTROL)));
                for flow in 0..3 {
                    context.output(Output::Start(Box::new(task(FlowId(flow), link(FlowId(flow)), true))));
                }
            }
        }
        Input::Written { flow } => {
            context.output(Output::Stop { flow, how: Stop::Regularly });
            if flow == FlowId(2) {
                context.output(Output::Send { link: CONTROL, bytes: b"u".to_vec() });
            }
        }
        // The server's message may arrive before our own last count.
        Input::Ended { counts } => {
            counted.insert(counts.flow, moved(counts));
            finish_if_complete(&counted, &received, context);
        }
        Input::Bytes { bytes, .. } => {
            assert_eq!(bytes.len(), 24);
            received = bytes.to_vec();
            finish_if_complete(&counted, &received, context);
        }
        Input::Closed { link: CONTROL, .. } => context.output(Output::Exit(1)),
        _ => {}
    })
}

fn finish_if_complete(counted: &BTreeMap<FlowId, u64>, received: &[u8], context: &mut ScriptContext) {
    if counted.len() == 3 && !received.is_empty() {
        check_report(received, context);
        context.output(Output::Send { link: CONTROL, bytes: report(counted) });
        context.output(Output::RunOver { run: RunId(5), trouble: None });
        context.output(Output::Exit(0));
    }
}

fn record(memory: &MemorySink) -> RunRecord {
    let events = memory.0.lock().unwrap();
    assert!(events.iter().enumerate().all(|(at, event)| event.seq == at as u64));
    assert!(matches!(events.first().map(|event| &event.body), Some(Body::RunStarted(_))));
    RunRecord::fold(events.iter())
}

#[test]
fn both_ends_count_the_same_and_write_it_to_their_logs() {
    let (sender, port) = port();
    let (at_server, at_client) = (MemorySink::default(), MemorySink::default());
    let log_store = at_server.clone();
    let serving = thread::spawn(move || {
        let interrupts = Interrupts::new().unwrap();
        run_with(None, server(sender), &interrupts, Some(&log_store)).0
    });
    let port = port.recv().unwrap();
    let interrupts = Interrupts::new().unwrap();
    let code = run_with(Some("127.0.0.1"), client(port), &interrupts, Some(&at_client)).0;
    assert_eq!((code, serving.join().unwrap()), (0, 0));
    for memory in [&at_server, &at_client] {
        let record = record(memory);
        assert_eq!(record.outcome, Some(Outcome::Completed));
        assert_eq!(record.start.as_ref().unwrap().target, "127.0.0.1 (nothing)");
        assert!(
            record
                .caveats
                .iter()
                .any(|c| c.kind == CaveatKind::ForeignPeer && c.text.contains("nothing 1.0"))
        );
        for flow in &record.flows {
            let sent = Bytes::new(SENT[usize::from(flow.plan.flow.0)]);
            assert_eq!(flow.sender.as_ref().unwrap().total_bytes, sent);
            assert_eq!(flow.receiver.as_ref().unwrap().total_bytes, sent);
            assert!(flow.verdict.is_some(), "flow {} was not judged", flow.plan.flow);
        }
        assert_eq!(record.flow(FlowId(0)).unwrap().byte_accounting.unwrap().unaccounted_bytes, Bytes::new(0));
        assert!(record.flow(FlowId(2)).unwrap().byte_accounting.is_none());
    }
    // Each end describes its own host; of the other it only knows the address.
    let (server, client) = (record(&at_server), record(&at_client));
    assert!(client.hosts[0].cores > 0 && client.hosts[1].cores == 0);
    assert!(server.hosts[0].cores == 0 && server.hosts[1].cores > 0);
    assert!(client.flow(FlowId(0)).unwrap().sender_settings.is_some());
    assert!(client.flow(FlowId(0)).unwrap().receiver_settings.is_none());
}

#[test]
fn what_was_on_the_way_when_a_strangers_test_ended_is_no_contradiction() {
    let memory = MemorySink::default();
    let program = script(|input, context| {
        if matches!(input, Input::Begin) {
            context.output(Output::Plan(planned(true, CONTROL)));
            // The peer sent twice the bytes that we received before the end. Our own side never counted.
            let tally = Tally { total_bytes: Bytes::new(2_000_000), complete: true, ..Tally::default() };
            context.output(Output::PeerCounted { flow: FlowId(1), tally: Box::new(tally) });
            context.output(Output::RunOver { run: RunId(5), trouble: None });
            context.output(Output::Exit(0));
        }
    });
    let interrupts = Interrupts::new().unwrap();
    run_with(Some("nowhere"), program, &interrupts, Some(&memory));
    let mut record = record(&memory);
    let flow = record.flows.iter_mut().find(|flow| flow.plan.flow == FlowId(1)).unwrap();
    assert!(flow.sender.is_some() && flow.receiver.is_none() && flow.byte_accounting.is_none());
    let received = Tally { total_bytes: Bytes::new(1_000_000), ..Tally::default() };
    flow.byte_accounting =
        flow.sender.as_ref().map(|sent| linerate_model::ByteAccounting::close(sent, &received));
    flow.receiver = Some(received);
    let outcome = crate::evidence(&record, FlowId(1)).unwrap().outcome;
    assert_eq!((outcome.written_bytes, outcome.unaccounted_bytes), (Some(2e6), None));
    record.caveats.clear();
    assert_eq!(crate::evidence(&record, FlowId(1)).unwrap().outcome.unaccounted_bytes, Some(1e6));
}

#[test]
fn messages_in_turn_go_over_a_connection_that_is_a_link_before_and_after() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let peer = thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut peer, _) = listener.accept().unwrap();
        let mut message = [0; 100];
        for _ in 0..5 {
            peer.read_exact(&mut message).unwrap();
            peer.write_all(&message[..10]).unwrap();
        }
        peer.write_all(b"over").unwrap();
    });
    let client = script(move |input, context| match input {
        Input::Begin => {
            let options = LinkOptions::default();
            context.output(Output::Connect { link: CONTROL, port, to: loopback(port), options });
        }
        Input::Opened { .. } => context.output(Output::Exchange(Box::new(Exchange {
            link: CONTROL,
            send: Bytes::new(100),
            receive: Bytes::new(10),
            sends_first: true,
            repeats: 5,
            timeout: Span::from_secs(60),
            head: b"first".to_vec(),
            each_turn: true,
            cold: false,
        }))),
        Input::Exchanged { link: CONTROL, result } => {
            let exchanged = result.unwrap();
            assert_eq!((exchanged.turns.len(), &exchanged.last[..6]), (5, &b"first\0"[..]));
        }
        Input::Bytes { bytes, .. } => context.output(Output::Exit(bytes.len() as i32)),
        _ => {}
    });
    let interrupts = Interrupts::new().unwrap();
    assert_eq!(run_with(None, client, &interrupts, None).0, 4);
    peer.join().unwrap();
}

#[test]
fn a_run_that_a_signal_ends_is_kept_as_interrupted() {
    let memory = MemorySink::default();
    let program = script(|input, context| match input {
        Input::Begin => context.output(Output::Plan(planned(true, CONTROL))),
        Input::Signal(_) => context.output(Output::Exit(1)),
        _ => {}
    });
    let interrupts = Interrupts::new().unwrap();
    interrupts.raise(2);
    assert_eq!(run_with(Some("nowhere"), program, &interrupts, Some(&memory)).0, 1);
    let record = record(&memory);
    assert_eq!(record.outcome, Some(Outcome::Interrupted));
    assert!(record.flow(FlowId(0)).unwrap().caveats.iter().any(|caveat| caveat.kind == CaveatKind::Partial));
}

#[test]
fn a_flow_without_open_links_is_not_started() {
    let program = script(|input, context| match input {
        Input::Begin => context.output(Output::Start(Box::new(task(FlowId(0), Link(7), true)))),
        Input::NotStarted { flow: FlowId(0), reason } => {
            assert!(reason.text.contains("not open"));
            context.output(Output::Exit(0));
        }
        _ => {}
    });
    let interrupts = Interrupts::new().unwrap();
    assert_eq!(run_with(None, program, &interrupts, None).0, 0);
}
