//! The formats of archives, and the migrations from each to the next.

#[cfg(feature = "postgres")]
pub(crate) mod postgres;
pub(crate) mod sqlite;

/// The newest format: the number of the last migration.
pub(crate) const FORMAT: u32 = 6;
