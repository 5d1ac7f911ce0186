//! nuttcp: its lines, its command lines, and both roles.

use linerate_compat::nuttcp::{
    LineSplitter, NuttcpClient, NuttcpInvocation, NuttcpRequest, NuttcpResults, NuttcpServer,
    NuttcpServerOptions, NuttcpVersion, invocation,
};
use linerate_compat::stand_in::StandIn;
use linerate_units::Span;

use crate::noisy_host::{completed, received};

const TRANSCRIPTS: [&str; 6] = [
    include_str!("../../fixtures/transcripts/nuttcp/v612-tx-default.txt"),
    include_str!("../../fixtures/transcripts/nuttcp/v612-tx-interval.txt"),
    include_str!("../../fixtures/transcripts/nuttcp/v612-udp-tx.txt"),
    include_str!("../../fixtures/transcripts/nuttcp/v822-client-v612-server.txt"),
    include_str!("../../fixtures/transcripts/nuttcp/v822-tx-interval.txt"),
    include_str!("../../fixtures/transcripts/nuttcp/v822-udp-jitter-owd.txt"),
];

const COMMANDS: [&str; 10] = [
    "-T3 -i1 -v h",
    "-r -i1 h",
    "-u -R5m -i1 -fparse h",
    "-u -r -N3 h",
    "-s h",
    "-r -s h",
    "-N4 -n100 -F h",
    "-r -F -fxmitstats -frunningtotal -a h",
    "-S",
    "-1 -s",
];

/// Lines of real peers, from both ends.
fn real_lines() -> impl Iterator<Item = &'static str> {
    TRANSCRIPTS.iter().flat_map(|text| text.lines()).filter_map(|line| line.get(2..))
}

/// Input is split into the same lines however it arrives; a request that decodes encodes to the same request
/// again, and every report can be read.
pub fn nuttcp_lines(bytes: &[u8]) {
    let cut = |piece: usize| {
        let mut lines = LineSplitter::default();
        let mut all = Vec::new();
        for piece in bytes.chunks(piece) {
            lines.push(piece);
            all.extend(std::iter::from_fn(|| lines.pull()));
        }
        (all, lines.rest())
    };
    let whole = cut(bytes.len().max(1));
    assert_eq!(cut(1), whole);
    let mut results = NuttcpResults::default();
    for line in &whole.0 {
        results.line(line);
        let _ = results.bytes();
        if let Some(version) = NuttcpVersion::parse_greeting(line) {
            assert!(!version.greeting().is_empty());
        }
        if let Some(mut request) = NuttcpRequest::decode(line) {
            // Times are encoded with six decimals.
            request.timeout = Span::from_secs(request.timeout.as_ns() % 1_000);
            request.interval = Span::from_secs(request.interval.as_ns() % 1_000);
            request.third_party = false;
            let written = request.encode(NuttcpVersion::REPORTED);
            let read = NuttcpRequest::decode(String::from_utf8_lossy(&written).trim_end());
            assert_eq!(read, Some(request));
        }
    }
}

/// Any command line is either parsed or rejected with a message.
pub fn nuttcp_argv(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let arguments: Vec<String> = text.split(' ').map(str::to_owned).collect();
    let (_, parsed) = invocation(&arguments);
    if let NuttcpInvocation::Client(options) = parsed {
        assert!(options.request(None).buflen > 0);
    }
}

/// A client, with a command line that the first byte selects.
pub fn nuttcp_client(script: &[u8]) {
    let _ = run(script, &COMMANDS[..8]);
}

/// A server.
pub fn nuttcp_server(script: &[u8]) {
    let _ = run(script, &COMMANDS[8..]);
}

/// The number of completed runs.
fn run(script: &[u8], commands: &[&str]) -> Option<u32> {
    let (choice, script) = script.split_first()?;
    let command = commands[usize::from(*choice) % commands.len()];
    let arguments: Vec<String> = command.split(' ').map(str::to_owned).collect();
    let stand_in: Box<dyn StandIn> = match invocation(&arguments).1 {
        NuttcpInvocation::Client(options) => Box::new(NuttcpClient::new(*options)),
        NuttcpInvocation::Server(options) => Box::new(NuttcpServer::new(options)),
        _ => Box::new(NuttcpServer::new(NuttcpServerOptions::default())),
    };
    Some(completed(stand_in, script))
}

pub(crate) fn line_seeds() -> Vec<Vec<u8>> {
    TRANSCRIPTS.iter().map(|text| text.replace("\nC ", "\n").replace("\nS ", "\n").into_bytes()).collect()
}

pub(crate) fn argv_seeds() -> Vec<Vec<u8>> {
    let more =
        ["-w4m -ws64 -wb -c32t -M1000 -D -Ri10m/5 -R500p -Iwest h", "-N200 -p5000 a/192.0.2.1", "-u -l3 h"];
    COMMANDS.iter().chain(&more).map(|line| line.as_bytes().to_vec()).collect()
}

/// A line of a real peer, received on the control connection.
fn line(start: &str) -> Vec<u8> {
    let line = real_lines().find(|line| line.starts_with(start)).unwrap_or_default();
    received(0, format!("{line}\n").as_bytes())
}

/// A flow starts, time passes, and it ends.
const FLOW: [u8; 12] = [8, 1, 0, 9, 60, 8, 0, 0, 8, 1, 0, 9];

/// Regular runs: over TCP, with intervals, over UDP.
pub(crate) fn client_seeds() -> Vec<Vec<u8>> {
    let begin = [&[0, 0], &line("HELO")[..], &line("OK"), &[9, 5, 0, 0, 9, 20]].concat();
    let report = [line("DONE"), line("nuttcp-r: 68.8905 MB in 3.06 real")].concat();
    let end = [&FLOW[..], &[60], &report, &[10, 4, 4, 2]].concat();
    (0..8).map(|command| [&[command][..], &begin, &end].concat()).collect()
}

pub(crate) fn server_seeds() -> Vec<Vec<u8>> {
    let of = |request: &str, command: u8| {
        let ask = [&[command, 0, 0, 2, 0], &line("HELO")[..], &line(request), &[7, 0, 0, 0]].concat();
        let data = [&[2, 1, 12, 0, 4], &b"BOD1"[..], &FLOW, &[60]].concat();
        [ask, data].concat()
    };
    let tcp = "buflen = 65536";
    vec![of(tcp, 0), of("buflen = 1024, nbuf = 2147483647, win = 0, nstream = 1", 0), of(tcp, 1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seeds_are_whole_tests() {
        // The first client transmits over one connection and ends, as reported by its server.
        assert_eq!(run(&client_seeds()[0], &COMMANDS[..8]), Some(1));
        for (seed, transport) in server_seeds().iter().zip(["TCP", "UDP"]) {
            assert_eq!(run(seed, &COMMANDS[8..]), Some(1), "{transport}");
        }
    }
}
