//! Lists of bounded length, which are refused before they are in memory.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Processes before it that an agent names at most.
pub(super) const MAX_PREVIOUS: usize = 64;
/// Runs that have begun in one report at most.
pub const MAX_BEGUN: usize = 64;
/// Runs of one calendar at most, and what they measure. A coordinator hands out 1,100.
pub(super) const MAX_RUNS: usize = 2048;

/// A list of at most `MOST` items.
pub(super) fn list<'de, D, T, const MOST: usize>(from: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    from.deserialize_seq(BoundedList::<T, MOST>(PhantomData))
}

struct BoundedList<T, const MOST: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for BoundedList<T, MOST> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {MOST}")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<T>, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            if list.len() == MOST {
                return Err(A::Error::invalid_length(MOST + 1, &self));
            }
            list.push(item);
        }
        Ok(list)
    }
}
