//! Quantities for which zero makes no sense.

use std::fmt;
use std::str::FromStr;

use crate::ParseError;

/// A text that is not a quantity above zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AboveZeroError {
    /// It is not a quantity.
    NotAQuantity(ParseError),
    /// It is zero.
    Zero,
}

impl fmt::Display for AboveZeroError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAQuantity(error) => error.fmt(f),
            Self::Zero => f.write_str("it must be above zero"),
        }
    }
}

impl std::error::Error for AboveZeroError {}

impl From<ParseError> for AboveZeroError {
    fn from(error: ParseError) -> Self {
        Self::NotAQuantity(error)
    }
}

/// Parses a quantity and refuses zero.
///
/// # Errors
/// The text is not a quantity, or it is zero.
pub fn above_zero<T>(text: &str) -> Result<T, AboveZeroError>
where
    T: FromStr<Err = ParseError> + Default + PartialOrd,
{
    let value: T = text.parse()?;
    if value > T::default() { Ok(value) } else { Err(AboveZeroError::Zero) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bitrate, Span};

    #[test]
    fn zero_is_refused_and_the_smallest_value_is_not() {
        assert_eq!(above_zero::<Span>("1ns"), Ok(Span::from_ns(1)));
        assert!(above_zero::<Span>("0").is_err());
        assert!(above_zero::<Bitrate>("0G").is_err());
        assert!(above_zero::<Bitrate>("fast").unwrap_err().to_string().contains("fast"));
    }
}
