//! The server of clients that measure responsiveness: HTTP/2 with streams of bodies.

use linerate_compat::EmbeddedServerConfig;
use linerate_compat::http::RESPONSIVENESS;

use crate::noisy_host::{completed, received};

/// What a client sends first.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A script for the server.
pub fn responsiveness(script: &[u8]) {
    let _ = run(script);
}

/// The number of tests that were completed without an error.
fn run(script: &[u8]) -> u32 {
    let config = EmbeddedServerConfig { shared: true, ..EmbeddedServerConfig::at(5202) };
    completed((RESPONSIVENESS.embedded_server)(&config), script)
}

/// A frame of the stream with this number (RFC 9113, section 4.1).
pub(crate) fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = u32::try_from(payload.len()).unwrap_or(0).to_be_bytes();
    [&[a, b, c, kind, flags, 0, 0, 0, stream], payload].concat()
}

/// The head of a request: the method by its number in the static table of HPACK, `https`, and the path.
fn request(method: u8, path: &str, stream: u8, is_whole: bool) -> Vec<u8> {
    let path = [&[4, path.len() as u8], path.as_bytes()].concat();
    let block = [&[0x80 | method, 0x87], path.as_slice(), &[1, 1, b'h']].concat();
    frame(1, 4 | u8::from(is_whole), stream, &block)
}

/// Complete tests in both directions.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let connect = [vec![0, 0, 2, 0], received(0, &[PREFACE, &frame(4, 0, 0, &[])].concat())].concat();
    let end = vec![14, 0, 9, 60, 10, 5];
    let download = request(2, "/linerate/responsiveness/large", 1, true);
    let probe = request(2, "/linerate/responsiveness/small", 3, true);
    let upload = request(3, "/linerate/responsiveness/upload", 1, false);
    let body = [frame(0, 0, 1, &[7; 900]), frame(0, 1, 1, &[7; 100])].concat();
    let reset = frame(3, 0, 1, &[0, 0, 0, 8]);
    // The counts increase, so that something was acknowledged.
    let sent = vec![14, 0, 14, 0, 15, 20, 9, 60];
    vec![
        [
            connect.clone(),
            received(0, &download),
            vec![7, 0],
            sent,
            received(0, &probe),
            received(0, &reset),
            end.clone(),
        ]
        .concat(),
        [connect.clone(), received(0, &upload), vec![7, 0], received(0, &body), end.clone()].concat(),
        [connect.clone(), received(0, &upload), received(0, &body), vec![7, 0], end.clone()].concat(),
        [connect.clone(), received(0, &download), vec![7, 250], end.clone()].concat(),
        [
            connect,
            received(0, &request(2, "/.well-known/nq", 1, true)),
            received(0, &frame(8, 0, 0, &[0, 0, 0, 9])),
            end,
        ]
        .concat(),
    ]
}

#[cfg(test)]
mod tests {
    /// Otherwise the search would begin before the tests do.
    #[test]
    fn seeds_complete_tests_in_both_directions() {
        let completed: Vec<u32> = super::seeds().iter().map(|seed| super::run(seed)).collect();
        // The fourth is refused, and the fifth asks for nothing.
        assert_eq!(completed, [1, 1, 1, 0, 0]);
    }
}
