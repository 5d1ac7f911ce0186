//! Wire protocols as state machines without I/O.
