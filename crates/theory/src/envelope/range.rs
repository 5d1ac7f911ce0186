//! Quantities that are known only as ranges.

/// One value, or a range that contains it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ValueRange<T> {
    low: T,
    high: T,
}

impl<T: Copy + PartialOrd> ValueRange<T> {
    /// The range between two values; `None` if `high` is below `low` or the two cannot be compared.
    #[must_use]
    pub fn between(low: T, high: T) -> Option<Self> {
        (low <= high).then_some(Self { low, high })
    }

    /// The value, or both ends of the range.
    #[must_use]
    pub fn ends(self) -> Vec<T> {
        if self.low == self.high { vec![self.low] } else { vec![self.low, self.high] }
    }
}

impl<T: Copy> From<T> for ValueRange<T> {
    fn from(value: T) -> Self {
        Self { low: value, high: value }
    }
}

/// All combinations of the ends of ranges: each element of `all` with each value of `more`.
pub(super) fn combined<A: Clone, T: Copy>(all: Vec<A>, more: &[T], with: impl Fn(A, T) -> A) -> Vec<A> {
    let each = |one: A| more.iter().map(|value| with(one.clone(), *value)).collect::<Vec<_>>();
    all.into_iter().flat_map(each).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_two_ends_and_a_value_one() {
        assert_eq!(ValueRange::from(21).ends(), [21]);
        assert_eq!(ValueRange::between(20, 25).unwrap().ends(), [20, 25]);
        assert_eq!(ValueRange::between(20, 20).unwrap().ends(), [20]);
        assert_eq!(ValueRange::between(25, 20), None);
        assert_eq!(ValueRange::between(1.0, f64::NAN), None);
    }

    #[test]
    fn two_ranges_have_four_corners() {
        let push = |mut all: Vec<i32>, value| {
            all.push(value);
            all
        };
        let corners = combined(vec![Vec::new()], &[1, 2], push);
        let corners = combined(corners, &[3, 4], push);
        assert_eq!(corners, [[1, 3], [1, 4], [2, 3], [2, 4]]);
    }
}
