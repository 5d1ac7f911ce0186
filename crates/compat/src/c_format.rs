//! The number formats of C that Rust does not have.

/// `%.{digits}g`: this number of significant digits, without trailing zeros, and with an exponent if that is
/// shorter.
///
/// # Source
/// ISO C11 §7.21.6.1, conversion `g`
pub(crate) fn general(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return if value.is_nan() { "nan".to_owned() } else { format!("{value}") };
    }
    let digits = digits.clamp(1, 17);
    let scientific = format!("{value:.*e}", digits - 1);
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= digits as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", without_zeros(mantissa), exponent.abs());
    }
    let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
    without_zeros(&format!("{value:.decimals$}")).to_owned()
}

fn without_zeros(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_writes_what_printf_writes() {
        // Values from printf(1) with %g and %.2g.
        for (value, digits, text) in [
            (0.0, 6, "0"),
            (0.01015, 6, "0.01015"),
            (403_546.8, 6, "403547"),
            (3_228_374.4, 6, "3.22837e+06"),
            (0.000_012_345, 6, "1.2345e-05"),
            (999_999.5, 6, "1e+06"),
            (32_032.0, 6, "32032"),
            (0.55, 2, "0.55"),
            (12.345, 2, "12"),
            (100.0, 2, "1e+02"),
            (0.117, 2, "0.12"),
        ] {
            assert_eq!(general(value, digits), text);
        }
    }
}
