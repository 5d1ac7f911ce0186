//! What a server counted in a long phase takes a while on a slow path.

use linerate_model::Sample;

use super::*;

fn sample() -> Sample {
    let (start_ns, end_ns) = (Timestamp::START, Timestamp::START + Span::from_ms(100));
    Sample { side: Side::Sender, start_ns, end_ns, outside: false, readings: Default::default() }
}

/// A client whose download of two seconds is over, while the server has not reported yet.
fn closing() -> NativeWorld {
    let mut world = NativeWorld::new(Span::from_ms(10), &[Direction::Download]);
    world.drain(true);
    world.run_until("client: welcomed", Span::from_secs(1));
    world.measure(&[Direction::Download]);
    world.run_until("client: start", Span::from_secs(2));
    world.run_until("server: start", Span::from_secs(2));
    // The hosts do what the tests say from here.
    world.later.clear();
    world.orders.clear();
    world.now = world.now + TRANSFER;
    world.feed(false, SessionInput::SenderDone { flow: FlowId(1) });
    while world.wire.front().is_some_and(|(at, ..)| *at <= world.now + world.delay) {
        assert!(world.step());
    }
    world.end(true, &order(FlowId(1), Direction::Download));
    world
}

/// The server reports something every second, `seconds` long.
fn reports(world: &mut NativeWorld, seconds: u64, samples: &[Sample]) {
    for _ in 0..seconds {
        let until = world.now + Span::from_secs(1);
        let samples = SessionInput::Samples { flow: FlowId(1), samples: samples.to_vec() };
        world.feed(false, samples);
        while world.failure.is_none() && world.now < until {
            assert!(world.step());
        }
    }
}

#[test]
fn samples_that_arrive_slowly_are_waited_for() {
    let mut world = closing();
    reports(&mut world, 12, &[sample()]);
    assert!(world.failure.is_none(), "{:?}", world.failure);
    world.end(false, &order(FlowId(1), Direction::Download));
    world.run_until("client: phase done", Span::from_secs(60));
    assert!(world.failure.is_none(), "{:?}", world.failure);
}

#[test]
fn a_server_cannot_hold_a_client_by_samples_for_ever_and_by_none_at_all() {
    for (samples, most) in [(vec![sample()], Span::from_secs(33)), (Vec::new(), Span::from_ms(6100))] {
        let mut world = closing();
        let closed = world.now;
        reports(&mut world, 100, &samples);
        let Some((true, at, PeerError::Silent { .. })) = &world.failure else {
            panic!("{:?}", world.failure)
        };
        assert!(at.since(closed) <= most, "{}", at.since(closed));
    }
}

#[test]
fn a_server_that_still_delivers_waits_for_the_next_phase_from_the_last_byte() {
    let mut world = closing();
    world.end(false, &order(FlowId(1), Direction::Download));
    // The path carries nothing to the client for long, and what waits gets less.
    world.wire.clear();
    for _ in 0..90 {
        world.now = world.now + Span::from_secs(1);
        world.feed(true, SessionInput::Tick);
        world.wire.retain(|(_, client, _)| !client);
        while let Some((_, client, bytes)) = world.wire.pop_front() {
            world.feed(client, SessionInput::Bytes(&bytes));
        }
        world.feed(false, SessionInput::Delivering);
        world.feed(false, SessionInput::Tick);
        let failure = world.failure.take();
        assert!(failure.as_ref().is_none_or(|(client, ..)| *client), "{failure:?}");
    }
}
