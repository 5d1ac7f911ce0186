//! The measuring engine: pumps, pacing, sampling, and the driver of a protocol session.
