//! Tests of browsers: requests, frames of WebSockets, and the server with pages and clients of ndt7.

use linerate_compat::EmbeddedServerConfig;
use linerate_compat::http::{HttpRequest, HttpServer};
use linerate_model::flow::{ChunkReader, FrameReader};

use crate::noisy_host::{completed, received};

/// A script for the server; the same bytes are also read as a request and as frames.
pub fn http(script: &[u8]) {
    if let Ok(Some((request, length))) = HttpRequest::read(script) {
        assert!(length <= script.len() && !request.path.contains('?'));
        let _ = (request.browser(), request.is_of_own_page(), request.parameter("stream"));
    }
    frames(script);
    chunks(script);
    let _ = run(script);
}

/// The number of tests that were completed without an error.
fn run(script: &[u8]) -> u32 {
    let config = EmbeddedServerConfig { shared: true, seed: 1, ..EmbeddedServerConfig::at(5201) };
    completed(HttpServer::new(&config), script)
}

/// However the bytes are cut, the frames are the same.
fn frames(bytes: &[u8]) {
    let read = |cut: usize| {
        let (mut reader, mut total) = (FrameReader::default(), 0);
        for mut piece in bytes.chunks(cut) {
            loop {
                match reader.next(&mut piece) {
                    Ok(Some(part)) => total += part.bytes.len(),
                    Ok(None) => break,
                    Err(error) => return (total, Some(error)),
                }
            }
        }
        (total, None)
    };
    assert_eq!(read(1), read(bytes.len().max(1)));
}

/// However the bytes are cut, the chunks are the same.
fn chunks(bytes: &[u8]) {
    let read = |cut: usize| {
        let (mut reader, mut total, mut used) = (ChunkReader::default(), 0, 0);
        for piece in bytes.chunks(cut) {
            let Ok((payload, taken)) = reader.take(piece) else { return Err(total) };
            (total, used) = (total + payload, used + taken);
            assert!(payload <= taken as u64 && (taken == piece.len() || reader.is_over()));
        }
        Ok((total, used, reader.is_over()))
    };
    assert_eq!(read(1).ok(), read(bytes.len().max(1)).ok());
}

fn upgrade(path: &str, protocol: &str) -> Vec<u8> {
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: {protocol}\r\n\r\n"
    );
    head.into_bytes()
}

/// A frame with a mask of zeros.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    [&[first, 0x80 | payload.len() as u8, 0, 0, 0, 0], payload].concat()
}

/// Complete tests in every role.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let page = |part: &str| {
        upgrade(&format!("/linerate/browser/{}/{part}", "0123456789abcdef".repeat(2)), "linerate.browser.1")
    };
    // The listener is there; a connection comes, and its first bytes.
    let connect = |which: u8, head: &[u8]| [vec![2, 0], received(which, head)].concat();
    let mut seeds = Vec::new();
    for path in ["/ndt/v7/download", "/ndt/v7/upload?early_exit=250"] {
        let begin =
            [vec![0, 0], connect(0, &upgrade(path, "net.measurementlab.ndt.v7")), vec![7, 0, 8, 1, 0, 9, 60]]
                .concat();
        // Written, ended, close frame; or ended by its client.
        let end =
            [vec![15, 24, 8, 3, 0, 8, 1, 4], received(0, &frame(0x88, &[3, 232])), vec![10, 3]].concat();
        seeds.push([begin.clone(), end].concat());
        seeds.push([begin, vec![15, 31, 8, 1, 4, 10, 9]].concat());
    }
    let down = |stream: u8| {
        format!(
            "GET /linerate/browser/{}/down?stream={stream} HTTP/1.1\r\nHost: h\r\n\r\n",
            "0123456789abcdef".repeat(2)
        )
    };
    let note = frame(
        0x81,
        br#"{"kind":"note","phase":"download","starved_share":0.5,"longest_lag_ns":9,"hidden":true}"#,
    );
    let ping = frame(0x89, b"x");
    let cancel = frame(0x81, br#"{"kind":"cancel"}"#);
    let control =
        [vec![0, 0], connect(0, &page("control?streams=1&seconds=1")), vec![7, 0, 9, 20], received(0, &ping)]
            .concat();
    let phase = [connect(1, down(0).as_bytes()), vec![8, 1, 0, 9, 60, 15, 24, 8, 3, 0, 8, 1, 4]].concat();
    let upload = [connect(1, &page("up?stream=0")), vec![8, 1, 0, 9, 60, 8, 1, 4, 9, 60]].concat();
    seeds.push([control.clone(), phase, received(0, &note), upload, vec![10, 5]].concat());
    seeds.push([control, received(0, &cancel), vec![10, 5]].concat());
    // Requests without a dialogue: admitted, started, moved, written, ended, and over after a pause.
    let begin = |head: &str| [vec![0, 0], connect(0, head.as_bytes()), vec![7, 0, 8, 1, 0, 15, 20]].concat();
    // The next request shows that the client has all of the download.
    let next = received(0, b"GET /empty HTTP/1.1\r\n\r\n");
    let download = begin("GET /garbage?ckSize=1 HTTP/1.1\r\n\r\n");
    seeds.push([download, vec![8, 3, 0, 8, 1, 0], next, vec![10, 5]].concat());
    let posts = ["Content-Length: 1048576", "Transfer-Encoding: chunked"];
    for post in posts.map(|field| format!("POST /__up HTTP/1.1\r\n{field}\r\n\r\n")) {
        seeds.push([begin(&post), vec![8, 1, 0, 10, 5]].concat());
    }
    seeds.push(b"4;a=b\r\nWiki\r\n0\r\nT: x\r\n\r\n".to_vec());
    seeds.push(b"GET /x?stream=1 HTTP/1.1\r\nHost: [::1]:80\r\nOrigin: http://a:1\r\nUser-Agent: Firefox/12.0\r\n\r\n".to_vec());
    seeds
        .push([frame(0x02, b"ab"), frame(0x80, b"cd"), vec![0x82, 0xfe, 0, 3, 1, 2, 3, 4, 5, 6, 7]].concat());
    seeds
}

#[cfg(test)]
mod tests {
    /// Otherwise the search would begin before the tests do.
    #[test]
    fn seeds_complete_tests_in_both_roles() {
        let completed: Vec<u32> = super::seeds().iter().map(|seed| super::run(seed)).collect();
        // The third is an upload that is stopped early, the sixth a test that is cancelled.
        assert_eq!(completed[..9], [1, 1, 0, 1, 1, 0, 1, 1, 1]);
    }
}
