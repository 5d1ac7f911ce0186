//! Scripted clients that open their streams in other ways than iperf3 on a clean path, or send little.

use linerate_model::Side;
use linerate_units::Span;

use super::world::{COOKIE, SERVER, creating, new_world, server, world_with};
use crate::EmbeddedServerConfig;
use crate::iperf3::server::Iperf3Server;
use crate::iperf3::settings::Iperf3Settings;
use crate::virtual_hosts::VirtualHosts;

fn dedicated() -> VirtualHosts {
    new_world(server(Iperf3Settings::default()), vec![])
}

/// A server on a port that other protocols share.
fn shared() -> VirtualHosts {
    world_with(Iperf3Server::embedded_server(&EmbeddedServerConfig::at(5201)), vec![])
}

/// Connects the streams in this order, and sends their cookies in another one.
fn open_in_disorder(world: &mut VirtualHosts, end: usize, dialled: &[u32], cookies: &[u32]) {
    for link in dialled {
        world.dial(end, *link);
        world.pass(Span::from_ms(100));
    }
    for link in cookies {
        world.send_as(end, *link, &COOKIE);
        world.pass(Span::from_ms(100));
    }
    assert_eq!(world.received(end, 1), [9, 10, 1, 2]);
}

#[test]
fn streams_are_numbered_as_they_connected_though_a_cookie_was_lost() {
    let (mut world, end) = creating(dedicated(), "{\"tcp\":true,\"time\":1,\"len\":4096,\"parallel\":3}");
    open_in_disorder(&mut world, end, &[2, 3, 4], &[3, 4, 2]);
    let links = &world.hosts[SERVER].tasks[0].links;
    assert_eq!(links.len(), 3);
    assert!(links.is_sorted(), "{links:?}");
}

#[test]
fn the_directions_of_a_test_do_not_swap_when_a_cookie_was_lost() {
    let json = "{\"tcp\":true,\"time\":1,\"len\":4096,\"parallel\":1,\"bidirectional\":true}";
    let (mut world, end) = creating(dedicated(), json);
    open_in_disorder(&mut world, end, &[2, 3], &[3, 2]);
    let link_of = |side| {
        let task = world.hosts[SERVER].tasks.iter().find(|task| task.side == side).unwrap();
        task.links[0]
    };
    assert!(link_of(Side::Receiver) < link_of(Side::Sender), "the client sends on its first stream");
}

#[test]
fn every_stream_has_a_timeout_of_its_own() {
    let (mut world, end) = creating(shared(), "{\"tcp\":true,\"time\":1,\"len\":4096,\"parallel\":4}");
    for link in 2..6 {
        world.pass(Span::from_secs(8));
        world.dial(end, link);
        world.send_as(end, link, &COOKIE);
        world.pass(Span::from_ms(100));
    }
    assert_eq!(world.received(end, 1), [9, 10, 1, 2]);

    let (mut world, end) = creating(shared(), "{\"tcp\":true,\"time\":1,\"len\":4096}");
    world.pass(Span::from_secs(11));
    assert_eq!(world.received(end, 1)[2..7], [0xfe, 0, 0, 0, 144], "no stream at all");
}

#[test]
fn a_shared_port_also_waits_two_minutes_for_data_of_a_slow_client() {
    // One block of 128 KiB in 16 s, as with -b 64K.
    let json = "{\"tcp\":true,\"time\":600,\"len\":131072,\"bandwidth\":64000}";
    let (mut world, end) = creating(shared(), json);
    world.dial(end, 2);
    world.send_as(end, 2, &COOKIE);
    world.pass(Span::from_secs(110));
    assert_eq!(world.received(end, 1), [9, 10, 1, 2]);
    world.pass(Span::from_secs(15));
    assert_eq!(world.received(end, 1)[4..9], [0xfe, 0, 0, 0, 144]);
}

#[test]
fn results_longer_than_any_client_sends_are_refused_before_they_arrive() {
    for (length, answer) in
        [([0, 0x10, 0, 0], vec![]), ([0, 0x10, 0, 1], vec![0xfe, 0, 0, 0, 117, 0, 0, 0, 0])]
    {
        let (mut world, end) = creating(dedicated(), "{\"tcp\":true,\"time\":1,\"len\":4096}");
        open_in_disorder(&mut world, end, &[2], &[2]);
        world.send_as(end, 1, &[4]);
        world.pass(Span::from_ms(100));
        world.send_as(end, 1, &length);
        world.pass(Span::from_ms(100));
        assert_eq!(world.received(end, 1)[4..], [vec![13], answer].concat());
    }
}
