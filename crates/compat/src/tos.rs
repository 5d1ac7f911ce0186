//! The type-of-service byte on command lines: a number, or one of the names that several tools share.

/// Parses a decimal, octal or hexadecimal number, or a name; absent if it is neither.
///
/// # Source
/// RFC 2474, RFC 2597, RFC 3246 and RFC 8622 for the classes; RFC 1349 for the three old names
pub(crate) fn byte(text: &str) -> Option<u8> {
    let lower = text.to_ascii_lowercase();
    let number = match lower.strip_prefix("0x") {
        Some(hex) => u8::from_str_radix(hex, 16).ok(),
        None if lower.len() > 1 && lower.starts_with('0') => u8::from_str_radix(&lower, 8).ok(),
        None => lower.parse().ok(),
    };
    let class = |prefix: &str, highest: u8| {
        let digits = lower.strip_prefix(prefix)?;
        digits.parse::<u8>().ok().filter(|class| *class <= highest && digits.len() <= 2)
    };
    number.or_else(|| match lower.as_str() {
        "ef" => Some(46 << 2),
        "le" => Some(1 << 2),
        "lowdelay" => Some(0x10),
        "throughput" => Some(0x08),
        "reliability" => Some(0x04),
        _ => class("cs", 7).map(|class| class << 5).or_else(|| {
            let (class, precedence) = class("af", 43).map(|class| (class / 10, class % 10))?;
            let valid = (1..=4).contains(&class) && (1..=3).contains(&precedence);
            valid.then_some((class * 8 + precedence * 2) << 2)
        }),
    })
}
