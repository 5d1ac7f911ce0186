//! Quantities that a command line may only give above zero.

use std::fmt::Display;
use std::str::FromStr;

/// Parses a quantity and refuses zero; for `value_parser`.
pub(super) fn above_zero<T>(text: &str) -> Result<T, String>
where
    T: FromStr<Err: Display> + Default + PartialOrd,
{
    let value: T = text.parse().map_err(|error: T::Err| error.to_string())?;
    if value > T::default() { Ok(value) } else { Err("it must be above zero".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_units::{Bitrate, Span};

    #[test]
    fn zero_is_refused_and_the_smallest_value_is_not() {
        assert_eq!(above_zero::<Span>("1ns"), Ok(Span::from_ns(1)));
        assert!(above_zero::<Span>("0").is_err());
        assert!(above_zero::<Bitrate>("0G").is_err());
        assert!(above_zero::<Bitrate>("fast").unwrap_err().contains("fast"));
    }
}
