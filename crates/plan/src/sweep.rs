//! The combinations of the axes' values that are points.

use std::collections::BTreeSet;

use linerate_config::{ConfigContent, ConfigEntry, ConfigValue, Mistakes, SourcePosition, hint};

use crate::axis::{Axis, PointSelection};
use crate::kind::texts;

/// Largest number of points in a plan, before exclusions.
pub const MAX_POINTS: usize = 20_000;

/// Largest number of `exclude` tables: each is compared with every point.
const MAX_EXCLUDED: usize = 1000;

/// The combinations of a plan's axes, less those excluded.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Grid {
    /// Groups of axes that advance together, and their number of values. The last one varies fastest.
    dimensions: Vec<(Vec<usize>, usize)>,
    /// Indices of the combinations that are points.
    kept: Vec<usize>,
}

impl Grid {
    /// Reads `zip` and `exclude`, and counts. Empty on an error.
    pub(crate) fn read(
        axes: &[Axis],
        changed: &BTreeSet<String>,
        zip: Option<&ConfigEntry>,
        exclude: Option<&ConfigEntry>,
        mistakes: &mut Mistakes,
    ) -> Self {
        let groups = zip.map(|entry| read_zip(axes, changed, entry, mistakes)).unwrap_or_default();
        let mut dimensions: Vec<(Vec<usize>, usize)> = Vec::new();
        for (number, axis) in axes.iter().enumerate() {
            match groups.iter().find(|group| group.contains(&number)) {
                // The first axis of a group represents all of them.
                Some(group) if group[0] == number => dimensions.push((group.clone(), axis.values.len())),
                Some(_) => {}
                None => dimensions.push((vec![number], axis.values.len())),
            }
        }
        let total = dimensions.iter().try_fold(1_usize, |total, (_, count)| total.checked_mul(*count));
        if total.is_none_or(|total| total > MAX_POINTS) {
            let counts: Vec<String> =
                axes.iter().map(|axis| format!("{} of {}", axis.values.len(), axis.name)).collect();
            let total = total.map_or_else(|| "too many".to_owned(), |total| total.to_string());
            let text = format!(
                "the axes make {total} points ({}), but at most {MAX_POINTS} are allowed; remove values, or \
                 use zip",
                counts.join(" x ")
            );
            mistakes.add(&SourcePosition::START, text);
            return Self::default();
        }
        let mut grid = Self { dimensions, kept: (0..total.unwrap_or(0)).collect() };
        if let Some(entry) = exclude {
            grid.leave_out(axes, changed, entry, mistakes);
        }
        grid
    }

    fn leave_out(
        &mut self,
        axes: &[Axis],
        changed: &BTreeSet<String>,
        entry: &ConfigEntry,
        mistakes: &mut Mistakes,
    ) {
        let ConfigContent::List(tables) = &entry.value.content else {
            mistakes.add(
                &entry.value.at,
                "exclude: write a list of tables such as [{ length = \"64K\", streams = 16 }]",
            );
            return;
        };
        if tables.len() > MAX_EXCLUDED {
            let text = format!("exclude: {} tables; at most {MAX_EXCLUDED} are allowed", tables.len());
            mistakes.add(&entry.value.at, format!("{text}; a value may be a list of values"));
            return;
        }
        let before = mistakes.len();
        for value in tables {
            let ConfigContent::Table(table) = &value.content else {
                let what = value.content.describe();
                mistakes
                    .add(&value.at, format!("exclude: {what} is not a table such as {{ length = \"64K\" }}"));
                continue;
            };
            // An exclusion about values that the command line removed is ignored.
            let void = table.0.iter().any(|entry| changed.contains(&entry.key));
            let mut found = Mistakes::default();
            let part = PointSelection::read(table, axes, &mut found);
            if !found.is_empty() {
                if !void {
                    mistakes.append(found);
                }
                continue;
            }
            let count = self.kept.len();
            let kept: Vec<usize> =
                self.kept.iter().copied().filter(|number| !part.holds(&self.choice_of(*number))).collect();
            if kept.len() == count && !void {
                mistakes.add(&value.at, "exclude: no point matches this; remove it, or correct its values");
            }
            self.kept = kept;
        }
        if self.kept.is_empty() && mistakes.len() == before {
            mistakes.add(&entry.at, "exclude: this excludes every point; keep at least one");
        }
    }

    /// Number of points.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// Whether there are no points.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Indices of the values of a point, one per axis; `None` if there is no such point.
    #[must_use]
    pub fn choice(&self, point: usize) -> Option<Vec<usize>> {
        self.kept.get(point).map(|number| self.choice_of(*number))
    }

    /// Index of the point with these values; `None` if it is excluded or does not exist.
    #[must_use]
    pub fn find(&self, choice: &[usize]) -> Option<usize> {
        let mut number = 0_usize;
        for (axes, count) in &self.dimensions {
            let value = *choice.get(*axes.first()?)?;
            if value >= *count || axes.iter().any(|axis| choice.get(*axis) != Some(&value)) {
                return None;
            }
            number = number * count + value;
        }
        self.kept.binary_search(&number).ok()
    }

    fn choice_of(&self, mut number: usize) -> Vec<usize> {
        let mut choice = vec![0; self.dimensions.iter().map(|(axes, _)| axes.len()).sum()];
        for (axes, count) in self.dimensions.iter().rev() {
            for axis in axes {
                choice[*axis] = number % count;
            }
            number /= count;
        }
        choice
    }
}

/// The groups of axes that advance together, as indices in ascending order.
fn read_zip(
    axes: &[Axis],
    changed: &BTreeSet<String>,
    entry: &ConfigEntry,
    mistakes: &mut Mistakes,
) -> Vec<Vec<usize>> {
    let groups: Vec<&ConfigValue> = match &entry.value.content {
        // A single group may be written without the outer list.
        ConfigContent::List(items) if items.iter().all(|item| item.text().is_some()) => vec![&entry.value],
        ConfigContent::List(items) => items.iter().collect(),
        ConfigContent::Typed(_) => vec![&entry.value],
        other => {
            let what = other.describe();
            mistakes.add(
                &entry.value.at,
                format!("zip: {what} is not a list such as [[\"length\", \"streams\"]]"),
            );
            return Vec::new();
        }
    };
    let mut used = BTreeSet::new();
    let mut read = Vec::new();
    for value in groups {
        let names = match texts(value) {
            Ok(names) => names,
            Err(text) => {
                mistakes.add(&value.at, format!("zip: {text}"));
                continue;
            }
        };
        let (mut group, mut gone) = (Vec::new(), 0);
        for name in &names {
            match axes.iter().position(|axis| axis.name == *name) {
                Some(number) if !used.insert(number) => {
                    mistakes.add(&value.at, format!("zip: axis '{name}' occurs twice"));
                }
                Some(number) => group.push(number),
                None if changed.contains(name) => gone += 1,
                None => {
                    let hint = hint(name, axes.iter().map(|axis| axis.name.as_str()));
                    mistakes.add(&value.at, format!("zip: there is no axis '{name}'{hint}"));
                }
            }
        }
        group.sort_unstable();
        let counts: BTreeSet<usize> = group.iter().map(|axis| axes[*axis].values.len()).collect();
        if names.len() < 2 {
            mistakes.add(&value.at, "zip: name at least two axes");
        } else if counts.len() > 1 {
            let counts: Vec<String> = group
                .iter()
                .map(|axis| format!("{} has {}", axes[*axis].name, axes[*axis].values.len()))
                .collect();
            let text = format!(
                "zip: {} values; axes that advance together need the same number of values",
                counts.join(", ")
            );
            mistakes.add(&value.at, text);
        } else if group.len() > 1 && group.len() + gone == names.len() {
            read.push(group);
        }
    }
    read
}
