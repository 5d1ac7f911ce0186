mod argv;
mod client;
mod pairs;
mod read;
mod report;
mod server;
mod wire;

use linerate_units::Span;

use super::{ClientCommand, NetperfClientOptions, NetperfSurroundings};

/// Parses a command line of the client, at a wall-clock time and with a few files.
fn parse_at(line: &str, wall: Span) -> ClientCommand {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let read = |name: &str, most: usize| match name {
        "/dev/urandom" => Ok(vec![0xa7; most]),
        "selectors" => Ok(b"THROUGHPUT,Elapsed Time (sec)\nPROTOCOL\n".to_vec()),
        "empty" => Ok(Vec::new()),
        _ => Err(std::io::ErrorKind::NotFound.into()),
    };
    ClientCommand::parse(&words, &NetperfSurroundings { wall, seed: 7, read: &read })
}

fn parse(line: &str) -> ClientCommand {
    parse_at(line, Span::ZERO)
}

/// The options of a command line that requests a test.
fn options_at(line: &str, wall: Span) -> NetperfClientOptions {
    match parse_at(line, wall) {
        ClientCommand::Test(options) => *options,
        other => panic!("{line}: {other:?}"),
    }
}

fn options(line: &str) -> NetperfClientOptions {
    options_at(line, Span::ZERO)
}

/// The recorded control connections: the messages of client (true) and server, without the zeros at their ends.
pub(super) fn messages(transcript: &str) -> Vec<(bool, Vec<u8>)> {
    let lines = transcript.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let (who, hex) = line.split_at(2);
            let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
            let mut bytes: Vec<u8> = (0..hex.len()).step_by(2).map(byte).collect();
            bytes.resize(super::MESSAGE_BYTES, 0);
            (who == "C ", bytes)
        })
        .collect()
}

macro_rules! transcript {
    ($name:literal) => {
        include_str!(concat!("../../../../../fixtures/transcripts/netperf/", $name, ".txt"))
    };
}
pub(super) use transcript;
