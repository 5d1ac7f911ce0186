//! Parser for output of iperf 2: the text of both ends, classic and enhanced (`-e`), and `-y C`; 2.0.x to 2.2.

mod csv;
mod notes;
mod text;

pub(crate) use csv::Csv;
pub(crate) use text::Iperf2TextReader;

use std::collections::BTreeMap;

use linerate_model::import::{ClaimScope, ForeignTest};

/// Detects the line that covers the whole test, because the program does not mark it.
///
/// A line that begins at 0 is the total, unless another line of the same connection follows.
#[derive(Debug, Default)]
struct TotalLineFinder<K> {
    last: BTreeMap<K, usize>,
}

impl<K: Ord> TotalLineFinder<K> {
    /// The scope of a line that begins at `from`; its claim will be number `at` of the test.
    fn scope(&mut self, test: &mut ForeignTest, key: K, from: f64, at: usize) -> ClaimScope {
        if let Some(earlier) = self.last.remove(&key).and_then(|earlier| test.claims.get_mut(earlier)) {
            earlier.scope = ClaimScope::Interval;
        }
        if from > 0.0 {
            return ClaimScope::Interval;
        }
        self.last.insert(key, at);
        ClaimScope::Total
    }
}
