//! When a certificate expires: the one field that is read of it here (RFC 5280, section 4.1).

/// Tags of DER.
const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// The end of a certificate's validity, in RFC 3339 format; absent if it is not found.
pub(crate) fn not_after(der: &[u8]) -> Option<String> {
    let (_, certificate, _) = element(der)?;
    let (_, mut rest, _) = element(certificate)?;
    // The version is optional; serial number, algorithm and issuer precede the validity.
    if rest.first() == Some(&VERSION) {
        rest = element(rest)?.2;
    }
    for _ in 0..3 {
        rest = element(rest)?.2;
    }
    let (SEQUENCE, validity, _) = element(rest)? else { return None };
    let (_, _, after) = element(validity)?;
    let (tag, time, _) = element(after)?;
    time_text(tag, std::str::from_utf8(time).ok()?)
}

/// The tag and content of the first element, and what follows it.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
        // A certificate has less than 16 MiB.
        let length =
            (bytes.len() <= 3).then(|| bytes.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)))?;
        (length, rest)
    };
    let (content, after) = rest.split_at_checked(length)?;
    Some((tag, content, after))
}

/// `YYMMDDHHMMSSZ` or `YYYYMMDDHHMMSSZ` in RFC 3339 format.
fn time_text(tag: u8, text: &str) -> Option<String> {
    let digits = text.strip_suffix('Z').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
    let digits = match (tag, digits.len()) {
        (GENERALIZED_TIME, 14) => digits.to_owned(),
        // RFC 5280: years from 50 are of the last century.
        (UTC_TIME, 12) => format!("{}{digits}", if digits < "50" { "20" } else { "19" }),
        _ => return None,
    };
    let part = |from: usize| digits.get(from..from + 2).unwrap_or_default();
    let (century, year) = (part(0), part(2));
    Some(format!("{century}{year}-{}-{}T{}:{}:{}Z", part(4), part(6), part(8), part(10), part(12)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_times_are_read() {
        assert_eq!(time_text(UTC_TIME, "261126041000Z").as_deref(), Some("2026-11-26T04:10:00Z"));
        assert_eq!(time_text(UTC_TIME, "500101000000Z").as_deref(), Some("1950-01-01T00:00:00Z"));
        assert_eq!(time_text(GENERALIZED_TIME, "40960101000000Z").as_deref(), Some("4096-01-01T00:00:00Z"));
        for (tag, wrong) in
            [(UTC_TIME, "20261126041000Z"), (GENERALIZED_TIME, "2026112604100Z"), (2, "261126041000Z")]
        {
            assert_eq!(time_text(tag, wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_end_of_a_certificate_is_found_and_bytes_that_are_none_are_no_panic() {
        let key = rcgen::KeyPair::generate().unwrap();
        for (year, text) in [(2031, "2031-05-06T00:00:00Z"), (2077, "2077-05-06T00:00:00Z")] {
            let mut params = rcgen::CertificateParams::new(vec!["a".to_owned()]).unwrap();
            params.not_after = rcgen::date_time_ymd(year, 5, 6);
            let der = params.self_signed(&key).unwrap().der().to_vec();
            assert_eq!(not_after(&der).as_deref(), Some(text));
            for cut in 0..der.len() {
                let _ = not_after(&der[..cut]);
                let mut changed = der.clone();
                changed[cut] ^= 0xff;
                let _ = not_after(&changed);
            }
        }
    }
}
