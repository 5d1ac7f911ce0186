//! Names that users choose.

/// Largest number of letters of a name.
const MAX_NAME_CHARS: usize = 32;

/// Why a text cannot be a name; the message begins with the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// It is empty, begins with a hyphen or has other characters.
    #[error(
        "'{0}' cannot be a name; use lower-case letters, digits and hyphens, and do not begin with a \
             hyphen"
    )]
    Characters(String),
    /// It is too long.
    #[error("'{0}' has {length} characters; use at most {MAX_NAME_CHARS}", length = .0.len())]
    Length(String),
}

/// Checks a name. Names become parts of the names of files, namespaces and devices.
///
/// # Errors
/// A sentence that starts with the name.
pub fn check_name(name: &str) -> Result<(), NameError> {
    let small = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if name.is_empty() || !name.chars().all(|c| small(c) || c == '-') || !name.starts_with(small) {
        return Err(NameError::Characters(name.to_owned()));
    }
    if name.len() > MAX_NAME_CHARS {
        return Err(NameError::Length(name.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_plain() {
        for right in ["a", "lag-2x1g", "1g"] {
            assert_eq!(check_name(right), Ok(()));
        }
        for wrong in ["", "-a", "A", "a b", "ä", "a.b", &"a".repeat(33)] {
            assert!(check_name(wrong).is_err(), "{wrong}");
        }
    }
}
