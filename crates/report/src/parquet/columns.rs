//! The columns of the table of samples: schema, encoding, content and description, each declared once.

use std::io::Write;
use std::sync::Arc;

use ::parquet::basic::{Encoding, LogicalType, Repetition, Type as PhysicalType};
use ::parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterPropertiesBuilder;
use ::parquet::file::writer::{SerializedColumnWriter, SerializedRowGroupWriter};
use ::parquet::schema::types::{ColumnPath, Type};

use super::{SAMPLES_SCHEMA, SampleRow, SampleSeries};

/// A column.
pub(super) struct SampleColumn {
    pub(super) name: &'static str,
    content: CellContent,
    /// Whether it may be null.
    optional: bool,
    /// What it contains, for the reference.
    about: &'static str,
}

/// What a column contains of each row, and so its type.
enum CellContent {
    Text(fn(&SampleSeries) -> Option<&ByteArray>),
    Number(fn(&SampleSeries) -> Option<i64>),
    Time(fn(&SampleRow) -> i64),
    Flag(fn(&SampleRow) -> bool),
    Value(fn(&SampleRow) -> f64),
}

/// All columns.
pub(super) const COLUMNS: [SampleColumn; 14] = [
    SampleColumn {
        name: "run",
        content: CellContent::Text(|series| Some(&series.run)),
        optional: false,
        about: "The id of the run; in the table of a plan, of the run of the trial.",
    },
    SampleColumn {
        name: "point",
        content: CellContent::Text(|series| series.point.as_ref()),
        optional: true,
        about: "The id of the point of the plan. The table of the plan's results (`--format csv`) has its values.",
    },
    SampleColumn {
        name: "trial",
        content: CellContent::Number(|series| series.trial),
        optional: true,
        about: "The repeat of the point, from 0. The steps of a search at a point have one number; `run` tells them \
                apart.",
    },
    SampleColumn {
        name: "plan_flow",
        content: CellContent::Text(|series| series.plan_flow.as_ref()),
        optional: true,
        about: "The name of the flow in the plan, whose run this is.",
    },
    SampleColumn {
        name: "flow",
        content: CellContent::Number(|series| series.flow),
        optional: true,
        about: "The number of the flow in its run, from 0. Null for a port while several flows ran.",
    },
    SampleColumn {
        name: "flow_name",
        content: CellContent::Text(|series| Some(&series.flow_name)),
        optional: false,
        about: "The name of the flow: its direction. For a port the flows that ran, joined by `+`.",
    },
    SampleColumn {
        name: "side",
        content: CellContent::Text(|series| Some(&series.side)),
        optional: false,
        about: "Who counted: `sender`, `receiver`, or `port` for a port of an emulated network.",
    },
    SampleColumn {
        name: "port",
        content: CellContent::Text(|series| series.port.as_ref()),
        optional: true,
        about: "The port: its own node and the node that it sends to, as `a>s`.",
    },
    SampleColumn {
        name: "t_ns",
        content: CellContent::Time(|row| row.t_ns),
        optional: false,
        about: "Start of the interval, nanoseconds. For a sender or receiver from the first byte of that side, for a \
                port from the start of the run. The JSON result has the time from the start of the run to the \
                receiver's first byte as `first_read_ns`.",
    },
    SampleColumn {
        name: "t_end_ns",
        content: CellContent::Time(|row| row.t_end_ns),
        optional: false,
        about: "End of the interval, on the same clock.",
    },
    SampleColumn {
        name: "outside",
        content: CellContent::Flag(|row| row.outside),
        optional: false,
        about: "Whether the interval is outside the measured part: omitted at the start, or the tail.",
    },
    SampleColumn {
        name: "metric",
        content: CellContent::Text(|series| Some(&series.metric)),
        optional: false,
        about: "The name of the [metric](metrics.md).",
    },
    SampleColumn {
        name: "value",
        content: CellContent::Value(|row| row.value),
        optional: false,
        about: "What was read, in the unit. Counts up to 2^53 (9 007 199 254 740 992) are exact, larger ones rounded \
                to 53 bits. A counter is the amount of one interval, so that is 9 PB or 104 days in an interval; the \
                event log (`--format jsonl`) has every count exactly.",
    },
    SampleColumn {
        name: "unit",
        content: CellContent::Text(|series| series.unit.as_ref()),
        optional: true,
        about: "The unit of the value: `bytes`, `bit/s`, `ns`, `ratio`, or `1` for a count. Null for a metric that \
                only a newer version knows.",
    },
];

/// The table of columns as a page of the reference.
#[must_use]
pub fn reference() -> String {
    let mut text = format!(
        "# Samples as Parquet\n\n`linerate export --format parquet` writes this table, version `{SAMPLES_SCHEMA}`: one \
         row for each reading of each sample, as it was measured, without merging intervals. Rows are in the order \
         of the runs; those of one metric of a side are in the order of time. What was not measured has no row. Later \
         versions with the same number may add columns. This page is written by `cargo xtask gen`.\n\n| Column | Type | Null | Content |\n|---|---|---|---|\n"
    );
    for column in &COLUMNS {
        let kind = match column.content {
            CellContent::Text(_) => "string",
            CellContent::Number(_) | CellContent::Time(_) => "int64",
            CellContent::Flag(_) => "bool",
            CellContent::Value(_) => "double",
        };
        let null = if column.optional { "may be" } else { "never" };
        text.push_str(&format!("| `{}` | {kind} | {null} | {} |\n", column.name, column.about));
    }
    text.push_str(
        "\n`point`, `trial` and `plan_flow` are null for a run that is not part of a plan.\n\n## Metadata\n\nThe \
         file's key-value metadata:\n\n| Key | Value |\n|---|---|\n",
    );
    for (key, about) in METADATA {
        text.push_str(&format!("| `linerate.{key}` | {about} |\n"));
    }
    text
}

/// Keys of the metadata, and their descriptions.
pub(super) const METADATA: [(&str, &str); 8] = [
    ("schema", "Version of the table."),
    ("run", "The id of the run or plan."),
    ("version", "The version of linerate that measured."),
    ("started_at", "When it started, RFC 3339."),
    ("target", "The server, as typed; absent for a plan."),
    ("plan", "The name of the plan; absent for a run."),
    (
        "missing_runs",
        "Runs of the plan that are no longer in the archive, separated by commas; absent if there are none.",
    ),
    ("log_sha256", "SHA-256 of the event log, as `linerate export --format jsonl` prints it."),
];

/// The schema of the file.
pub(super) fn schema() -> Result<Type, ParquetError> {
    let fields = COLUMNS.iter().map(|column| {
        let (physical, logical) = match column.content {
            CellContent::Text(_) => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
            CellContent::Number(_) | CellContent::Time(_) => (PhysicalType::INT64, None),
            CellContent::Flag(_) => (PhysicalType::BOOLEAN, None),
            CellContent::Value(_) => (PhysicalType::DOUBLE, None),
        };
        let repetition = if column.optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let field = Type::primitive_type_builder(column.name, physical);
        Ok(Arc::new(field.with_logical_type(logical).with_repetition(repetition).build()?))
    });
    let fields = fields.collect::<Result<Vec<_>, ParquetError>>()?;
    Type::group_type_builder("linerate_samples").with_fields(fields).build()
}

/// How columns are encoded before they are compressed. Texts have dictionaries by default.
pub(super) fn encodings(mut properties: WriterPropertiesBuilder) -> WriterPropertiesBuilder {
    for column in &COLUMNS {
        let encoding = match column.content {
            CellContent::Text(_) => continue,
            CellContent::Number(_) => Encoding::DELTA_BINARY_PACKED,
            // The metrics of a block share its times, which compression finds as the same bytes: 0.2 bytes a row in
            // tests over loopback. Differences (DELTA_BINARY_PACKED) take 1.5, as ticks are late by random
            // microseconds, and as packing moves the repeated times to other bits.
            CellContent::Time(_) => Encoding::PLAIN,
            CellContent::Flag(_) => Encoding::RLE,
            // Sign and exponent of the values of a series hardly change, and are compressed apart from the rest.
            CellContent::Value(_) => Encoding::BYTE_STREAM_SPLIT,
        };
        let path = ColumnPath::from(column.name);
        properties = properties.set_column_encoding(path.clone(), encoding);
        properties = properties.set_column_dictionary_enabled(path, false);
    }
    properties
}

/// Rows that are given to a column at once: bounds the memory of their texts.
const BATCH_ROWS: usize = 1 << 14;

/// Writes a row group.
pub(super) fn write<W: Write + Send>(
    series: &[SampleSeries],
    rows: &[SampleRow],
    group: &mut SerializedRowGroupWriter<'_, W>,
) -> Result<(), ParquetError> {
    for column in &COLUMNS {
        let Some(mut out) = group.next_column()? else { break };
        for rows in rows.chunks(BATCH_ROWS) {
            column.write(series, rows, &mut out)?;
        }
        out.close()?;
    }
    Ok(())
}

impl SampleColumn {
    fn write(
        &self,
        series: &[SampleSeries],
        rows: &[SampleRow],
        out: &mut SerializedColumnWriter<'_>,
    ) -> Result<(), ParquetError> {
        match self.content {
            CellContent::Text(of) => {
                let cells: Vec<Option<&ByteArray>> = rows.iter().map(|row| of(&series[row.series])).collect();
                let (texts, levels) = present(&cells);
                let texts: Vec<ByteArray> = texts.into_iter().cloned().collect();
                out.typed::<ByteArrayType>().write_batch(&texts, self.levels(&levels), None)
            }
            CellContent::Number(of) => {
                let cells: Vec<Option<i64>> = rows.iter().map(|row| of(&series[row.series])).collect();
                let (numbers, levels) = present(&cells);
                out.typed::<Int64Type>().write_batch(&numbers, self.levels(&levels), None)
            }
            CellContent::Time(of) => {
                let times: Vec<i64> = rows.iter().map(of).collect();
                out.typed::<Int64Type>().write_batch(&times, None, None)
            }
            CellContent::Flag(of) => {
                let flags: Vec<bool> = rows.iter().map(of).collect();
                out.typed::<BoolType>().write_batch(&flags, None, None)
            }
            CellContent::Value(of) => {
                let values: Vec<f64> = rows.iter().map(of).collect();
                out.typed::<DoubleType>().write_batch(&values, None, None)
            }
        }
        .map(drop)
    }

    /// The definition levels, which only optional columns have.
    fn levels<'l>(&self, levels: &'l [i16]) -> Option<&'l [i16]> {
        self.optional.then_some(levels)
    }
}

/// The cells that are not null, and for each cell whether it is one of them, as 1 or 0.
fn present<T: Copy>(cells: &[Option<T>]) -> (Vec<T>, Vec<i16>) {
    (cells.iter().flatten().copied().collect(), cells.iter().map(|cell| i16::from(cell.is_some())).collect())
}
