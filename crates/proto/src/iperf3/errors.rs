//! iperf3's errors: their numbers are on the wire and their texts are what scripts look for.

use std::fmt;

/// Number of an error, the same since iperf3 3.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Number(pub i32);

/// What went wrong, in iperf3's words ([`fmt::Display`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// Which error.
    pub number: Number,
    /// Error number of the system; 0 when there is none.
    pub errno: i32,
    /// What the system says (strerror, gai_strerror), or what the argument was; empty when there is nothing to say.
    pub detail: String,
}

impl Trouble {
    /// An error without a word of the system.
    #[must_use]
    pub fn new(number: Number) -> Self {
        Self { number, errno: 0, detail: String::new() }
    }

    /// An error and what the system said.
    #[must_use]
    pub fn because(number: Number, errno: i32, detail: impl Into<String>) -> Self {
        Self { number, errno, detail: detail.into() }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "int_errno={}", self.number.0)
    }
}
