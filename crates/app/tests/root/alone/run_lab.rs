//! A method whose result is known in advance.
