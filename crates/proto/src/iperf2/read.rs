//! What iperf 2 wrote, read again: the text of both ends, classic and enhanced (`-e`), and `-y C`; 2.0.x to 2.2.

mod csv;
mod notes;
mod text;

pub(crate) use csv::Csv;
pub(crate) use text::Text;

use std::collections::BTreeMap;

use linerate_model::import::{ForeignTest, Scope};

/// Finds out which line covers the whole: the program does not tell intervals and the total apart.
///
/// A line from 0 is the total, until another line of the same connection comes after it.
#[derive(Debug, Default)]
struct Totals<K> {
    last: BTreeMap<K, usize>,
}

impl<K: Ord> Totals<K> {
    /// What the line covers that begins at `from`; the claim will be number `at` of the test.
    fn scope(&mut self, test: &mut ForeignTest, key: K, from: f64, at: usize) -> Scope {
        if let Some(earlier) = self.last.remove(&key).and_then(|earlier| test.claims.get_mut(earlier)) {
            earlier.scope = Scope::Interval;
        }
        if from > 0.0 {
            return Scope::Interval;
        }
        self.last.insert(key, at);
        Scope::Total
    }
}
