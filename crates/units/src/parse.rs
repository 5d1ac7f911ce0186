//! Errors in quantities that users type.

use std::fmt;

/// A text that is not a valid quantity, with the text and the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    /// The text as typed.
    pub text: String,
    /// What is wrong with it.
    pub trouble: ParseErrorKind,
    /// Example of a valid text.
    pub example: &'static str,
}

/// What is wrong with the text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseErrorKind {
    /// Nothing was typed.
    Empty,
    /// There is no number at the start.
    NotANumber,
    /// The number is below zero.
    Negative,
    /// The text after the number is not a unit of this quantity.
    UnknownUnit {
        /// The unit as typed.
        unit: String,
        /// The known units.
        known: &'static str,
    },
    /// The value is out of range.
    TooLarge,
    /// The number has too many decimal places.
    TooFine,
    /// The value is not a whole number of the smallest unit, so it would have to be rounded.
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
                write!(f, "unknown unit '{unit}' in '{}'; known units are {known}", self.text)?;
            }
            ParseErrorKind::TooLarge => write!(f, "'{}' is too large", self.text)?,
            ParseErrorKind::TooFine => write!(f, "'{}' has more decimal places than can be kept", self.text)?,
            ParseErrorKind::NotWhole { of } => write!(f, "'{}' is not a whole number of {of}", self.text)?,
        }
        write!(f, " (example: {})", self.example)
    }
}

impl std::error::Error for ParseError {}
