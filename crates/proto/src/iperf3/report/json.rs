//! JSON as iperf3 writes it: its layout (tabs, objects of an array on one line with their brackets) and its numbers.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

use crate::iperf3::numbers::json_number;

/// A whole object over many lines, as `-J` prints it, with a newline at its end.
pub(super) fn pretty(object: &impl Serialize) -> String {
    written(object, Tabs::default()) + "\n"
}

/// A whole object on one line, as `--json-stream` prints it, without a newline.
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
    /// Something stands in the object that is being written.
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
