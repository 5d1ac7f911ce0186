//! The kernel's counters of packets that it could not deliver to the switch, read a few at a time.

use std::fmt;

/// How many readings it takes until every counter was read. One counter takes about ten microseconds, and no
/// frame may wait for all counters of a large lab.
const PARTS: usize = 10;

/// A counter for each interface of a host.
///
/// `G` reads one of them.
pub(super) struct DropGauges<G> {
    /// With the last known count.
    gauges: Vec<(G, u64)>,
    part: usize,
}

impl<G> DropGauges<G> {
    /// Counters that have not been read yet.
    pub(super) fn new(gauges: Vec<G>) -> Self {
        Self { gauges: gauges.into_iter().map(|gauge| (gauge, 0)).collect(), part: 0 }
    }

    /// Reads a tenth of the counters, and returns the sum of all. One that cannot be read, because its interface
    /// is gone, keeps its count.
    pub(super) fn read_part(&mut self, read: impl Fn(&G) -> Option<u64>) -> u64 {
        for (gauge, count) in self.gauges.iter_mut().skip(self.part).step_by(PARTS) {
            *count = read(gauge).unwrap_or(*count);
        }
        self.part = (self.part + 1) % PARTS;
        self.gauges.iter().map(|(_, count)| count).sum()
    }
}

impl<G> fmt::Debug for DropGauges<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DropGauges").field("gauges", &self.gauges.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn no_reading_reads_more_than_a_tenth_and_ten_read_all() {
        let mut gauges = DropGauges::new((0..95_u64).collect());
        let times: Vec<Cell<u32>> = (0..95).map(|_| Cell::new(0)).collect();
        for reading in 0..20 {
            let before: u32 = times.iter().map(Cell::get).sum();
            let sum = gauges.read_part(|&number| {
                times[number as usize].set(times[number as usize].get() + 1);
                Some(number)
            });
            let read = times.iter().map(Cell::get).sum::<u32>() - before;
            assert!((9..=10).contains(&read), "{read} counters at reading {reading}");
            if reading >= 9 {
                assert_eq!(sum, (0..95).sum::<u64>());
            }
        }
        assert!(times.iter().all(|times| times.get() == 2));
    }

    #[test]
    fn the_count_of_an_interface_that_is_gone_stays() {
        let mut gauges = DropGauges::new(vec![7]);
        assert_eq!(gauges.read_part(|&count| Some(count)), 7);
        for _ in 0..20 {
            assert_eq!(gauges.read_part(|_| None), 7);
        }
    }
}
