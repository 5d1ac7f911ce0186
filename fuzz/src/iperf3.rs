//! iperf3: its messages, and both roles against a peer, a host and a clock that misbehave.

use linerate_compat::iperf3::client::{Iperf3Client, Iperf3ClientConfig};
use linerate_compat::iperf3::params::{Iperf3Limits, Params};
use linerate_compat::iperf3::report::Iperf3SystemInfo;
use linerate_compat::iperf3::results::Iperf3Results;
use linerate_compat::iperf3::server::{Iperf3Server, Iperf3ServerConfig};
use linerate_compat::iperf3::settings::{EndCondition, Iperf3Settings};
use linerate_compat::iperf3::wire::{self, Cookie, take_message};
use linerate_compat::stand_in::StandIn;
use linerate_units::Span;

use crate::dialogue::frame;
#[cfg(test)]
use crate::noisy_host::completed;
use crate::noisy_host::{play, received};

/// Messages, states and cookies of which scripts are composed.
const WORDS: &[&[u8]] = &[
    COOKIE,
    b"{\"tcp\":true,\"time\":1,\"len\":4096}",
    b"{\"udp\":true,\"time\":1,\"len\":1000,\"parallel\":2,\"bidirectional\":true}",
    b"{\"cpu_util_total\":1,\"cpu_util_user\":1,\"cpu_util_system\":0,\"sender_has_retransmits\":1,\"streams\":[{\"id\":1,\"bytes\":4096,\"retransmits\":0,\"jitter\":0,\"errors\":0,\"packets\":0}]}",
    b"{\"tcp\":true,\"num\":40000,\"time\":0,\"len\":4096,\"reverse\":true,\"omit\":1,\"get_server_output\":1}",
];
const COOKIE: &[u8] = b"abcdefghijklmnopqrstuvwxyz2345672345\0";

/// Parameters that decode encode to the same parameters again; those that pass the check are consistent.
pub fn iperf3_params(bytes: &[u8]) {
    let Some(params) = Params::read(bytes) else { return };
    assert_eq!(Params::read(&params.write()).as_ref(), Some(&params));
    let limits = Iperf3Limits { bitrate: Some(1_000_000_000), seconds: Some(100), file: false };
    if params.check(&limits).is_ok() {
        assert!((1..=256).contains(&params.streams()));
        assert!(params.goal().is_none_or(|goal| goal % params.len as u64 == 0 || goal == u64::MAX));
    }
}

/// Results that decode encode to the same results again.
pub fn iperf3_results(bytes: &[u8]) {
    let own = Span::from_secs(1);
    if let Some(results) = Iperf3Results::read(bytes, own) {
        let again = Iperf3Results::read(&results.write(), own).expect("what we write can be read");
        assert_eq!(again.streams.len(), results.streams.len());
        assert_eq!(again.knows_retransmits, results.knows_retransmits);
        for stream in &results.streams {
            let _ = stream.side(true, results.knows_retransmits, stream.omitted.unwrap_or_default());
        }
    }
    let mut held = bytes.to_vec();
    while let Ok(Some(message)) = take_message(&mut held, wire::PARAMS_LIMIT) {
        assert!((1..=wire::PARAMS_LIMIT).contains(&message.len()));
    }
    if let Some((cookie, rest)) = Cookie::split(bytes) {
        assert_eq!([cookie.bytes(), rest.to_vec()].concat(), bytes);
        assert!(cookie.matches(&cookie));
    }
    let _ = (wire::read_server_error(bytes), wire::is_hello_reply(bytes));
}

/// The client; the first byte chooses its options.
pub fn iperf3_client(script: &[u8]) {
    if let Some((options, script)) = script.split_first() {
        play(client(*options), script);
    }
}

/// The server; the first byte chooses its options.
pub fn iperf3_server(script: &[u8]) {
    if let Some((options, script)) = script.split_first() {
        play(server(*options), script);
    }
}

fn client(options: u8) -> Box<dyn StandIn> {
    let mut settings = Iperf3Settings::client("server");
    let has = |bit: u8| options & bit != 0;
    settings.client.udp = has(1);
    settings.client.reverse = has(2);
    settings.client.bidir = has(4) && !has(2);
    settings.client.parallel = if has(8) { 3 } else { 1 };
    settings.client.omit = u32::from(has(16));
    settings.client.end = if has(32) { EndCondition::Bytes(100_000) } else { EndCondition::Time(2) };
    settings.common.json = has(64);
    settings.common.interval = if has(128) { Span::ZERO } else { Span::from_secs(1) };
    let host = Iperf3SystemInfo::default();
    Box::new(Iperf3Client::new(Iperf3ClientConfig { settings, host, unix_ms: 0, seed: [1; 32], login: None }))
}

fn server(options: u8) -> Box<dyn StandIn> {
    let mut settings = Iperf3Settings::default();
    let has = |bit: u8| options & bit != 0;
    settings.server.one_off = has(1);
    settings.server.idle_timeout = has(2).then(|| Span::from_secs(3));
    settings.server.bitrate_limit = has(4).then_some(1_000_000_000);
    settings.common.json = has(8);
    let (host, shared) = (Iperf3SystemInfo::default(), has(16));
    Box::new(Iperf3Server::new(Iperf3ServerConfig {
        settings,
        host,
        unix_ms: 0,
        seed: [1; 32],
        gate: None,
        shared,
    }))
}

/// The messages.
pub(crate) fn messages() -> Vec<Vec<u8>> {
    let words = WORDS.iter().skip(1).map(|word| word.to_vec());
    words.chain([frame(WORDS[1]), COOKIE.to_vec()]).collect()
}

/// A flow ends.
const END: [u8; 3] = [8, 1, 0];

/// Whole tests of a client: an upload, a download with omitted seconds, a byte limit, bidirectional UDP.
pub(crate) fn client_scripts() -> Vec<Vec<u8>> {
    let results = received(0, &frame(WORDS[3]));
    let agree = [&[0, 0], &received(0, &[9])[..], &received(0, &[10])].concat();
    let finish = [&END, &received(0, &[13])[..], &results, &received(0, &[14]), &[4, 2]].concat();
    // The streams are open, the flow starts, and time passes.
    let begin = [&received(0, &[1, 2])[..], &[8, 1, 0]].concat();
    let run = [&begin[..], &[15, 15, 9, 200, 15, 16]].concat();
    let tcp = |options: u8| [&[options], &agree[..], &[0, 0], &run, &finish].concat();
    let goal = [&[32], &agree[..], &[0, 0], &begin, &[15, 17, 8, 0, 0], &finish].concat();
    let hello = |which: u8| [&[0, 0, 12, which, 4], &b"6789"[..]].concat();
    let udp = [&[1 + 4], &agree[..], &hello(1), &hello(3), &run, &finish].concat();
    vec![tcp(0), tcp(64 + 16 + 2), goal, udp]
}

/// Whole tests of a server.
pub(crate) fn server_scripts() -> Vec<Vec<u8>> {
    let results = received(0, &frame(WORDS[3]));
    let begin = |params: usize| {
        [&[0, 0, 2, 9], &received(0, COOKIE)[..], &received(0, &frame(WORDS[params])), &[7, 0]].concat()
    };
    let stream = [&[2, 9], &received(1, COOKIE)[..], &[8, 1, 0, 15, 15, 9, 60]].concat();
    let finish = [&received(0, &[4])[..], &END, &results, &received(0, &[16]), &[4, 2]].concat();
    let tcp = |options: u8| [&[options], &begin(1)[..], &stream, &finish].concat();
    let goal = [&[16], &begin(4)[..], &stream, &finish].concat();
    let hello = |from: u8| [&[12, 2 * from, 4], &b"9876"[..], &[0, 0]].concat();
    let hellos = [hello(1), hello(2), hello(3), hello(4)].concat();
    let udp = [&[0], &begin(2)[..], &[0, 0], &hellos, &[9, 60], &finish].concat();
    vec![tcp(0), tcp(1 + 8), goal, udp]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_seeds_are_whole_runs() {
        for script in &client_scripts()[..3] {
            assert_eq!(completed(client(script[0]), &script[1..]), 1, "{script:?}");
        }
        for script in &server_scripts()[..3] {
            assert_eq!(completed(server(script[0]), &script[1..]), 1, "{script:?}");
        }
    }
}
