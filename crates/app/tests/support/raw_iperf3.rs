//! The bytes of iperf3's control connection, for peers that a test plays itself.

use std::io::Read;
use std::net::TcpStream;

use serde_json::Value;

use super::TIMEOUT;

/// State bytes of the control connection.
pub(crate) const TEST_START: u8 = 1;
pub(crate) const TEST_RUNNING: u8 = 2;
pub(crate) const TEST_END: u8 = 4;
pub(crate) const PARAM_EXCHANGE: u8 = 9;
pub(crate) const CREATE_STREAMS: u8 = 10;
pub(crate) const EXCHANGE_RESULTS: u8 = 13;
pub(crate) const DISPLAY_RESULTS: u8 = 14;
pub(crate) const IPERF_DONE: u8 = 16;
pub(crate) const ACCESS_DENIED: u8 = 0xff;
pub(crate) const SERVER_ERROR: u8 = 0xfe;

/// Sets a read timeout on a connection.
pub(crate) fn patient(connection: TcpStream) -> TcpStream {
    connection.set_read_timeout(Some(TIMEOUT)).unwrap();
    connection
}

pub(crate) fn byte(from: &mut TcpStream) -> u8 {
    let mut byte = [0];
    from.read_exact(&mut byte).unwrap();
    byte[0]
}

pub(crate) fn message(from: &mut TcpStream) -> Value {
    let mut length = [0; 4];
    from.read_exact(&mut length).unwrap();
    let mut text = vec![0; u32::from_be_bytes(length) as usize];
    from.read_exact(&mut text).unwrap();
    serde_json::from_slice(&text).unwrap()
}

/// Everything up to the end of the connection, including a reset.
pub(crate) fn rest(from: &mut TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    let _ = from.read_to_end(&mut all);
    all
}
