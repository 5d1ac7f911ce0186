//! The sizes of a sweep.

use linerate_compat::netpipe::NetpipeSizes;
use linerate_model::Sweep;

/// The sizes in ascending order, without duplicates and none above the largest message.
pub(super) fn sizes(sweep: &Sweep) -> Vec<u64> {
    let (from, to) = (sweep.from.get(), sweep.to.get());
    let mut sizes = match (&sweep.sizes, sweep.points_per_octave) {
        (Some(list), _) => list.0.iter().map(|size| size.get()).collect(),
        (None, Some(points)) => even(from, to, points),
        (None, None) => {
            let mut sizes = NetpipeSizes::new(from, to, sweep.perturb);
            // The sizes must not depend on how fast the messages are.
            std::iter::from_fn(|| sizes.next(0.0)).collect()
        }
    };
    sizes.retain(|size| (1..=Sweep::MAX_BYTES).contains(size));
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// Sizes from `from` to `to`, with `points` sizes per doubling.
fn even(from: u64, to: u64, points: u32) -> Vec<u64> {
    let size = |step: u32| (from as f64 * (f64::from(step) / f64::from(points.max(1))).exp2()).round() as u64;
    (0..).map(size).take_while(|size| *size <= to).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::SizeList;
    use linerate_units::Bytes;

    #[test]
    fn without_a_request_they_are_those_of_netpipe() {
        // From a capture of NPtcp 3.7.2 (fixtures of its stand-in): pairs 3 * 2^k and 2^(k+1) with their
        // neighbours.
        let known = [1, 2, 3, 4, 6, 8, 12, 13, 16, 19, 21, 24, 27, 29, 32, 35, 45, 48, 51, 61, 64, 67];
        let found = sizes(&Sweep { to: Bytes::new(64), ..Sweep::default() });
        assert_eq!(found, known);
        assert_eq!(sizes(&Sweep::default()).last(), Some(&((8 << 20) + 3)));
    }

    #[test]
    fn even_ones_double_after_so_many_and_a_list_is_taken_as_it_is() {
        let even = Sweep { points_per_octave: Some(2), to: Bytes::new(16), ..Sweep::default() };
        // Powers of the root of 2, rounded: 1, 1.41, 2, 2.83, 4, 5.66, 8, 11.3, 16.
        assert_eq!(sizes(&even), [1, 2, 3, 4, 6, 8, 11, 16]);
        let list = SizeList([5, 1, 5].map(Bytes::new).to_vec());
        assert_eq!(sizes(&Sweep { sizes: Some(list), ..Sweep::default() }), [1, 5]);
    }

    #[test]
    fn nothing_is_larger_than_the_largest_message() {
        let largest = Bytes::new(Sweep::MAX_BYTES);
        let found = sizes(&Sweep { from: largest, to: largest, ..Sweep::default() });
        assert_eq!(found, [Sweep::MAX_BYTES - 3, Sweep::MAX_BYTES]);
    }
}
