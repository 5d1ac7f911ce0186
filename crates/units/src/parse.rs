//! What can be wrong with a quantity that somebody typed.

use std::fmt;

/// A text that is not the quantity it should be: names the text and the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    /// The text as typed.
    pub text: String,
    /// What is wrong with it.
    pub trouble: ParseErrorKind,
    /// How a right one looks.
    pub example: &'static str,
}

/// What is wrong with the text of a quantity.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseErrorKind {
    /// Nothing was typed.
    Empty,
    /// There is no number at the start.
    NotANumber,
    /// The number is below zero.
    Negative,
    /// What follows the number is no unit of this quantity.
    UnknownUnit {
        /// The unit as typed.
        unit: String,
        /// The units that are understood.
        known: &'static str,
    },
    /// The value is larger than can be counted.
    TooLarge,
    /// The number has more decimal places than can be kept.
    TooFine,
    /// The value is not a whole number of the smallest unit, so keeping it would round.
    NotWhole {
        /// The smallest unit: bytes or nanoseconds.
        of: &'static str,
    },
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.trouble {
            ParseErrorKind::Empty => f.write_str("nothing given")?,
            ParseErrorKind::NotANumber => write!(f, "'{}' does not start with a number", self.text)?,
            ParseErrorKind::Negative => write!(f, "'{}' is negative", self.text)?,
            ParseErrorKind::UnknownUnit { unit, known } => {
                write!(f, "unknown unit '{unit}' in '{}'; known are {known}", self.text)?;
            }
            ParseErrorKind::TooLarge => write!(f, "'{}' is too large", self.text)?,
            ParseErrorKind::TooFine => write!(f, "'{}' has more decimal places than can be kept", self.text)?,
            ParseErrorKind::NotWhole { of } => write!(f, "'{}' is not a whole number of {of}", self.text)?,
        }
        write!(f, " (example: {})", self.example)
    }
}

impl std::error::Error for ParseError {}
