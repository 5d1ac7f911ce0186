//! Exact quantities: bit rates, byte counts, times and ratios.
