//! How fast a network really is, how fast it could be, and what holds it back.
