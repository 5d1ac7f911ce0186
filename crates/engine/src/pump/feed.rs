//! Methods of passing bytes to the kernel and of taking them from it.

use linerate_model::SendMethod;
use linerate_model::flow::StampLayout;
use linerate_sock::errqueue::{self, Notice};
use linerate_sock::handle::AsFd;
use linerate_sock::splice::{FileSender, HugeBuffer, Splicer, ZeroCopySender};
use linerate_sock::{Moved, SockError, sockopt, stream};
use std::ops::Range;
use std::sync::Arc;

use super::disk::{FileSink, FileSource};
use super::payload;
use crate::channel::SecureChannel;
use crate::flow::FlowSide;
use crate::setup::FlowSetup;
use crate::stamp::{self, Stamp};

/// Bytes of one zero-copy call: large enough to be cheap, small enough for the caches.
pub(crate) const ZEROCOPY_CALL_BYTES: usize = 256 << 10;
/// Number of MSG_ZEROCOPY sends between two reads of the completion notifications.
const SENDS_PER_COMPLETION_CHECK: u32 = 16;

/// A method of passing bytes to the kernel.
pub(crate) struct Feed {
    block: Vec<u8>,
    /// The first block, if it is longer.
    first: Option<Vec<u8>>,
    method: FeedMethod,
}

enum FeedMethod {
    Copy,
    Splice(Splicer),
    File(FileSender),
    Notify(Notified),
    Disk(FileSource),
    Encrypt(Arc<dyn SecureChannel>),
}

/// MSG_ZEROCOPY sends and what their completion notifications reported.
struct Notified {
    sender: ZeroCopySender,
    sends: u32,
    copied: bool,
}

impl Feed {
    /// The file that the flow sends, or its pattern with this method.
    ///
    /// # Errors
    /// This host does not support it; [`Feed::copying`] works wherever there is enough memory.
    pub(crate) fn prepare(flow: &FlowSide, method: SendMethod) -> Result<Self, SockError> {
        let Some(file) = &flow.setup.file else { return Self::with_method(flow, method, flow.plan.block) };
        let mut feed = Self::copying(flow, flow.plan.block)?;
        feed.method = FeedMethod::Disk(FileSource::open(&file.path, flow.plan.block)?);
        Ok(feed)
    }

    /// The pattern of the flow, encrypted and sent through a channel.
    ///
    /// # Errors
    /// There is not enough memory for a block.
    pub(crate) fn encrypting(flow: &FlowSide, channel: Arc<dyn SecureChannel>) -> Result<Self, SockError> {
        let mut feed = Self::copying(flow, flow.plan.block)?;
        feed.method = FeedMethod::Encrypt(channel);
        Ok(feed)
    }

    /// The pattern of the flow in blocks of `block` bytes, sent with this method.
    ///
    /// # Errors
    /// This host does not support it.
    pub(crate) fn with_method(flow: &FlowSide, method: SendMethod, block: usize) -> Result<Self, SockError> {
        let mut feed = Self::copying(flow, block)?;
        let payload = &flow.setup.payload;
        // A reference cannot extend past the end of the pattern, so a pattern of one block keeps blocks whole.
        let references = if flow.setup.borrowed { block } else { ZEROCOPY_CALL_BYTES };
        feed.method = match method {
            SendMethod::Auto | SendMethod::Copy => FeedMethod::Copy,
            SendMethod::Splice => {
                let mut buffer = HugeBuffer::new(references)?;
                payload::fill(payload, &mut buffer);
                FeedMethod::Splice(Splicer::new(buffer)?)
            }
            SendMethod::Sendfile => FeedMethod::File(FileSender::new(&payload::block(payload, references)?)?),
            SendMethod::Zerocopy => {
                for socket in flow.sockets.iter() {
                    sockopt::set_zerocopy(&socket, true)?;
                }
                let mut block = HugeBuffer::new(block)?;
                payload::fill(payload, &mut block);
                FeedMethod::Notify(Notified { sender: ZeroCopySender::new(block), sends: 0, copied: false })
            }
        };
        Ok(feed)
    }

    /// The ordinary method: the kernel copies.
    ///
    /// # Errors
    /// There is not enough memory for a block.
    pub(crate) fn copying(flow: &FlowSide, block: usize) -> Result<Self, SockError> {
        let payload = &flow.setup.payload;
        let first = payload::first(payload, block, FlowSetup::MAX_BLOCK_BYTES)?;
        Ok(Self { block: payload::block(payload, block)?, first, method: FeedMethod::Copy })
    }

    /// Writes number and time into the next block if the kernel copies it. Blocks passed by reference stay
    /// unchanged, as the kernel may read them later.
    pub(crate) fn stamp(&mut self, layout: &StampLayout, seq: u64) {
        if matches!(self.method, FeedMethod::Copy) {
            stamp::write(&mut self.block, layout, 0, Stamp { seq, sent_ns: stamp::now_ns(layout) });
        }
    }

    /// Gets the next block ready; false if there is none, at the end of a file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn load(&mut self) -> Result<bool, SockError> {
        match &mut self.method {
            FeedMethod::Disk(source) => source.load(),
            _ => Ok(true),
        }
    }

    /// Bytes of the first block (`first`) or of any other.
    pub(crate) fn length(&self, first: bool) -> usize {
        if let FeedMethod::Disk(source) = &self.method {
            return source.block().len();
        }
        self.first.as_ref().filter(|_| first).unwrap_or(&self.block).len()
    }

    /// Overwrites a part of the following blocks, if the kernel copies them.
    pub(crate) fn put(&mut self, at: usize, bytes: &[u8]) {
        if let Some(part) = self.block.get_mut(at..at + bytes.len()) {
            part.copy_from_slice(bytes);
        }
    }

    /// Passes the rest of a block after its first `taken` bytes; `first` selects the first block.
    #[inline]
    pub(crate) fn send_rest(
        &mut self,
        fd: &impl AsFd,
        first: bool,
        taken: usize,
    ) -> Result<Moved, SockError> {
        let block = self.first.as_ref().filter(|_| first).unwrap_or(&self.block);
        match &mut self.method {
            FeedMethod::Encrypt(channel) => channel.send(fd.as_fd(), &block[taken..]),
            _ if first && self.first.is_some() => stream::send(fd, &block[taken..]),
            FeedMethod::Copy => stream::send(fd, &block[taken..]),
            FeedMethod::Splice(splicer) => splicer.send(fd),
            FeedMethod::File(file) => file.send(fd),
            FeedMethod::Notify(notified) => notified.send(fd, taken..self.block.len()),
            FeedMethod::Disk(source) => stream::send(fd, source.block().get(taken..).unwrap_or_default()),
        }
    }

    /// Passes bytes that are no block.
    pub(crate) fn send_inserted(&self, fd: &impl AsFd, bytes: &[u8]) -> Result<Moved, SockError> {
        match &self.method {
            FeedMethod::Encrypt(channel) => channel.send(fd.as_fd(), bytes),
            _ => stream::send(fd, bytes),
        }
    }

    /// Writes encrypted bytes that still wait to the socket; true if none is left.
    pub(crate) fn flush(&self, fd: &impl AsFd) -> Result<bool, SockError> {
        match &self.method {
            FeedMethod::Encrypt(channel) => channel.flush(fd.as_fd()),
            _ => Ok(true),
        }
    }

    /// Whether one call can pass the same block several times.
    pub(crate) fn repeats(&self) -> bool {
        matches!(self.method, FeedMethod::Copy) && self.first.is_none()
    }

    /// Passes `times` blocks; only allowed if they [repeat](Feed::repeats).
    #[inline]
    pub(crate) fn send_blocks(&mut self, fd: &impl AsFd, times: usize) -> Result<Moved, SockError> {
        stream::send_repeated(fd, &self.block, times)
    }

    /// Passes at most `most` bytes.
    #[inline]
    pub(crate) fn send(&mut self, fd: &impl AsFd, most: u64) -> Result<Moved, SockError> {
        let length = self.block.len().min(usize::try_from(most).unwrap_or(usize::MAX));
        let block = &self.block[..length];
        match &mut self.method {
            FeedMethod::Disk(source) => {
                let moved = stream::send(fd, source.next(most)?)?;
                source.sent(moved.bytes());
                Ok(moved)
            }
            FeedMethod::Copy => stream::send(fd, block),
            FeedMethod::Encrypt(channel) => channel.send(fd.as_fd(), block),
            // splice and sendfile pass a whole pattern; a shorter rest of a limit in bytes is copied.
            FeedMethod::Splice(_) | FeedMethod::File(_) if most < ZEROCOPY_CALL_BYTES as u64 => {
                stream::send(fd, block)
            }
            FeedMethod::Splice(splicer) => splicer.send(fd),
            FeedMethod::File(file) => file.send(fd),
            FeedMethod::Notify(notified) => notified.send(fd, 0..length),
        }
    }

    /// Reads the completion notifications of MSG_ZEROCOPY.
    pub(crate) fn collect(&mut self, fd: &impl AsFd) {
        if let FeedMethod::Notify(notified) = &mut self.method {
            notified.collect(fd);
        }
    }

    /// Whether the kernel copied despite MSG_ZEROCOPY. Reads the remaining completion notifications.
    pub(crate) fn copied(&mut self, fd: &impl AsFd) -> bool {
        match &mut self.method {
            FeedMethod::Notify(notified) => {
                notified.collect(fd);
                notified.copied
            }
            _ => false,
        }
    }
}

impl Notified {
    fn send(&mut self, fd: &impl AsFd, range: Range<usize>) -> Result<Moved, SockError> {
        self.sends += 1;
        if self.sends.is_multiple_of(SENDS_PER_COMPLETION_CHECK) {
            self.collect(fd);
        }
        match self.sender.send(fd, range.clone()) {
            // ENOBUFS: too many notifications are pending. A plain send needs none.
            Err(error) if error.is_out_of_buffers() => {
                self.collect(fd);
                stream::send(fd, self.sender.part(range))
            }
            other => other,
        }
    }

    fn collect(&mut self, fd: &impl AsFd) {
        while let Ok(Some(notice)) = errqueue::take(fd) {
            self.copied |= matches!(notice, Notice::ZeroCopy { copied: true, .. });
        }
    }
}

/// A method of taking bytes from the kernel.
pub(crate) struct Drain {
    buffer: Vec<u8>,
    discard: bool,
    /// Whether what was read is acknowledged at once.
    quick_ack: bool,
    sink: Option<FileSink>,
    /// Decrypts the bytes; absent if they are not encrypted.
    channel: Option<Arc<dyn SecureChannel>>,
}

impl Drain {
    /// The method that the flow requests, with reads of `block` bytes, for the streams of this pump.
    ///
    /// # Errors
    /// There is not enough memory, or the flow's file cannot be written.
    pub(crate) fn prepare(flow: &FlowSide, block: usize, pump: usize) -> Result<Self, SockError> {
        let channel = flow.setup.channels.get(pump).cloned();
        let sink = flow.setup.file.as_ref().map(|file| FileSink::create(&file.path)).transpose()?;
        // Discarded bytes cannot be written to a file, nor decrypted.
        let discard = flow.setup.socket.skip_rx_copy && sink.is_none() && channel.is_none();
        let quick_ack = flow.setup.socket.quick_ack;
        Ok(Self { buffer: payload::allocate(block)?, discard, quick_ack, sink, channel })
    }

    /// Writes the bytes of the latest read to the file, if there is one.
    ///
    /// # Errors
    /// The file cannot be written.
    #[inline]
    pub(crate) fn keep(&mut self, bytes: usize) -> Result<(), SockError> {
        match &mut self.sink {
            Some(sink) => sink.write(&self.buffer[..bytes.min(self.buffer.len())]),
            None => Ok(()),
        }
    }

    /// The first bytes of the latest read; empty if the bytes are discarded.
    #[inline]
    pub(crate) fn taken(&self, bytes: usize) -> &[u8] {
        let kept = if self.discard { 0 } else { bytes.min(self.buffer.len()) };
        &self.buffer[..kept]
    }

    /// Whether the bytes are encrypted on their way.
    pub(crate) const fn decrypts(&self) -> bool {
        self.channel.is_some()
    }

    /// Whether the bytes are removed from the queue without being copied.
    pub(crate) const fn discards(&self) -> bool {
        self.discard
    }

    /// Takes at most `most` bytes and returns when the kernel received the last of them, nanoseconds of the
    /// realtime clock. Only for a drain that does not discard.
    pub(crate) fn recv_stamped(
        &mut self,
        fd: &impl AsFd,
        most: usize,
    ) -> Result<(Moved, Option<u64>), SockError> {
        let length = self.buffer.len().min(most);
        let taken = stream::recv_stamped(fd, &mut self.buffer[..length]);
        self.acknowledge(fd);
        taken
    }

    fn acknowledge(&self, fd: &impl AsFd) {
        if self.quick_ack {
            // The setting was accepted before; of a connection that has ended it does not matter.
            let _ = sockopt::set_quick_ack(fd, true);
        }
    }

    /// Takes at most `most` bytes.
    #[inline]
    pub(crate) fn recv(&mut self, fd: &impl AsFd, most: usize) -> Result<Moved, SockError> {
        let length = self.buffer.len().min(most);
        let room = &mut self.buffer[..length];
        let taken = match &self.channel {
            Some(channel) => channel.recv(fd.as_fd(), room),
            None if self.discard => stream::discard(fd, length),
            None => stream::recv(fd, room),
        };
        self.acknowledge(fd);
        taken
    }
}
