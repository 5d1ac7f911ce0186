//! The encryption of a foreign tool's connection, shared between its owner and the flow that has the connection.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::sync::Mutex;

use linerate_engine::SecureChannel;
use linerate_sock::handle::BorrowedFd;
use linerate_sock::thread::locked;
use linerate_sock::{Moved, SockError, stream};
use rustls::Connection;

/// What is read from the socket at once: a few records.
const READ_BYTES: usize = 64 << 10;

/// An encrypted connection whose handshake is over. No call waits, as the socket does not block.
#[derive(Debug)]
pub(crate) struct TlsChannel(Mutex<TlsState>);

#[derive(Debug)]
struct TlsState {
    tls: Box<Connection>,
    /// What was read from the socket, of which this part is not decrypted yet.
    arrived: Vec<u8>,
    undecrypted: std::ops::Range<usize>,
    /// Number of decrypted bytes that were not read yet.
    decrypted: usize,
}

impl TlsChannel {
    /// Goes on with a connection after its handshake.
    pub(crate) fn new(tls: Box<Connection>) -> Self {
        Self(Mutex::new(TlsState { tls, arrived: Vec::new(), undecrypted: 0..0, decrypted: 0 }))
    }

    /// Whether there is data to read that a poll of the socket does not report.
    pub(crate) fn has_arrived(&self) -> bool {
        let state = locked(&self.0);
        state.decrypted > 0 || !state.undecrypted.is_empty()
    }

    /// Whether encrypted bytes wait for room in the socket.
    pub(crate) fn is_blocked(&self) -> bool {
        locked(&self.0).tls.wants_write()
    }

    /// Announces the end of the stream to the peer.
    pub(crate) fn finish(&self, socket: BorrowedFd<'_>) {
        let mut state = locked(&self.0);
        state.tls.send_close_notify();
        // If it does not fit into the socket, the peer still sees the end of the connection.
        let _ = state.flush(socket);
    }
}

impl SecureChannel for TlsChannel {
    fn send(&self, socket: BorrowedFd<'_>, bytes: &[u8]) -> Result<Moved, SockError> {
        let state = &mut *locked(&self.0);
        if !state.flush(socket)? {
            return Ok(Moved::Pending);
        }
        // It takes as much as fits into its buffer, whole records of a block of the engine.
        let taken = state.tls.writer().write(bytes).map_err(|source| SockError::new("encrypt", source))?;
        state.flush(socket)?;
        Ok(Moved::Bytes(taken))
    }

    fn flush(&self, socket: BorrowedFd<'_>) -> Result<bool, SockError> {
        locked(&self.0).flush(socket)
    }

    fn recv(&self, socket: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<Moved, SockError> {
        let state = &mut *locked(&self.0);
        let mut taken = 0;
        while taken < buffer.len() {
            match state.tls.reader().read(&mut buffer[taken..]) {
                Ok(count @ 1..) => {
                    taken += count;
                    state.decrypted = state.decrypted.saturating_sub(count);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    state.decrypted = 0;
                    match state.decrypt(socket, taken == 0)? {
                        Moved::Bytes(_) => {}
                        Moved::Pending | Moved::Closed if taken > 0 => break,
                        other => return Ok(other),
                    }
                }
                // The end, announced or not, as of a connection without encryption.
                Ok(0) | Err(_) if taken == 0 => return Ok(Moved::Closed),
                Ok(_) | Err(_) => break,
            }
        }
        Ok(Moved::Bytes(taken))
    }
}

impl TlsState {
    fn flush(&mut self, socket: BorrowedFd<'_>) -> Result<bool, SockError> {
        let mut socket = SocketWriter { socket, error: None };
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut socket) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(socket.error.unwrap_or_else(|| SockError::new("send", error))),
            }
        }
        Ok(true)
    }

    /// Decrypts more of what has arrived, and reads the socket for it if it `may_read`. Bytes are those that were
    /// processed, which may be a part of a record.
    fn decrypt(&mut self, socket: BorrowedFd<'_>, may_read: bool) -> Result<Moved, SockError> {
        if self.undecrypted.is_empty() {
            if !may_read {
                return Ok(Moved::Pending);
            }
            self.arrived.resize(READ_BYTES, 0);
            match stream::recv(&socket, &mut self.arrived)? {
                Moved::Bytes(count) => self.undecrypted = 0..count,
                Moved::Closed => {
                    // Its reader reports the end of the connection.
                    let _ = self.tls.read_tls(&mut io::empty());
                    return self.process().map(|()| Moved::Bytes(0));
                }
                Moved::Pending => return Ok(Moved::Pending),
            }
        }
        let mut rest = &self.arrived[self.undecrypted.clone()];
        let used = self.tls.read_tls(&mut rest).map_err(|source| SockError::new("decrypt", source))?;
        self.undecrypted.start += used;
        if used == 0 {
            // Nothing counts after the end that the peer has announced.
            self.undecrypted = 0..0;
        }
        self.process()?;
        // It has an answer to the peer, for example to new keys. Without room it is sent later.
        self.flush(socket)?;
        Ok(Moved::Bytes(used))
    }

    fn process(&mut self) -> Result<(), SockError> {
        let failed = |error| SockError::new("decrypt", io::Error::new(ErrorKind::InvalidData, error));
        self.decrypted = self.tls.process_new_packets().map_err(failed)?.plaintext_bytes_to_read();
        Ok(())
    }
}

/// The socket as TLS writes to it.
struct SocketWriter<'s> {
    socket: BorrowedFd<'s>,
    /// Why the last write has failed.
    error: Option<SockError>,
}

impl SocketWriter<'_> {
    fn outcome(&mut self, sent: Result<Moved, SockError>) -> io::Result<usize> {
        match sent {
            Ok(Moved::Bytes(count)) => Ok(count),
            Ok(Moved::Pending | Moved::Closed) => Err(ErrorKind::WouldBlock.into()),
            Err(error) => {
                let kind = error.source.kind();
                self.error = Some(error);
                Err(if kind == ErrorKind::WouldBlock { ErrorKind::BrokenPipe } else { kind }.into())
            }
        }
    }
}

impl Write for SocketWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = stream::send(&self.socket, bytes);
        self.outcome(sent)
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let sent = stream::send_parts(&self.socket, parts);
        self.outcome(sent)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use linerate_sock::handle::AsFd;
    use linerate_sock::poll::{Interest, wait_for};
    use linerate_sock::{clock, queues, sockopt, tcp_info};
    use std::net::TcpStream;
    use std::time::Duration;

    use super::*;
    use crate::control_stream::tests::{encrypted, read};
    use crate::control_stream::{Arrival, ControlStream};

    /// A client, and the server's end as a flow has it.
    fn ends() -> (ControlStream, TcpStream, TlsChannel) {
        let (client, server) = encrypted(5);
        let (socket, channel, rest) = server.into_channel();
        assert_eq!(rest, b"");
        (client, socket, channel.unwrap())
    }

    fn pattern(length: u32) -> Vec<u8> {
        (0..length).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
    }

    /// Waits for the socket at most a moment.
    fn wait(socket: &TcpStream, interest: Interest) {
        wait_for(socket, interest, clock::now() + Duration::from_millis(100)).unwrap();
    }

    #[test]
    fn blocks_arrive_in_order_and_each_adds_what_its_records_add() {
        let (mut client, socket, channel) = ends();
        // As blocks of ndt7: the last record of each is a short one.
        let (block, blocks) = (pattern(65_546), 300);
        // Smaller than all blocks together, whatever the defaults of this system are.
        sockopt::set_snd_buf(&socket, 64 << 10).unwrap();
        sockopt::set_rcv_buf(client.tcp(), 64 << 10).unwrap();
        // What belongs to the handshake does not count.
        let deadline = clock::now() + Duration::from_secs(10);
        while queues::unacknowledged(&socket).unwrap() > 0 {
            assert!(!deadline.has_passed());
            wait(&socket, Interest::READ);
        }
        let before = tcp_info(&socket).unwrap().bytes_acked.unwrap();
        let (go, may_read) = std::sync::mpsc::channel();
        let reading = std::thread::spawn(move || {
            let (mut received, mut buffer) = (Vec::new(), [0; 30_011]);
            // It starts when the buffers are full.
            may_read.recv().unwrap();
            while received.len() < blocks * 65_546 {
                match read(&mut client, &mut buffer) {
                    Arrival::Bytes(count) => received.extend_from_slice(&buffer[..count]),
                    Arrival::Nothing => {}
                    Arrival::Closed => break,
                }
            }
            (received, client)
        });
        for _ in 0..blocks {
            let mut rest = block.as_slice();
            while !rest.is_empty() {
                let moved = channel.send(socket.as_fd(), rest).unwrap();
                rest = &rest[moved.bytes()..];
                if moved == Moved::Pending {
                    let _ = go.send(());
                    wait(&socket, Interest::WRITE);
                }
            }
        }
        // Fails the reader if the buffers were never full.
        drop(go);
        while !channel.flush(socket.as_fd()).unwrap() {
            wait(&socket, Interest::WRITE);
        }
        let (received, _client) = reading.join().unwrap();
        assert!(received.chunks(block.len()).all(|part| part == block), "{}", received.len());
        assert_eq!(received.len(), blocks * block.len());
        assert!(!channel.is_blocked());
        // Five records a block: what the figures of downloads rely on.
        let all = blocks as u64 * (65_546 + 5 * 22);
        let deadline = clock::now() + Duration::from_secs(10);
        while tcp_info(&socket).unwrap().bytes_acked.unwrap() - before < all {
            assert!(!deadline.has_passed());
            wait(&socket, Interest::READ);
        }
        assert_eq!(tcp_info(&socket).unwrap().bytes_acked.unwrap() - before, all);
    }

    #[test]
    fn what_arrives_is_read_in_parts_of_any_length_to_its_end() {
        let (mut client, socket, channel) = ends();
        let sent = pattern(3_000_000);
        let sending = {
            let sent = sent.clone();
            std::thread::spawn(move || {
                client.queue(&sent);
                while client.unsent() > 0 {
                    client.flush();
                    wait(client.tcp(), Interest::WRITE);
                }
                client.flush_at_end();
                // It has read nothing: closed now, it would reset the connection, and what is on its way would be lost.
                client
            })
        };
        let (mut received, mut lengths) = (Vec::new(), [1, 16_383, 16_385, 65_536, 7].into_iter().cycle());
        let mut buffer = vec![0; 65_536];
        let end = loop {
            let part = &mut buffer[..lengths.next().unwrap()];
            match channel.recv(socket.as_fd(), part).unwrap() {
                Moved::Bytes(count) => received.extend_from_slice(&part[..count]),
                Moved::Pending => {
                    assert!(!channel.has_arrived(), "a poll would not tell of it");
                    wait(&socket, Interest::READ);
                }
                Moved::Closed => break channel.recv(socket.as_fd(), &mut buffer).unwrap(),
            }
        };
        drop(sending.join().unwrap());
        assert!(received == sent, "{} bytes", received.len());
        assert_eq!(end, Moved::Closed);
    }

    #[test]
    fn a_record_that_cannot_be_decrypted_is_an_error_and_a_lost_connection_too() {
        let (client, socket, channel) = ends();
        let mut tcp = client.into_tcp();
        tcp.write_all(&[23, 3, 3, 0, 17, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17]).unwrap();
        wait(&socket, Interest::READ);
        assert!(channel.recv(socket.as_fd(), &mut [0; 9]).is_err());

        let (client, socket, channel) = ends();
        sockopt::set_linger_abort(client.tcp()).unwrap();
        drop(client);
        wait(&socket, Interest::READ);
        assert!(channel.send(socket.as_fd(), b"x").is_err());
    }
}
