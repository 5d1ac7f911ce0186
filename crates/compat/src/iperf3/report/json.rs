//! JSON in the layout of iperf3 (tabs; the objects of an array share lines with their brackets) and with its
//! numbers.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

use crate::iperf3::numbers::json_number;

/// Formats an object over many lines with a final newline, like `-J`.
pub(super) fn pretty(object: &impl Serialize) -> String {
    written(object, Tabs::default()) + "\n"
}

/// Formats an object on one line without a newline, like `--json-stream`.
pub(super) fn compact(object: &impl Serialize) -> String {
    written(object, OneLine)
}

fn written(object: &impl Serialize, layout: impl Formatter) -> String {
    let mut bytes = Vec::new();
    // Writing to memory cannot fail, and every key here is a string.
    let _ = object.serialize(&mut Serializer::with_formatter(&mut bytes, layout));
    String::from_utf8(bytes).unwrap_or_default()
}

struct OneLine;

impl Formatter for OneLine {
    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        writer.write_all(json_number(value).as_bytes())
    }
}

/// The layout of cJSON_Print.
#[derive(Default)]
struct Tabs {
    depth: usize,
    /// Whether the object being written already has a member.
    filled: bool,
}

impl Tabs {
    fn indent<W: ?Sized + Write>(&self, writer: &mut W) -> io::Result<()> {
        writer.write_all("\t".repeat(self.depth).as_bytes())
    }
}

impl Formatter for Tabs {
    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        writer.write_all(json_number(value).as_bytes())
    }

    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth += 1;
        writer.write_all(b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth -= 1;
        writer.write_all(b"]")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        writer.write_all(if first { b"" } else { b", " })
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth += 1;
        self.filled = false;
        writer.write_all(b"{\n")
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth -= 1;
        if self.filled {
            writer.write_all(b"\n")?;
        }
        self.indent(writer)?;
        writer.write_all(b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        writer.write_all(if first { b"" } else { b",\n" })?;
        self.indent(writer)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b":\t")
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.filled = true;
        Ok(())
    }
}
