//! Flows over connections that are encrypted, with a cipher that is none: every byte is inverted, and bytes wait as records
//! of TLS do.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

use linerate_engine::{FlowHandle, FlowSetup, SecureChannel, Sockets, start};
use linerate_model::Side;
use linerate_model::flow::{FlowTask, FrameKind, Payload, PayloadFraming, Stop, frame_header};
use linerate_sock::handle::BorrowedFd;
use linerate_sock::{Moved, SockError, clock, stream};
use linerate_units::Bytes;

use crate::ends::{in_ms, task, tcp_pairs, wait_ended, wait_until};

/// Most bytes of a record.
const RECORD_BYTES: usize = 1_000;

/// Inverts all bytes.
#[derive(Debug, Default)]
struct Inversion(Mutex<Vec<u8>>);

impl SecureChannel for Inversion {
    fn send(&self, socket: BorrowedFd<'_>, bytes: &[u8]) -> Result<Moved, SockError> {
        if !self.flush(socket)? {
            return Ok(Moved::Pending);
        }
        let taken = &bytes[..bytes.len().min(RECORD_BYTES)];
        self.0.lock().unwrap().extend(taken.iter().map(|byte| !byte));
        self.flush(socket)?;
        Ok(Moved::Bytes(taken.len()))
    }

    fn flush(&self, socket: BorrowedFd<'_>) -> Result<bool, SockError> {
        let mut waits = self.0.lock().unwrap();
        while !waits.is_empty() {
            match stream::send(&socket, &waits)? {
                Moved::Bytes(count) => drop(waits.drain(..count)),
                Moved::Pending | Moved::Closed => return Ok(false),
            }
        }
        Ok(true)
    }

    fn recv(&self, socket: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<Moved, SockError> {
        let moved = stream::recv(&socket, buffer)?;
        buffer[..moved.bytes()].iter_mut().for_each(|byte| *byte = !*byte);
        Ok(moved)
    }
}

/// Starts one end of a flow over duplicates of these connections, each with a channel.
fn lend_encrypted(task: &FlowTask, links: &[TcpStream]) -> FlowHandle {
    let duplicates = links.iter().map(|link| link.try_clone().unwrap()).collect();
    let channels = links.iter().map(|_| Arc::<Inversion>::default() as Arc<dyn SecureChannel>).collect();
    let setup = FlowSetup { channels, ..FlowSetup::of_task(task) };
    start(setup, Sockets::Tcp(duplicates), clock::now()).unwrap()
}

/// What arrives until the connection ends, decrypted.
fn read_all(mut link: TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    link.read_to_end(&mut all).unwrap();
    all.into_iter().map(|byte| !byte).collect()
}

#[test]
fn all_blocks_are_encrypted_and_with_the_kernel_when_they_count_as_written() {
    let (near, mut far) = tcp_pairs(2);
    let readers: Vec<_> = far.drain(..).map(|link| std::thread::spawn(|| read_all(link))).collect();
    // The second stream's half does not fill its last block.
    let sender = FlowTask { bytes: Some(Bytes::new(1_999_990)), together: true, ..task(Side::Sender, 2_500) };
    let sender = lend_encrypted(&sender, &near);
    wait_until(&sender, |sender| sender.progress().finished_writing);
    drop(near);
    sender.stop(Stop::AtOnce);
    wait_ended(&sender);
    let report = sender.finish();
    assert!(report.tally.complete, "{:?}", report.tally.error);
    let read: Vec<Vec<u8>> = readers.into_iter().map(|reader| reader.join().unwrap()).collect();
    for (stream, read) in report.counts.streams.iter().zip(&read) {
        assert_eq!(read.len() as u64, stream.bytes);
        assert!(read.chunks(2_500).all(|block| block == &read[..2_500]));
    }
    assert_eq!(report.counts.streams.iter().map(|stream| stream.bytes).sum::<u64>(), 2_000_000);
}

#[test]
fn what_is_inserted_between_two_blocks_is_encrypted_in_its_place() {
    let (near, mut far) = tcp_pairs(1);
    let head = frame_header(FrameKind::Binary, 3_000);
    let payload = Payload { head: head.clone(), ..Payload::default() };
    let framing = PayloadFraming::WebSocket;
    let sender = FlowTask { payload, framing, ..task(Side::Sender, 3_000 + head.len() as u64) };
    let sender = lend_encrypted(&sender, &near);
    let reader = std::thread::spawn(move || far.pop().map(read_all).unwrap());
    wait_until(&sender, |sender| sender.progress().bytes > Bytes::new(100_000));
    let message = [frame_header(FrameKind::Text, 5), b"hello".to_vec()].concat();
    sender.insert(&message);
    let before = sender.progress().bytes;
    wait_until(&sender, |sender| sender.progress().bytes > Bytes::new(before.get() + 100_000));
    sender.stop(Stop::AtOnce);
    wait_ended(&sender);
    let counted = sender.finish().counts.streams[0].bytes;
    drop(near);
    let read = reader.join().unwrap();
    let block = 3_000 + head.len();
    let at = (0..read.len()).step_by(block).find(|at| read[*at..].starts_with(&message)).unwrap();
    assert!(read[at + message.len()..].starts_with(&head));
    let blocks = (read.len() - message.len()) / block;
    assert_eq!((read.len() - message.len()) % block, 0, "the last block is whole");
    assert_eq!(counted, blocks as u64 * 3_000, "headers and messages do not count");
}

#[test]
fn what_is_decrypted_counts_until_the_flow_is_stopped() {
    let (near, mut far) = tcp_pairs(1);
    let receiver = lend_encrypted(&task(Side::Receiver, 4_096), &near);
    let mut far = far.pop().unwrap();
    let sent: Vec<u8> = vec![!7; 300_000];
    far.write_all(&sent).unwrap();
    wait_until(&receiver, |receiver| receiver.progress().bytes == Bytes::new(300_000));
    receiver.stop(Stop::AtOnce);
    wait_ended(&receiver);
    let report = receiver.finish();
    assert_eq!(report.tally.total_bytes, Bytes::new(300_000));
    assert!(report.tally.complete, "{:?}", report.tally.error);
}

#[test]
fn a_peer_that_takes_nothing_holds_no_flow_up_after_its_end() {
    let (near, _far) = tcp_pairs(1);
    let sender = lend_encrypted(&task(Side::Sender, 65_536), &near);
    let full = |sender: &FlowHandle| {
        let before = sender.progress().bytes;
        clock::sleep_until(in_ms(200));
        before == sender.progress().bytes && before > Bytes::default()
    };
    wait_until(&sender, full);
    sender.stop(Stop::AtOnce);
    wait_ended(&sender);
    assert!(sender.finish().counts.streams[0].ended);
}
