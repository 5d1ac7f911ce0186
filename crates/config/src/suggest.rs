//! Suggests the known name that is most similar to a mistyped one.

/// Longer names get no suggestion; the time to compare grows with their length.
const MAX_TYPED_CHARS: usize = 64;

/// `; did you mean 'delay'?`, or `; known are …` if no name is similar; empty without known names.
#[must_use]
pub fn hint<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let letters = typed.chars().count();
    // One mistake per three letters is allowed, but fewer mistakes than letters.
    let allowed = (letters / 3).max(1).min(letters.saturating_sub(1));
    let near = known
        .iter()
        // Each additional letter is a mistake.
        .filter(|name| letters <= MAX_TYPED_CHARS && name.chars().count().abs_diff(letters) <= allowed)
        .map(|name| (strsim::damerau_levenshtein(typed, name), *name))
        .filter(|(distance, _)| *distance <= allowed)
        .min();
    match near {
        Some((_, name)) => format!("; did you mean '{name}'?"),
        None if known.is_empty() => String::new(),
        None => format!("; known are {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_a_stranger_is_not() {
        let known = ["delay", "rate", "mtu"];
        assert_eq!(hint("dealy", known), "; did you mean 'delay'?");
        assert_eq!(hint("mtus", known), "; did you mean 'mtu'?");
        assert_eq!(hint("colour", known), "; known are delay, rate, mtu");
        assert_eq!(hint("colour", []), "");
        assert_eq!(hint("c", ["a", "b"]), "; known are a, b");
    }
}
