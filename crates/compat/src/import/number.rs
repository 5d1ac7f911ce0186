//! Numbers as other programs print them: the value, and the weight of the last digit.

/// A number parsed from a text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Printed {
    /// The number.
    pub(crate) value: f64,
    /// The weight of its last digit.
    pub(crate) step: f64,
    /// Number of digits after the decimal point.
    pub(crate) decimals: usize,
}

/// Longest text that is accepted as a number; a double has at most 17 significant digits, and 309 before the
/// point.
const MAX_NUMBER_CHARS: usize = 64;

/// Larger than any quantity of a network in any unit: 2^64 bytes are 1.5e20 bits.
const OUT_OF_RANGE: f64 = 1e25;

impl Printed {
    /// Converts to a unit that is smaller by `factor`.
    pub(crate) fn times(self, factor: f64) -> Self {
        Self { value: self.value * factor, step: self.step * factor, ..self }
    }

    /// The same number as a count: a whole number is exact.
    pub(crate) fn exact(self) -> Self {
        Self { step: if self.decimals == 0 { 0.0 } else { self.step }, ..self }
    }

    /// The same number, for a program that prints this many significant digits and drops trailing zeros (`%g`).
    pub(crate) fn significant(self, digits: i32) -> Self {
        let power = if self.value == 0.0 { 0 } else { self.value.abs().log10().floor() as i32 };
        Self { step: 10_f64.powi(power - digits + 1), ..self }
    }
}

/// Parses a decimal number with a point or, in other locales, a comma.
///
/// A comma before three digits may also separate thousands, unless the number before it is 0 or has more than
/// three digits. It counts as a decimal comma only if `three` states that the program prints three decimals
/// there.
///
/// # Errors
/// Why the text is not a number, for the user.
pub(crate) fn number(text: &str, three: bool) -> Result<Printed, String> {
    if text.len() > MAX_NUMBER_CHARS {
        return Err(format!("a number of {} characters is out of range", text.len()));
    }
    if is_no_number(text) {
        return Err(format!("\"{text}\" is not a number: the program divided by zero"));
    }
    let wrong = || format!("\"{}\" is not a number", shown(text));
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, power) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, power)) => (mantissa, power.parse::<i16>().map_err(|_| wrong())?),
        None => (unsigned, 0),
    };
    let (whole, decimals) = match mantissa.split_once(['.', ',']) {
        Some((whole, decimals)) => (whole, Some(decimals)),
        None => (mantissa, None),
    };
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let places = decimals.unwrap_or_default();
    if !digits(whole) || !digits(places) || (whole.is_empty() && places.is_empty()) {
        return Err(wrong());
    }
    let thousands = places.len() == 3 && (1..=3).contains(&whole.len()) && whole != "0";
    if mantissa.contains(',') && thousands && !three {
        return Err(format!("\"{text}\" has a comma that may be a decimal or a thousands separator"));
    }
    let sign = if text.starts_with('-') { "-" } else { "" };
    let value: f64 = format!("{sign}{whole}.{places}0e{power}").parse().map_err(|_| wrong())?;
    if !value.is_finite() || value.abs() >= OUT_OF_RANGE {
        return Err(format!("\"{text}\" is out of range"));
    }
    let last = i32::from(power) - places.len() as i32;
    Ok(Printed { value, step: 10_f64.powi(last), decimals: places.len() })
}

/// What C prints for a division by zero: `nan`, `-nan`, `inf`, `-nan(ind)`.
pub(crate) fn is_no_number(text: &str) -> bool {
    let lower = text.trim_start_matches(['+', '-']).to_ascii_lowercase();
    ["nan", "inf", "1.#"].iter().any(|start| lower.starts_with(start))
}

/// The beginning of a text, for a message.
pub(crate) fn shown(text: &str) -> String {
    let short: String = linerate_model::foreign_text::one_line(text).chars().take(40).collect();
    if short.len() < text.len() { short + "..." } else { short }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<(f64, f64)> {
        number(text, false).ok().map(|printed| (printed.value, printed.step))
    }

    #[test]
    fn a_figure_of_three_hundred_digits_is_out_of_range_however_it_is_written() {
        for text in ["1e300", "-1E+300", "1e25", &"9".repeat(300), &"9".repeat(40)] {
            let why = number(text, false).unwrap_err();
            assert!(why.contains("out of range"), "{text}: {why}");
        }
        assert_eq!(read("18446744073709551615"), Some((18_446_744_073_709_551_615.0, 1.0)));
    }

    #[test]
    fn the_last_digit_is_the_step() {
        assert_eq!(read("93.02"), Some((93.02, 0.01)));
        assert_eq!(read("189"), Some((189.0, 1.0)));
        assert_eq!(read("1e+02"), Some((100.0, 100.0)));
        assert_eq!(read("-0.5"), Some((-0.5, 0.1)));
        assert_eq!(number("189", false).unwrap().exact().step, 0.0);
        assert_eq!(number("32032", false).unwrap().significant(6).step, 0.1);
    }

    #[test]
    fn a_comma_is_read_where_it_is_clear_and_named_where_it_is_not() {
        assert_eq!(read("93,02"), Some((93.02, 0.01)));
        assert_eq!(read("0,071"), Some((0.071, 0.001)));
        assert_eq!(read("12972,820"), Some((12972.82, 0.001)));
        assert!(number("1,234", false).unwrap_err().contains("thousands"));
        assert_eq!(number("1,234", true).unwrap().value, 1.234);
        assert_eq!(read("1.234,5"), None);
    }

    #[test]
    fn what_is_not_a_number_is_reported() {
        assert!(number(&"9".repeat(400), false).unwrap_err().contains("400"));
        for text in ["", ".", "-", "nan", "-nan", "inf", "1e", "1e999", "١٢", "0x10", "1 2", "1e99999999"] {
            assert!(number(text, false).is_err(), "{text}");
        }
    }
}
