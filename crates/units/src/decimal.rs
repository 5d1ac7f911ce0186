//! A decimal number as typed, without conversion to binary floating point.

use crate::parse::ParseErrorKind;

/// `mantissa` / 10^`scale`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decimal {
    mantissa: u128,
    scale: u32,
}

/// Limit that keeps products inside `u128`; no quantity needs more digits.
const MAX_DIGITS: usize = 24;

impl Decimal {
    /// Splits `text` into the number at its start and the unit after it.
    pub(crate) fn split(text: &str) -> Result<(Self, &str), ParseErrorKind> {
        let text = text.trim();
        if text.is_empty() {
            return Err(ParseErrorKind::Empty);
        }
        if let Some(rest) = text.strip_prefix('-') {
            let negative = rest.starts_with(|c: char| c.is_ascii_digit() || c == '.');
            return Err(if negative { ParseErrorKind::Negative } else { ParseErrorKind::NotANumber });
        }
        let text = text.strip_prefix('+').unwrap_or(text);
        let end = number_length(text);
        let (number, unit) = text.split_at(end);
        Ok((Self::parse(number)?, unit.trim()))
    }

    fn parse(number: &str) -> Result<Self, ParseErrorKind> {
        let (plain, exponent) = match number.find(['e', 'E']) {
            Some(at) => {
                let (plain, exponent) = (&number[..at], &number[at + 1..]);
                let beyond = if exponent.starts_with('-') {
                    ParseErrorKind::TooFine
                } else {
                    ParseErrorKind::TooLarge
                };
                (plain, exponent.parse::<i32>().map_err(|_| beyond)?)
            }
            None => (number, 0),
        };
        let (whole, fraction) = plain.split_once('.').unwrap_or((plain, ""));
        if whole.is_empty() && fraction.is_empty() {
            return Err(ParseErrorKind::NotANumber);
        }
        let digits: String = whole.chars().chain(fraction.chars()).collect();
        let digits = digits.trim_start_matches('0');
        if digits.len() > MAX_DIGITS {
            let fits = whole.trim_start_matches('0').len() <= MAX_DIGITS;
            return Err(if fits { ParseErrorKind::TooFine } else { ParseErrorKind::TooLarge });
        }
        let mut mantissa: u128 =
            if digits.is_empty() { 0 } else { digits.parse().map_err(|_| ParseErrorKind::NotANumber)? };
        let scale = i64::try_from(fraction.len()).unwrap_or(i64::MAX) - i64::from(exponent);
        if mantissa == 0 {
            return Ok(Self { mantissa: 0, scale: 0 });
        }
        if scale < 0 {
            let power = u32::try_from(-scale).ok().filter(|p| *p <= 24).ok_or(ParseErrorKind::TooLarge)?;
            mantissa = mantissa.checked_mul(10_u128.pow(power)).ok_or(ParseErrorKind::TooLarge)?;
            return Ok(Self { mantissa, scale: 0 });
        }
        let scale = u32::try_from(scale).ok().filter(|s| *s <= 36).ok_or(ParseErrorKind::TooFine)?;
        Ok(Self { mantissa, scale })
    }

    /// The number times `factor`, if that is a whole number of `of` in range.
    pub(crate) fn times_whole(self, factor: u64, of: &'static str) -> Result<u64, ParseErrorKind> {
        let product = self.mantissa.checked_mul(u128::from(factor)).ok_or(ParseErrorKind::TooLarge)?;
        let divisor = 10_u128.pow(self.scale);
        if product % divisor != 0 {
            return Err(ParseErrorKind::NotWhole { of });
        }
        u64::try_from(product / divisor).map_err(|_| ParseErrorKind::TooLarge)
    }

    /// The whole number nearest to this number times `factor`; halves are rounded up.
    pub(crate) fn times_nearest(self, factor: u64) -> Result<u64, ParseErrorKind> {
        let product = self.mantissa.checked_mul(u128::from(factor)).ok_or(ParseErrorKind::TooLarge)?;
        let divisor = 10_u128.pow(self.scale);
        let rounded = product.checked_add(divisor / 2).ok_or(ParseErrorKind::TooLarge)? / divisor;
        u64::try_from(rounded).map_err(|_| ParseErrorKind::TooLarge)
    }

    /// The floating-point number nearest to a hundredth of this number.
    pub(crate) fn hundredth(self) -> Result<f64, ParseErrorKind> {
        Self { scale: self.scale + 2, ..self }.times(1)
    }

    /// The floating-point number nearest to this number times `factor`.
    pub(crate) fn times(self, factor: u64) -> Result<f64, ParseErrorKind> {
        let product = self.mantissa.checked_mul(u128::from(factor)).ok_or(ParseErrorKind::TooLarge)?;
        // The standard parser rounds a decimal text correctly; arithmetic on two rounded parts would not.
        format!("{product}e-{}", self.scale).parse().map_err(|_| ParseErrorKind::NotANumber)
    }
}

/// Length of the number at the start: digits, one point, and an exponent only if digits follow the `e`. So `1E`
/// is a number with a unit, and `1e3` a thousand.
fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 0;
    let mut point = false;
    while at < bytes.len() && (bytes[at].is_ascii_digit() || (bytes[at] == b'.' && !point)) {
        point |= bytes[at] == b'.';
        at += 1;
    }
    if at > 0 && at < bytes.len() && (bytes[at] | 0x20) == b'e' {
        let mut exponent = at + 1;
        if exponent < bytes.len() && matches!(bytes[exponent], b'+' | b'-') {
            exponent += 1;
        }
        let digits = bytes[exponent..].iter().take_while(|b| b.is_ascii_digit()).count();
        if digits > 0 {
            return exponent + digits;
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_small_to_be_kept_is_not_called_too_large() {
        let places = |count: usize| format!("0.{}1", "0".repeat(count));
        for fine in ["1e-300", "1e-99999999999", "1.0000000000000000000000001", &places(36)] {
            assert_eq!(Decimal::split(fine), Err(ParseErrorKind::TooFine), "{fine}");
        }
        for large in ["1e300", "1e99999999999", "1000000000000000000000000.5"] {
            assert_eq!(Decimal::split(large), Err(ParseErrorKind::TooLarge), "{large}");
        }
        assert_eq!(Decimal::split(&places(35)), Ok((Decimal { mantissa: 1, scale: 36 }, "")));
        assert_eq!(Decimal::split("0e-300"), Ok((Decimal { mantissa: 0, scale: 0 }, "")));
    }
}
