//! Guards that keep every public formula inside its domain.

/// `value` if it is finite.
pub(crate) fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

/// `value` if it is finite and above zero.
pub(crate) fn positive(value: f64) -> Option<f64> {
    (value.is_finite() && value > 0.0).then_some(value)
}

/// `value` if it is finite and not below zero.
pub(crate) fn not_negative(value: f64) -> Option<f64> {
    (value.is_finite() && value >= 0.0).then_some(value)
}

/// `value` if it is strictly between 0 and 1.
pub(crate) fn open_unit(value: f64) -> Option<f64> {
    (value > 0.0 && value < 1.0).then_some(value)
}

/// `value` if it is between 0 and 1, both included.
pub(crate) fn unit(value: f64) -> Option<f64> {
    (0.0..=1.0).contains(&value).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guards_refuse_what_is_not_a_number() {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(finite(bad), None);
            assert_eq!(positive(bad), None);
            assert_eq!(not_negative(bad), None);
            assert_eq!(open_unit(bad), None);
            assert_eq!(unit(bad), None);
        }
        assert_eq!(positive(0.0), None);
        assert_eq!(not_negative(0.0), Some(0.0));
        assert_eq!(open_unit(1.0), None);
        assert_eq!(unit(1.0), Some(1.0));
    }
}
