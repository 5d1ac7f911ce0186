//! Chunks of an HTTP body whose length its sender does not know (RFC 9112 §7.1).

use std::fmt;

/// Most hexadecimal digits of a chunk's size.
const MAX_SIZE_DIGITS: u8 = 15;

/// Most bytes of extensions after a size, and of the trailer after the last chunk.
const MAX_OTHER_BYTES: u16 = 8 << 10;

/// What comes next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum ChunkPlace {
    /// A digit of a size, after this many.
    Size(u8),
    /// The rest of a line after a size.
    Extension,
    /// The line feed after a size.
    SizeEnd,
    Payload,
    /// The line end after a chunk.
    PayloadEnd,
    PayloadEndLine,
    /// The beginning of a line of the trailer.
    TrailerLine,
    /// The rest of one.
    Trailer,
    /// The line feed after an empty line.
    LastLine,
    #[default]
    Begin,
    Over,
}

/// Counts the payload in the chunks of a body, however they are cut into reads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChunkReader {
    place: ChunkPlace,
    /// Bytes of the chunk that are still to come; the size, while it is read.
    left: u64,
    /// Bytes of extensions and trailer.
    other: u16,
}

/// The body does not consist of chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkError;

impl fmt::Display for ChunkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the body does not consist of chunks (RFC 9112, section 7.1)")
    }
}

impl std::error::Error for ChunkError {}

impl ChunkReader {
    /// Whether the last chunk and its trailer have been read.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.place == ChunkPlace::Over
    }

    /// Takes the next bytes of the connection, up to the end of the body. Returns the payload in them, and how many
    /// belong to the body.
    ///
    /// # Errors
    /// They are no chunks, or extensions and trailer have more than 8 KiB.
    pub fn take(&mut self, bytes: &[u8]) -> Result<(u64, usize), ChunkError> {
        let (mut payload, mut rest) = (0_u64, bytes);
        while let Some((first, after)) = rest.split_first()
            && !self.is_over()
        {
            if self.place == ChunkPlace::Payload {
                let taken = usize::try_from(self.left).unwrap_or(usize::MAX).min(rest.len());
                self.left = self.left.saturating_sub(taken as u64);
                payload = payload.saturating_add(taken as u64);
                rest = rest.get(taken..).unwrap_or_default();
                if self.left == 0 {
                    self.place = ChunkPlace::PayloadEnd;
                }
            } else {
                self.place = self.after(*first)?;
                rest = after;
            }
        }
        Ok((payload, bytes.len().saturating_sub(rest.len())))
    }

    /// Where the reader is after a byte that is no payload.
    fn after(&mut self, byte: u8) -> Result<ChunkPlace, ChunkError> {
        use ChunkPlace::{
            Begin, Extension, LastLine, Over, Payload, PayloadEnd, PayloadEndLine, Size, SizeEnd, Trailer,
            TrailerLine,
        };
        let digit = char::from(byte).to_digit(16).map(u64::from);
        Ok(match (self.place, byte) {
            (Begin, _) => {
                self.left = digit.ok_or(ChunkError)?;
                Size(1)
            }
            (Size(digits), _) if digit.is_some() && digits < MAX_SIZE_DIGITS => {
                self.left = self.left.saturating_mul(16).saturating_add(digit.unwrap_or_default());
                Size(digits.saturating_add(1))
            }
            (Size(_) | Extension, b'\r') => SizeEnd,
            (Size(_), b';' | b' ' | b'\t') | (Extension, _) if byte != b'\n' => {
                self.count_other()?;
                Extension
            }
            (SizeEnd, b'\n') if self.left == 0 => TrailerLine,
            (SizeEnd, b'\n') => Payload,
            (PayloadEnd, b'\r') => PayloadEndLine,
            (PayloadEndLine, b'\n') => Begin,
            (TrailerLine, b'\r') => LastLine,
            (LastLine, b'\n') => Over,
            (Trailer, b'\n') => TrailerLine,
            (TrailerLine | Trailer, _) if byte != b'\n' => {
                self.count_other()?;
                Trailer
            }
            _ => return Err(ChunkError),
        })
    }

    fn count_other(&mut self) -> Result<(), ChunkError> {
        self.other = self.other.saturating_add(1);
        if self.other > MAX_OTHER_BYTES { Err(ChunkError) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The payload of a body that is over, and the length of what belongs to it.
    fn read(bytes: &[u8]) -> Result<(u64, usize, bool), ChunkError> {
        let mut reader = ChunkReader::default();
        reader.take(bytes).map(|(payload, used)| (payload, used, reader.is_over()))
    }

    /// The example of RFC 9112 §7.1.3 has the same form.
    #[test]
    fn sizes_line_ends_extensions_and_trailer_are_no_payload() {
        let plain = b"4\r\nWiki\r\n5\r\npedia\r\n0\r\n\r\n";
        assert_eq!(read(plain), Ok((9, plain.len(), true)));
        let rich = b"00A;name=\"v\"\r\n0123456789\r\n1 \r\n\n\r\n0;x\r\nDigest: y\r\nB: z\r\n\r\nGET /";
        assert_eq!(read(rich), Ok((11, rich.len() - 5, true)));
        assert_eq!(read(b"8000\r\n012"), Ok((3, 9, false)));
    }

    #[test]
    fn what_is_no_chunk_is_an_error() {
        let no_chunks: [&[u8]; 8] =
            [b"\r\n", b"x", b";a\r\n", b"-1\r\n", b"1\n", b"1\r\nabc", b"1\r\na\n", b"fffffffffffffffff\r\n"];
        for bytes in no_chunks {
            assert_eq!(read(bytes), Err(ChunkError), "{:?}", String::from_utf8_lossy(bytes));
        }
        for start in ["1;", "0\r\nT"] {
            let long = start.to_owned() + &"a".repeat(9_000);
            assert_eq!(read(long.as_bytes()), Err(ChunkError));
        }
    }

    proptest! {
        #[test]
        fn the_payload_is_the_same_however_it_is_cut(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..50), 0..6),
            cut in 1_usize..20,
        ) {
            let mut body: Vec<u8> = Vec::new();
            for chunk in &chunks {
                body.extend(format!("{:x}\r\n", chunk.len()).as_bytes());
                body.extend(chunk);
                body.extend(b"\r\n");
            }
            body.extend(b"0\r\n\r\n");
            let (mut reader, mut payload) = (ChunkReader::default(), 0);
            for piece in body.chunks(cut) {
                prop_assert!(!reader.is_over());
                let (more, used) = reader.take(piece).unwrap();
                payload += more;
                prop_assert_eq!(used, piece.len());
            }
            prop_assert!(reader.is_over());
            prop_assert_eq!(payload, chunks.iter().map(|chunk| chunk.len() as u64).sum::<u64>());
        }
    }
}
