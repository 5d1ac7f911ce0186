//! Parsing and printing of numbers as in iperf3.

use crate::c_format;

/// Unit of rates (`-f`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Iperf3Format {
    /// Bytes with factors of 1024 instead of bits with factors of 1000.
    pub bytes: bool,
    /// Number of factors: 1 for kilo, 4 for tera.
    pub power: u8,
}

impl Iperf3Format {
    /// The unit for one of the letters `kmgtKMGT`.
    #[must_use]
    pub fn from_letter(letter: char) -> Option<Self> {
        Some(Self { bytes: letter.is_ascii_uppercase(), power: power_of(letter)? })
    }
}

/// Parses a size: a decimal or hexadecimal number, optionally with one of the letters `kmgt` for powers of
/// 1024. Text after the letter is ignored, and fractions of bytes are cut off.
///
/// Absent for any other text, and for negative or non-finite numbers.
#[must_use]
pub fn size(text: &str) -> Option<u64> {
    quantity(text, 1024.0)
}

/// Parses a rate: like [`size`], but the letters are powers of 1000.
#[must_use]
pub fn rate(text: &str) -> Option<u64> {
    quantity(text, 1000.0)
}

fn quantity(text: &str, factor: f64) -> Option<u64> {
    let (number, rest) = leading_float(text)?;
    let scale = match rest.chars().next() {
        None => 1.0,
        Some(letter) => factor.powi(i32::from(power_of(letter)?)),
    };
    let value = number * scale;
    (value.is_finite() && value >= 0.0).then_some(value as u64)
}

/// Parses the number at the start of a text like strtod(3); also returns the rest.
#[must_use]
pub fn leading_float(text: &str) -> Option<(f64, &str)> {
    let text = text.trim_start();
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if let Some(hex) = unsigned.strip_prefix("0x").or_else(|| unsigned.strip_prefix("0X")) {
        let end = hex.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(hex.len());
        let (digits, rest) = hex.split_at(end);
        let value =
            digits.chars().filter_map(|c| c.to_digit(16)).fold(0.0, |sum, d| sum * 16.0 + f64::from(d));
        let value = if text.starts_with('-') { -value } else { value };
        return (!digits.is_empty()).then_some((value, rest));
    }
    let end = decimal_length(text);
    let (number, rest) = text.split_at(end);
    Some((number.parse().ok()?, rest))
}

/// Length of the longest prefix that is a decimal number.
fn decimal_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes.iter().skip(from).take_while(|b| b.is_ascii_digit()).count();
    let sign = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    let mut end = sign + digits(sign);
    if bytes.get(end) == Some(&b'.') {
        end += 1 + digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let signed = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + signed);
        if exponent > 0 {
            end += 1 + signed + exponent;
        }
    }
    end
}

/// Parses the integer at the start of a text like atoi(3): 0 if there is none, limited to the range of the
/// type.
#[must_use]
pub fn leading_int(text: &str) -> i64 {
    let text = text.trim_start();
    let sign = usize::from(text.starts_with(['+', '-']));
    let digits = text.bytes().skip(sign).take_while(u8::is_ascii_digit);
    let value = digits.fold(0_i64, |sum, d| sum.saturating_mul(10).saturating_add(i64::from(d - b'0')));
    if text.starts_with('-') { -value } else { value }
}

fn power_of(letter: char) -> Option<u8> {
    "kmgt".chars().zip(1..).find_map(|(known, power)| (known == letter.to_ascii_lowercase()).then_some(power))
}

/// Formats bytes with an adaptive unit, in the width of iperf3's columns: ` 489 KByte` (an `s` may follow).
#[must_use]
pub fn transfer(bytes: u64) -> String {
    scaled(bytes as f64, true, None)
}

/// Formats bits per second with an adaptive or the requested unit: `4.00 Mbit` (`s/sec` may follow).
#[must_use]
pub fn bitrate(bits_per_second: f64, format: Option<Iperf3Format>) -> String {
    match format {
        Some(Iperf3Format { bytes: true, power }) => scaled(bits_per_second / 8.0, true, Some(power)),
        Some(Iperf3Format { bytes: false, power }) => scaled(bits_per_second, false, Some(power)),
        None => scaled(bits_per_second, false, None),
    }
}

fn scaled(mut value: f64, bytes: bool, power: Option<u8>) -> String {
    let factor = if bytes { 1024.0 } else { 1000.0 };
    let mut steps = 0;
    while steps < 4 && power.map_or(value >= factor, |power| steps < power) {
        value /= factor;
        steps += 1;
    }
    let unit = if bytes {
        ["Byte", "KByte", "MByte", "GByte", "TByte"]
    } else {
        ["bit", "Kbit", "Mbit", "Gbit", "Tbit"]
    };
    let unit = unit.get(usize::from(steps)).copied().unwrap_or_default();
    if value < 9.995 {
        format!("{value:4.2} {unit}")
    } else if value < 99.95 {
        format!("{value:4.1} {unit}")
    } else {
        format!("{value:4.0} {unit}")
    }
}

/// Formats a number with `digits` significant digits, like printf's `%g`.
#[must_use]
pub fn general(value: f64, digits: usize) -> String {
    // A zero has no sign here.
    c_format::general(if value == 0.0 { 0.0 } else { value }, digits)
}

/// Formats a number like iperf3's JSON: integers without a point, others with 15 significant digits, or with 17
/// if 15 do not reproduce the value.
#[must_use]
pub fn json_number(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e18 {
        return format!("{}", value as i64);
    }
    let short = general(value, 15);
    if short.parse() == Ok(value) { short } else { general(value, 17) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_binary_and_rates_decimal() {
        for (text, bytes, bits) in [
            ("1.5M", 1_572_864, 1_500_000),
            ("10MB", 10_485_760, 10_000_000),
            ("0x10", 16, 16),
            ("1e6", 1_000_000, 1_000_000),
            ("2K", 2048, 2000),
            ("1.5g", 1_610_612_736, 1_500_000_000),
            ("1t", 1 << 40, 1_000_000_000_000),
            ("9999999999999999", 10_000_000_000_000_000, 10_000_000_000_000_000),
            ("7.9", 7, 7),
            (".5k", 512, 500),
            (" 8", 8, 8),
        ] {
            assert_eq!(size(text), Some(bytes), "{text}");
            assert_eq!(rate(text), Some(bits), "{text}");
        }
    }

    #[test]
    fn other_letters_and_no_number_are_refused() {
        for text in ["12x", "", "K", "abc", "-5", "1e999", "nan", "inf", "0x", "1 K", "--", ".", "1b"] {
            assert_eq!(size(text), None, "{text:?}");
        }
    }

    #[test]
    fn whole_numbers_are_read_as_atoi_reads_them() {
        for (text, value) in
            [("12abc", 12), ("abc", 0), ("", 0), (" -7", -7), ("+3", 3), ("99999999999999999999", i64::MAX)]
        {
            assert_eq!(leading_int(text), value, "{text:?}");
        }
    }

    /// Columns as printed by iperf3 3.12 and 3.21.
    #[test]
    fn columns_are_as_wide_as_iperf3_makes_them() {
        assert_eq!(transfer(0), "0.00 Byte");
        assert_eq!(transfer(1000), "1000 Byte");
        assert_eq!(transfer(2000), "1.95 KByte");
        assert_eq!(transfer(500_000), " 488 KByte");
        assert_eq!(transfer(5 << 20), "5.00 MByte");
        assert_eq!(transfer(50_069_504), "47.8 MByte");
        assert_eq!(bitrate(0.0, None), "0.00 bit");
        assert_eq!(bitrate(200_062_751.87, None), " 200 Mbit");
        assert_eq!(bitrate(4_004_127.9, None), "4.00 Mbit");
        assert_eq!(bitrate(31_307_325_073.05, None), "31.3 Gbit");
        assert_eq!(bitrate(9_994_000.0, None), "9.99 Mbit");
        assert_eq!(bitrate(9_996_000.0, None), "10.0 Mbit", "not 10.00");
        assert_eq!(bitrate(99_960_000.0, None), " 100 Mbit", "not 100.0");
        assert_eq!(bitrate(20_942_000_000.0, Iperf3Format::from_letter('m')), "20942 Mbit");
        assert_eq!(bitrate(4_194_304.0, Iperf3Format::from_letter('K')), " 512 KByte");
        assert_eq!(Iperf3Format::from_letter('x'), None);
    }

    #[test]
    fn general_notation_is_that_of_printf() {
        for (value, digits, text) in [
            (4.0, 2, "4"),
            (0.34, 2, "0.34"),
            (100.0, 2, "1e+02"),
            (3.996, 2, "4"),
            (99.6, 2, "1e+02"),
            (3.7e-5, 15, "3.7e-05"),
            (0.00031, 15, "0.00031"),
            (-2.5, 2, "-2.5"),
            (0.0, 2, "0"),
        ] {
            assert_eq!(general(value, digits), text);
        }
    }

    /// Numbers from JSON objects of the real program.
    #[test]
    fn json_numbers_are_those_of_the_real_program() {
        for text in
            ["67.674013216895673", "1.00107204914093", "31307325073.050613", "0", "2.001343", "3.7e-05"]
        {
            let value: f64 = text.parse().unwrap();
            assert_eq!(json_number(value), text);
        }
        assert_eq!(json_number(-1.0), "-1");
    }

    proptest::proptest! {
        #[test]
        fn json_numbers_come_back(bits: u64) {
            let value = f64::from_bits(bits);
            proptest::prop_assume!(value.is_finite());
            proptest::prop_assert_eq!(json_number(value).parse::<f64>().ok(), Some(value));
        }

        #[test]
        fn any_text_is_read_without_panic(text: String) {
            let _ = (size(&text), rate(&text), leading_int(&text), leading_float(&text));
        }

        #[test]
        fn whole_sizes_come_back(bytes in 0_u64..1 << 53) {
            proptest::prop_assert_eq!(size(&bytes.to_string()), Some(bytes));
        }
    }
}
