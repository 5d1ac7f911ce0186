//! A plan as a report for a ticket.

use linerate_model::PlanRecord;

use super::text::{heading, sections};
use super::{method, rows};
use crate::markdown::{escaped, table};

/// The plan as Markdown: the table, the assertions, what is missing, and the plan file.
#[must_use]
pub fn markdown(record: &PlanRecord) -> String {
    let mut pieces = heading(record).into_iter();
    let mut out = format!("# {}\n", escaped(&pieces.next().unwrap_or_default()));
    for piece in pieces {
        out += &format!("\n{}\n", escaped(&piece));
    }
    if let Some(rows) = rows::table(record) {
        out += &format!("\n{}", table(&rows.texts()));
    }
    out.extend(record.tables.iter().map(method::section));
    for (title, remarks) in sections(record) {
        out += &if title.is_empty() { "\n".to_owned() } else { format!("\n## {title}\n\n") };
        for (_, text) in remarks {
            out += &format!("- {}\n", escaped(&text));
        }
    }
    out += &format!("\n## Run\n\n- run: {}\n", escaped(&record.run));
    for file in record.start.iter().flat_map(|start| &start.files) {
        out += &format!("\n## {}\n\n", escaped(&file.name));
        // No content of a file can end an indented code block.
        out.extend(file.text.as_str().lines().map(|line| format!("    {}\n", line.replace('\t', " "))));
    }
    out
}
