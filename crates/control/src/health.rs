//! Whether a server answers, without a run: the greeting of a control connection, which takes no place in its queue.

use std::io::ErrorKind;
use std::time::Duration;

use linerate_proto::PeerError;
use linerate_proto::native::{NATIVE, PREFACE_BYTES, Preface};
use linerate_sock::open::{AllowedIpVersion, ConnectOptions, connect_tcp, resolve};
use linerate_sock::poll::{Interest, wait_for};
use linerate_sock::{Mono, SocketOptions, clock, stream};

use crate::error::ControlError;

/// Asks the server on a host whether it serves, and waits for the answer for `timeout` in total. An absent port is
/// that of the protocol.
///
/// # Errors
/// Nothing listens there, it does not answer in time, or it is not a linerate server of this version.
pub fn check_health(host: &str, port: Option<u16>, timeout: Duration) -> Result<(), ControlError> {
    let deadline = clock::now() + timeout;
    let addresses = resolve(host, port.unwrap_or(NATIVE.default_port), AllowedIpVersion::Any)?;
    let connected = connect_tcp(&ConnectOptions { addresses, socket: SocketOptions::default(), deadline })?;
    stream::set_nonblocking(&connected.stream, true)?;
    answered(&connected.stream, deadline)
}

fn answered(mut connection: &std::net::TcpStream, deadline: Mono) -> Result<(), ControlError> {
    use std::io::{Read, Write};
    let failed = |error: std::io::Error| ControlError::Local(format!("the connection failed: {error}"));
    // A few bytes fit into the empty send buffer of a new connection.
    connection.write_all(&Preface::CONTROL.encode()).map_err(failed)?;
    let (mut answer, mut buffer) = (Vec::new(), [0; PREFACE_BYTES]);
    while Preface::decode(&answer)?.is_none() {
        if !wait_for(connection, Interest::READ, deadline)? {
            return Err(ControlError::Local("it accepts connections but does not answer".to_owned()));
        }
        match connection.read(&mut buffer) {
            Ok(0) if answer.is_empty() => {
                return Err(ControlError::Local("it closes the connection without an answer".to_owned()));
            }
            Ok(0) => {
                let what = linerate_proto::native::looks_like(&answer).into();
                return Err(PeerError::NotOurs { what }.into());
            }
            Ok(count) => answer.extend_from_slice(&buffer[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(())
}
