//! What the commands that keep an archive small print.

use linerate_units::Bytes;

use crate::history::{RunRow, history_table};
use crate::layout::TextLayout;
use crate::text_flow::plural;

/// Where an archive is, the number of its runs, and its size on the disk.
#[must_use]
pub fn archive_info(location: &str, runs: u64, size: Bytes) -> String {
    format!("{location}\n{}, {size}\n", plural(runs, "run"))
}

/// The runs that were removed from an archive, or would be.
#[derive(Debug)]
pub struct PruneReport<'a> {
    /// The whole runs among them.
    pub rows: &'a [RunRow],
    /// Number of removed runs, those of plans included; absent if none was removed, only listed.
    pub removed: Option<u64>,
    /// Number of runs that the archive has now.
    pub left: u64,
}

impl PruneReport<'_> {
    /// The runs as a list, and their number.
    #[must_use]
    pub fn text(&self, view: &TextLayout) -> String {
        let left = plural(self.left, "run");
        match self.removed {
            _ if self.rows.is_empty() => format!("nothing to remove; the archive has {left}\n"),
            Some(removed) => format!("removed {}; the archive has {left}\n", plural(removed, "run")),
            None => {
                let listed = self.rows.len();
                let table = history_table(self.rows, view);
                format!("{table}would remove {listed} of {left}, plans with their runs\n")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_what_would_be_removed_is_no_removal() {
        let rows = [RunRow { run: "7f3a".into(), ..RunRow::default() }];
        let text = |removed| PruneReport { rows: &rows, removed, left: 4 }.text(&TextLayout::default());
        assert!(
            text(None).contains("7f3a")
                && text(None).ends_with("would remove 1 of 4 runs, plans with their runs\n")
        );
        assert_eq!(text(Some(3)), "removed 3 runs; the archive has 4 runs\n");
        let nothing = PruneReport { rows: &[], removed: Some(0), left: 1 };
        assert_eq!(nothing.text(&TextLayout::default()), "nothing to remove; the archive has 1 run\n");
        assert_eq!(archive_info("/a.sqlite", 12, Bytes::new(2 << 20)), "/a.sqlite\n12 runs, 2 MiB\n");
    }
}
