//! netperf: its messages, its command lines, and the stand-ins with a peer that sends messages of the right size.

use linerate_compat::netperf::{
    ClientCommand, MESSAGE_BYTES, NetperfClient, NetperfMessage, NetperfRequest, NetperfResults,
    NetperfServer, NetperfServerOptions, NetperfSurroundings, Response, ServerCommand,
};
use linerate_compat::stand_in::{Input, Output, StandIn};
use linerate_units::{Span, Timestamp};

use crate::noisy_host::play;

/// The first byte selects the role and the host, the rest is the script.
pub fn netperf(bytes: &[u8]) {
    let Some((first, script)) = bytes.split_first() else { return };
    messages(script);
    let words: Vec<String> = String::from_utf8_lossy(script).split(' ').map(str::to_owned).collect();
    let _ = ServerCommand::parse(&words);
    run(*first, script);
}

/// Whether a run was completed, as far as the host knows.
fn run(first: u8, script: &[u8]) -> bool {
    let options = NetperfServerOptions {
        passphrase: (first & 1 != 0).then(|| "secret".to_owned()),
        ..NetperfServerOptions::default()
    };
    let stand_in: Box<dyn StandIn> = Box::new(WholeMessages { inner: Box::new(NetperfServer::new(options)) });
    play(stand_in, script)
}

/// Command lines of clients.
const COMMANDS: [&str; 10] = [
    "-t TCP_STREAM -D 0.1 -c -C",
    "-t TCP_MAERTS -D 0.1 -P 0 -- -k all",
    "-t TCP_RR -D 0.1 -v 2 -- -r 3,5 -b 3",
    "-t TCP_CRR -v 2 -c",
    "-t TCP_RR -l -100 -- -o all",
    "-t TCP_STREAM -i 5,3 -I 95,5 -l 1 -- -O all",
    "-t omni -s 1 -Z secret -- -d rr -c",
    "-t TCP_STREAM -l 0 -v 0 -C",
    "-t UDP_STREAM -D 0.1 -- -m 100 -R 1",
    "-t UDP_RR -D 0.1 -- -e 1 -b 4 -o MEAN_LATENCY;COMMAND_LINE",
];

fn parse(line: &str) -> ClientCommand {
    let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let read = |name: &str, most: usize| match name.len() {
        0..5 => Ok(name.bytes().cycle().take(most.min(100)).collect()),
        _ => Err(std::io::ErrorKind::NotFound.into()),
    };
    ClientCommand::parse(
        &words,
        &NetperfSurroundings { wall: Span::from_secs(1 << 30), seed: 1, read: &read },
    )
}

/// The client: the first byte selects the command line, the rest is the script, and a command line too.
pub fn netperf_client(bytes: &[u8]) {
    let Some((first, script)) = bytes.split_first() else { return };
    if let ClientCommand::Test(options) = parse(&String::from_utf8_lossy(script)) {
        assert!(!options.host().is_empty());
    }
    play_client(*first, script);
}

/// Whether a run was completed, as far as the host knows.
fn play_client(first: u8, script: &[u8]) -> bool {
    let command = usize::from(first) % COMMANDS.len();
    let ClientCommand::Test(options) = parse(COMMANDS[command]) else { return false };
    let client: Box<dyn StandIn> = Box::new(WholeMessages { inner: Box::new(NetperfClient::new(*options)) });
    play(client, script)
}

/// Whole tests: the control connection and the sizes of buffers, the agreement, data, and the counts.
pub(crate) fn client_seeds() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = COMMANDS.iter().map(|line| [b"\0", line.as_bytes()].concat()).collect();
    for (command, transcript) in (0..).zip(TRANSCRIPTS.iter().cycle().take(COMMANDS.len())) {
        let messages = messages_of(transcript, "S ");
        let [response, results] = &messages[..] else { continue };
        // The real server leaves the type of its counts in another byte order.
        let results = [&[0, 0, 0, 99], &results[4..results.len().min(110)]].concat();
        let say = |bytes: &[u8]| [&[3, 0, bytes.len() as u8], bytes].concat();
        let opened = [0, 0, 0, 0];
        let stream = [0, 0, 8, 1, 0, 9, 10, 8, 0, 0, 8, 1, 5, 4, 1];
        let transactions =
            [0, 0, 3, 1, 5, 1, 1, 1, 1, 1, 4, 1, 0, 0, 3, 1, 5, 1, 1, 1, 1, 1, 10, 20, 4, 1, 0, 0, 4, 1];
        for data in [&stream[..], &transactions[..]] {
            let end = say(&results);
            seeds.push([&[command][..], &opened, &[10, 1], &say(response), &[10, 1], data, &end].concat());
        }
    }
    seeds
}

fn messages(bytes: &[u8]) {
    let message = whole(bytes);
    // Only a text can be too long: bytes that are no text become longer when they are decoded.
    let request = NetperfRequest::decode(&message);
    let again = NetperfRequest::decode(&request.encode());
    assert!(request.congestion.starts_with(again.congestion.as_str()), "a text may only be cut");
    assert!(request.fill_file.starts_with(again.fill_file.as_str()), "a text may only be cut");
    assert_eq!(NetperfRequest::decode(&again.encode()), again, "a text is cut once");
    let (congestion, fill_file) = (request.congestion.clone(), request.fill_file.clone());
    assert_eq!(NetperfRequest { congestion, fill_file, ..again }, request, "a request must survive");
    let response = Response::decode(&message);
    assert_eq!(Response::decode(&response.encode()), response, "a response must survive");
    let results = NetperfResults::decode(&message);
    let again = NetperfResults::decode(&results.encode());
    assert!(results.congestion.starts_with(again.congestion.as_str()), "a text may only be cut");
    assert_eq!(
        NetperfResults { congestion: results.congestion.clone(), ..again },
        results,
        "results must survive"
    );
}

fn whole(bytes: &[u8]) -> NetperfMessage {
    let mut bytes = bytes.to_vec();
    bytes.resize(bytes.len().max(MESSAGE_BYTES), 0);
    NetperfMessage::take(&mut bytes).unwrap_or_else(|| NetperfMessage::new(0))
}

/// Extends what arrives and begins like a message to a whole one, so that a short script has several.
struct WholeMessages {
    inner: Box<dyn StandIn>,
}

impl StandIn for WholeMessages {
    fn input(&mut self, now: Timestamp, input: Input<'_>) {
        match input {
            Input::Bytes { link, bytes } if bytes.len() >= 4 && bytes.starts_with(&[0, 0]) => {
                let bytes = whole(bytes).into_bytes();
                self.inner.input(now, Input::Bytes { link, bytes: &bytes });
            }
            input => self.inner.input(now, input),
        }
    }

    fn output(&mut self) -> Option<Output> {
        self.inner.output()
    }

    fn deadline(&self) -> Option<Timestamp> {
        self.inner.deadline()
    }
}

/// Requests of real clients.
const TRANSCRIPTS: [&str; 8] = [
    include_str!("../../fixtures/transcripts/netperf/tcp-stream.txt"),
    include_str!("../../fixtures/transcripts/netperf/tcp-maerts.txt"),
    include_str!("../../fixtures/transcripts/netperf/tcp-rr.txt"),
    include_str!("../../fixtures/transcripts/netperf/tcp-crr.txt"),
    include_str!("../../fixtures/transcripts/netperf/tcp-rr-count.txt"),
    include_str!("../../fixtures/transcripts/netperf/tcp-stream-cpu.txt"),
    include_str!("../../fixtures/transcripts/netperf/udp-stream.txt"),
    include_str!("../../fixtures/transcripts/netperf/udp-rr.txt"),
];

/// The messages of one side (`C ` or `S `) without the zeros at their ends.
fn messages_of(transcript: &str, who: &str) -> Vec<Vec<u8>> {
    let digits = |hex: &str| {
        let pairs = (0..hex.len() / 2).filter_map(|at| hex.get(2 * at..2 * at + 2));
        pairs.filter_map(|pair| u8::from_str_radix(pair, 16).ok()).collect()
    };
    transcript.lines().filter_map(|line| line.strip_prefix(who)).map(digits).collect()
}

/// A whole test of each kind: the listener opens, a client connects and asks, is admitted, gets its port, and
/// moves data until it has enough.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for transcript in TRANSCRIPTS {
        let Some(request) = messages_of(transcript, "C ").into_iter().next() else { continue };
        let ask = [&[request.len() as u8], &request[..]].concat();
        let begin = [0, 0, 0, 2, 0, 3, 0];
        let data =
            [7, 0, 0, 0, 2, 1, 8, 1, 0, 3, 1, 20, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9];
        let end = [10, 2, 8, 3, 0, 8, 4, 9, 4, 1, 10, 9, 8, 4, 9];
        seeds.push([&begin[..], &ask, &data, &end].concat());
        // With datagrams: admitted, opened, a datagram, a flow, time, an empty datagram.
        let data = [7, 1, 0, 0, 12, 0, 3, 7, 7, 7, 8, 1, 0, 9, 120, 12, 0, 0, 8, 1, 0, 10, 12];
        seeds.push([&begin[..], &ask, &data].concat());
        seeds.extend(messages_of(transcript, "S ").into_iter().map(|message| [vec![0], message].concat()));
    }
    seeds.push(b"\x01-D -4 -p 2000 -L 127.0.0.1,inet -Zsecret -v 2".to_vec());
    seeds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seeds_are_whole_tests() {
        let tests: Vec<Vec<u8>> =
            seeds().into_iter().filter(|seed| seed.starts_with(&[0, 0, 0, 2])).collect();
        let complete = tests.iter().filter(|seed| run(seed[0], &seed[1..])).count();
        assert!(complete >= 6, "{complete} of {}", tests.len());
    }

    #[test]
    fn the_seeds_of_the_client_are_whole_tests() {
        let complete = |command: u8| {
            client_seeds().iter().any(|seed| seed[0] == command && play_client(command, &seed[1..]))
        };
        let completed: Vec<u8> = (0..8).filter(|command| complete(*command)).collect();
        assert!(completed.len() >= 6, "{completed:?}");
    }
}
