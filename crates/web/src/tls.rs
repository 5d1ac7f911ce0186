//! TLS of the service: the handshake, and what is answered to those who speak plain HTTP to it.

use std::io;
use std::time::Duration;

use linerate_runner::TlsCertificate;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// How long the first byte and the handshake may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// First byte of each TLS connection: the record of a handshake (RFC 8446, section 5.1).
const HANDSHAKE_RECORD: u8 = 22;
/// What is read of a plain request before it is refused, and how long that may take.
const MAX_PLAIN_BYTES: usize = 16 << 10;
const PLAIN_TIMEOUT: Duration = Duration::from_secs(1);
/// The answer to a plain request.
const PLAIN_REPLY: &str = "this port speaks HTTPS only: write https:// instead of http:// in the address\n";

/// The encrypted stream of a connection; absent if the client speaks something else, or too slowly.
pub(crate) async fn accept(certificate: &TlsCertificate, stream: TcpStream) -> Option<TlsStream<TcpStream>> {
    let config = certificate.for_pages();
    let handshake = async {
        let mut first = [0; 1];
        if stream.peek(&mut first).await? != 1 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if first != [HANDSHAKE_RECORD] {
            refuse_plain(stream).await?;
            return Err(io::ErrorKind::InvalidData.into());
        }
        TlsAcceptor::from(config).accept(stream).await
    };
    let done = tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake).await;
    done.ok()?.inspect_err(|error| tracing::debug!(%error, "no TLS connection")).ok()
}

/// Answers a plain request. It is read first: to close a connection with unread bytes would take the answer back.
async fn refuse_plain(mut stream: TcpStream) -> io::Result<()> {
    let mut head = Vec::new();
    let read = async {
        let mut part = [0; 1024];
        while head.len() < MAX_PLAIN_BYTES && !head.windows(4).any(|end| end == b"\r\n\r\n") {
            match stream.read(&mut part).await? {
                0 => break,
                count => head.extend_from_slice(&part[..count]),
            }
        }
        io::Result::Ok(())
    };
    let _ = tokio::time::timeout(PLAIN_TIMEOUT, read).await;
    // Only to somebody who speaks HTTP.
    if head.first().is_some_and(u8::is_ascii_uppercase) {
        let reply = format!(
            "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{PLAIN_REPLY}",
            PLAIN_REPLY.len()
        );
        stream.write_all(reply.as_bytes()).await?;
    }
    stream.shutdown().await
}
