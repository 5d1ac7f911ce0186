//! Evaluates expressions such as `1e9*1460/1538`, with brackets and `sqrt`.

/// The value of a text that must be a complete expression.
pub(crate) fn value(text: &str) -> f64 {
    let mut rest = text;
    let value = sum(&mut rest);
    assert!(rest.trim().is_empty(), "{text}: what is {rest:?}?");
    value
}

fn sum(rest: &mut &str) -> f64 {
    let mut value = product(rest);
    loop {
        if eat(rest, "+") {
            value += product(rest);
        } else if eat(rest, "-") {
            value -= product(rest);
        } else {
            return value;
        }
    }
}

fn product(rest: &mut &str) -> f64 {
    let mut value = atom(rest);
    loop {
        if eat(rest, "*") {
            value *= atom(rest);
        } else if eat(rest, "/") {
            value /= atom(rest);
        } else {
            return value;
        }
    }
}

fn atom(rest: &mut &str) -> f64 {
    if eat(rest, "sqrt") {
        return atom(rest).sqrt();
    }
    if eat(rest, "(") {
        let value = sum(rest);
        assert!(eat(rest, ")"), "a bracket is open before {rest:?}");
        return value;
    }
    let text = rest.trim_start();
    let exponent = |at: usize| text[..at].ends_with('e');
    let end = text
        .char_indices()
        .find(|(at, c)| !(c.is_ascii_digit() || ".e".contains(*c) || (*c == '-' && exponent(*at))))
        .map_or(text.len(), |(at, _)| at);
    let (number, after) = text.split_at(end);
    *rest = after;
    number.parse().unwrap_or_else(|_| panic!("no number: {number:?} before {after:?}"))
}

fn eat(rest: &mut &str, what: &str) -> bool {
    let Some(after) = rest.trim_start().strip_prefix(what) else { return false };
    *rest = after;
    true
}

#[test]
fn sums_are_read_as_people_do() {
    assert!((value("1 + 2*3 - (4-2)/2") - 6.0).abs() < 1e-12);
    assert!((value("sqrt(1.5/1e-4)") - 122.474_487).abs() < 1e-6);
}
