//! Names that users choose.

/// Largest number of letters of a name.
const MAX_NAME_CHARS: usize = 32;

/// Checks a name. Names become parts of the names of files, namespaces and devices.
///
/// # Errors
/// A sentence that starts with the name.
pub fn check_name(name: &str) -> Result<(), String> {
    let small = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if name.is_empty() || !name.chars().all(|c| small(c) || c == '-') || !name.starts_with(small) {
        return Err(format!(
            "'{name}' cannot be a name; use small letters, digits and hyphens, and no hyphen first"
        ));
    }
    if name.len() > MAX_NAME_CHARS {
        return Err(format!("'{name}' has {} letters; use at most {MAX_NAME_CHARS}", name.len()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_plain() {
        for right in ["a", "trunk-2x1g", "1g"] {
            assert_eq!(check_name(right), Ok(()));
        }
        for wrong in ["", "-a", "A", "a b", "ä", "a.b", &"a".repeat(33)] {
            assert!(check_name(wrong).is_err(), "{wrong}");
        }
    }
}
