//! Changes while a lab runs.

use linerate_config::{ConfigContent, ConfigValue, SourcePosition, hint};

use super::direction_keys::WAY;
use super::keys::{LINK, TopologyKey};
use super::{Topology, check};
use crate::link_direction::LinkDirection;

/// A setting that cannot be changed in a running lab.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetError {
    /// No link has such a key.
    #[error("unknown key '{key}'{hint}")]
    Unknown {
        /// As typed.
        key: String,
        /// Suggestion.
        hint: String,
    },
    /// The key is fixed while the lab is up.
    #[error(
        "{key} cannot change while the lab is up; set it in the file or with --set, and start the lab again"
    )]
    Fixed {
        /// Its name.
        key: &'static str,
    },
    /// The resulting direction would be invalid.
    #[error("{0}")]
    Conflict(String),
    /// The value is invalid for this key.
    #[error("{key}: {text}")]
    Wrong {
        /// Its name.
        key: &'static str,
        /// What is wrong, and what to do.
        text: String,
    },
}

/// Sets several keys of one direction. They are checked together, so that keys which bound each other can be
/// given in any order.
///
/// # Errors
/// [`SetError`]; `direction` is then unchanged.
pub fn change_direction<'a>(
    direction: &mut LinkDirection,
    changes: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<(), SetError> {
    let mut changed = direction.clone();
    for (key, value) in changes {
        apply(&mut changed, key, value)?;
    }
    if let Some(fault) = check::direction_faults(&changed).into_iter().next() {
        return Err(SetError::Conflict(fault.text));
    }
    *direction = changed;
    Ok(())
}

fn apply(direction: &mut LinkDirection, key: &str, value: &str) -> Result<(), SetError> {
    let Some(found) = WAY.iter().find(|known| known.name == key) else {
        if let Some(fixed) = LINK.iter().find(|known| known.name == key) {
            return Err(SetError::Fixed { key: fixed.name });
        }
        let live = WAY.iter().filter(|known| known.live).map(|known| known.name);
        return Err(SetError::Unknown { key: key.to_owned(), hint: hint(key, live) });
    };
    let TopologyKey { name: key, kind, live, .. } = found;
    if !live {
        return Err(SetError::Fixed { key });
    }
    let typed = ConfigValue {
        at: SourcePosition::Override(value.to_owned()),
        content: ConfigContent::Typed(value.to_owned()),
    };
    kind.apply(direction, &typed).map_err(|refusal| SetError::Wrong { key, text: refusal.to_string() })
}

/// The target of a change: a link, or one direction of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeTarget {
    /// Name of the link.
    pub link: String,
    /// The node from which the direction leads; absent for both directions.
    pub from: Option<String>,
}

/// An invalid target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// The text has a different form.
    #[error("'{0}' does not have the form link.NAME or link.NAME.from.NODE")]
    Form(String),
    /// There is no such link.
    #[error("there is no link '{link}'{hint}")]
    NoLink {
        /// As typed.
        link: String,
        /// Suggestion.
        hint: String,
    },
    /// The link does not end at that node.
    #[error("link '{link}' does not end at '{from}'; it joins '{}' and '{}'", .ends[0], .ends[1])]
    NoEnd {
        /// The link.
        link: String,
        /// As typed.
        from: String,
        /// The nodes at its ends.
        ends: [String; 2],
    },
}

/// Reads `link.ab` or `link.ab.from.a`.
///
/// # Errors
/// [`TargetError::Form`]
pub fn parse_target(text: &str) -> Result<ChangeTarget, TargetError> {
    let parts: Vec<&str> = text.split('.').collect();
    match parts[..] {
        ["link", link] if !link.is_empty() => Ok(ChangeTarget { link: link.to_owned(), from: None }),
        ["link", link, "from", from] if !link.is_empty() && !from.is_empty() => {
            Ok(ChangeTarget { link: link.to_owned(), from: Some(from.to_owned()) })
        }
        _ => Err(TargetError::Form(text.to_owned())),
    }
}

impl ChangeTarget {
    /// Index of the link in the topology, and indices of its directions.
    ///
    /// # Errors
    /// [`TargetError::NoLink`], [`TargetError::NoEnd`]
    pub fn find(&self, topology: &Topology) -> Result<(usize, &'static [usize]), TargetError> {
        let names = || topology.links.iter().map(|link| link.name.as_str());
        let index = names().position(|name| name == self.link).ok_or_else(|| TargetError::NoLink {
            link: self.link.clone(),
            hint: hint(&self.link, names()),
        })?;
        let ends = &topology.links[index].ends;
        let directions: &[usize] = match &self.from {
            None => &[0, 1],
            Some(from) if *from == ends[0] => &[0],
            Some(from) if *from == ends[1] => &[1],
            Some(from) => {
                return Err(TargetError::NoEnd {
                    link: self.link.clone(),
                    from: from.clone(),
                    ends: ends.clone(),
                });
            }
        };
        Ok((index, directions))
    }
}
