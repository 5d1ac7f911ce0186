//! Runs written by hand, for the tests of every format.
