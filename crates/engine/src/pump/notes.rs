//! Notes about the connection in its blocks: written by a sender, read by a receiver (see [`BlockNote`]).

use std::net::TcpStream;
use std::time::Duration;

use linerate_model::flow::BlockNote;
use linerate_sock::{Mono, clock, tcp_info};

use super::feed::Feed;
use crate::counters::CounterWriter;

/// Bytes of a note.
const NOTE_BYTES: usize = 8;

/// How often a sender reads TCP_INFO.
const QUERY_INTERVAL: Duration = Duration::from_millis(10);

/// Writes the notes of one stream.
pub(crate) struct NoteWriter {
    note: BlockNote,
    /// The kernel's count of retransmits before the flow; absent where it does not count them, and then no
    /// notes are written.
    before: Option<u32>,
    written: u64,
    due: Mono,
}

impl NoteWriter {
    pub(crate) fn new(note: BlockNote, socket: &TcpStream) -> Self {
        let before = tcp_info(socket).ok().and_then(|info| info.total_retrans);
        Self { note, before, written: 0, due: Mono::default() }
    }

    /// Writes the note into the next block.
    pub(crate) fn write(&mut self, socket: &TcpStream, feed: &mut Feed) {
        let Some(before) = self.before else { return };
        let now = clock::now();
        // The first note carries the kind, the second is the first that carries the congestion window.
        let asks = self.written < 2 || now >= self.due;
        self.written += 1;
        let Some(info) = asks.then(|| tcp_info(socket).ok()).flatten() else { return };
        self.due = now + QUERY_INTERVAL;
        let again = info.total_retrans.unwrap_or(before).wrapping_sub(before);
        let kib = info.cwnd_bytes().map_or(0, |bytes| u32::try_from(bytes >> 10).unwrap_or(u32::MAX));
        let second = if self.written == 1 { self.note.kind } else { kib };
        let mut note = [0; NOTE_BYTES];
        note[..4].copy_from_slice(&again.to_le_bytes());
        note[4..].copy_from_slice(&second.to_le_bytes());
        feed.put(self.note.at, &note);
    }
}

/// Reads the notes of one stream, regardless of how reads split its blocks.
pub(crate) struct NoteReader {
    at: usize,
    block: usize,
    /// Offset of the next byte in its block.
    place: usize,
    note: [u8; NOTE_BYTES],
    first: Option<[u8; NOTE_BYTES]>,
}

impl NoteReader {
    /// For blocks of `block` bytes.
    pub(crate) fn new(note: BlockNote, block: usize) -> Self {
        Self { at: note.at, block: block.max(1), place: 0, note: [0; NOTE_BYTES], first: None }
    }

    /// Examines the next bytes of the stream.
    pub(crate) fn see(&mut self, bytes: &[u8], meter: &CounterWriter<'_>) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (here, after) = rest.split_at(rest.len().min(self.block - self.place));
            let whole = self.take(here);
            self.place = (self.place + here.len()) % self.block;
            if whole {
                meter.noted(*self.first.get_or_insert(self.note), self.note);
            }
            rest = after;
        }
    }

    /// Copies the part of the note that `part` contains; true if that completes the note.
    fn take(&mut self, part: &[u8]) -> bool {
        let end = self.at + NOTE_BYTES;
        let from = self.place.max(self.at);
        let to = (self.place + part.len()).min(end);
        if from >= to {
            return false;
        }
        let bytes = &part[from - self.place..to - self.place];
        self.note[from - self.at..to - self.at].copy_from_slice(bytes);
        to == end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::Counters;
    use crate::measured::MeasuredPart;
    use linerate_units::Span;
    use proptest::prelude::*;

    const NOTE: BlockNote = BlockNote { at: 24, kind: 7 };

    /// First and last note of a stream that arrives in pieces of these lengths, repeated.
    fn read(stream: &[u8], block: usize, pieces: &[usize]) -> ([u8; 8], [u8; 8]) {
        let (counters, part) = (Counters::new(), MeasuredPart::new(Span::ZERO, None));
        let meter = CounterWriter::new(&counters, &part);
        let mut reader = NoteReader::new(NOTE, block);
        let (mut rest, mut lengths) = (stream, pieces.iter().cycle());
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.len().min(*lengths.next().unwrap()));
            reader.see(piece, &meter);
            rest = after;
        }
        let counts = counters.read();
        (counts.first_note.to_ne_bytes(), counts.last_note.to_ne_bytes())
    }

    /// Blocks whose note holds the number of the block, from 1, in each byte.
    fn blocks(count: u8, length: usize) -> Vec<u8> {
        (1..=count)
            .flat_map(|number| (0..length).map(move |at| if (24..32).contains(&at) { number } else { 0xEE }))
            .collect()
    }

    proptest! {
        #[test]
        fn notes_are_found_however_the_stream_is_cut(
            count in 1u8..20, length in 32usize..200, pieces in proptest::collection::vec(1usize..300, 1..8),
        ) {
            let (first, last) = read(&blocks(count, length), length, &pieces);
            prop_assert_eq!((first, last), ([1; 8], [count; 8]));
        }
    }

    #[test]
    fn a_note_that_is_cut_off_is_none() {
        let stream = blocks(2, 40);
        assert_eq!(read(&stream[..31], 40, &[7]), ([0; 8], [0; 8]));
        assert_eq!(read(&stream[..71], 40, &[7]), ([1; 8], [1; 8]));
        assert_eq!(read(&stream[..72], 40, &[7]), ([1; 8], [2; 8]));
    }

    #[test]
    fn blocks_that_are_too_short_for_a_note_have_none() {
        assert_eq!(read(&[9; 400], 31, &[50]), ([0; 8], [0; 8]));
    }
}
