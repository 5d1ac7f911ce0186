//! A value that is not known exactly: a range.

/// Separator of the two ends of a range.
const RANGE_SEPARATOR: &str = "..";

/// A typed quantity: one value, or the ends of a range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Between<T> {
    low: T,
    high: T,
}

impl<T: Copy + PartialEq> Between<T> {
    /// The value, or both ends.
    pub(super) fn ends(self) -> Vec<T> {
        if self.low == self.high { vec![self.low] } else { vec![self.low, self.high] }
    }
}

/// Parses `20ms` or `20ms..25ms` with `parse` for each end; for `value_parser`.
pub(super) fn between<T: Copy + PartialOrd + 'static>(
    parse: fn(&str) -> Result<T, String>,
) -> impl Fn(&str) -> Result<Between<T>, String> + Clone + Send + Sync + 'static {
    move |text| {
        let Some((low, high)) = text.split_once(RANGE_SEPARATOR) else {
            let value = parse(text)?;
            return Ok(Between { low: value, high: value });
        };
        let (low, high) = (parse(low)?, parse(high)?);
        if low > high {
            return Err("the end of the range is below its start; give the smaller value first".to_owned());
        }
        Ok(Between { low, high })
    }
}

/// All combinations of the ends of ranges: each element of `all` with each value of `more`.
pub(super) fn combined<A: Clone, T: Copy>(all: Vec<A>, more: &[T], with: impl Fn(A, T) -> A) -> Vec<A> {
    let each = |one: A| more.iter().map(|value| with(one.clone(), *value)).collect::<Vec<_>>();
    all.into_iter().flat_map(each).collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::path_values::round_trip;
    use super::*;
    use linerate_units::Span;

    #[test]
    fn a_range_has_two_ends_and_a_value_one() {
        let read = between(round_trip);
        assert_eq!(read("21ms").unwrap().ends(), [Span::from_ms(21)]);
        assert_eq!(read("20ms..25ms").unwrap().ends(), [Span::from_ms(20), Span::from_ms(25)]);
        assert_eq!(read("20ms..20ms").unwrap().ends().len(), 1);
        for wrong in ["25ms..20ms", "20ms..", "..20ms", "20ms...25ms", "20ms..0", "20ms..2h"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn two_ranges_have_four_corners() {
        let corners = combined(vec![Vec::new()], &[1, 2], |mut all, value| {
            all.push(value);
            all
        });
        let corners = combined(corners, &[3, 4], |mut all, value| {
            all.push(value);
            all
        });
        assert_eq!(corners, [[1, 3], [1, 4], [2, 3], [2, 4]]);
    }
}
