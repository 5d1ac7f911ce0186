//! Protocols that share a port are distinguished by the first bytes of a connection.

/// Whether the first bytes of a connection match a protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Match {
    /// It is this protocol.
    Yes,
    /// It is not.
    No,
    /// More bytes are needed.
    More,
}

impl Match {
    /// The match with a protocol whose connections begin with `magic`.
    #[must_use]
    pub fn magic(start: &[u8], magic: &[u8]) -> Self {
        let known = start.len().min(magic.len());
        match start[..known] == magic[..known] {
            false => Self::No,
            true if known < magic.len() => Self::More,
            true => Self::Yes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Match;

    #[test]
    fn a_magic_is_recognized_when_all_of_it_is_there() {
        let of = |start: &[u8]| Match::magic(start, b"MAGIC");
        assert_eq!(
            (of(b""), of(b"MAG"), of(b"MAGIC"), of(b"MAGIC 1")),
            (Match::More, Match::More, Match::Yes, Match::Yes)
        );
        assert_eq!((of(b"MAD"), of(b"GET /")), (Match::No, Match::No));
    }
}
