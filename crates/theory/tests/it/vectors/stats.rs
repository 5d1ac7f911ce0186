//! Statistics.

use linerate_theory::stats::{change, order, rank, series, spread};
use serde_json::{Value, json};

use super::{FormulaCall, Inputs, number};

fn median_ranks(i: &Inputs<'_>) -> Option<Value> {
    let ranks = order::median_ranks(i.count("n")? as usize, i.number("conf")?)?;
    Some(json!({ "l": ranks.lower, "u": ranks.upper, "coverage": ranks.coverage }))
}

fn mann_whitney(i: &Inputs<'_>) -> Option<Value> {
    let outcome = rank::mann_whitney(&i.list("x")?, &i.list("y")?)?;
    Some(json!({ "U": outcome.u, "p": outcome.p }))
}

fn shift_interval(i: &Inputs<'_>) -> Option<Value> {
    let found = rank::shift_interval(&i.list("x")?, &i.list("y")?, i.number("conf")?)?;
    let interval = found.interval;
    Some(json!({ "lo": interval.low, "hi": interval.high, "coverage": interval.coverage, "k": found.rank }))
}

fn pettitt(i: &Inputs<'_>) -> Option<Value> {
    let found = change::pettitt(&i.list("x")?)?;
    Some(json!({ "K": found.statistic, "first_index_after": found.first_after, "p": found.approximation }))
}

pub(crate) const ROWS: &[FormulaCall] = &[
    ("largest l with P(l<=Bin(n,1/2)<=n-l) >= 0.95; CI=[x(l),x(n+1-l)]", median_ranks),
    ("exact permutation Mann-Whitney, two-sided, ties 1/2", mann_whitney),
    ("median of pairwise differences x-y", |i| number(rank::shift(&i.list("x")?, &i.list("y")?))),
    ("ordered differences k and nm+1-k, exact MW null", shift_interval),
    ("n*(1-r)/(1+r)", |i| number(series::effective_samples(i.number("n")?, i.number("r")?))),
    ("t quantile", |i| number(series::student_quantile(i.number("df")?, i.number("conf")?))),
    ("1.4826*median|x-median|", |i| number(spread::robust_sigma(&i.list("x")?))),
    ("(sum x)^2/(n sum x^2)", |i| number(spread::jain(&i.list("x")?))),
    ("max_t |sum sign(x_j-x_i)|, p=2exp(-6K^2/(n^3+n^2))", pettitt),
];
