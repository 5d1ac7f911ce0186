//! Scripts: bytes that say what happens to a session, step by step.

/// The bytes not yet played.
pub(crate) struct Script<'a> {
    pub(crate) rest: &'a [u8],
}

impl<'a> Script<'a> {
    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// A length in one byte, and at most that many bytes.
    pub(crate) fn some(&mut self) -> Option<&'a [u8]> {
        let length = usize::from(self.byte()?).min(self.rest.len());
        let (some, rest) = self.rest.split_at(length);
        self.rest = rest;
        Some(some)
    }
}
