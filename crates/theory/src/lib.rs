//! Formulas, statistics and the rules that turn evidence into a verdict.
