//! Parser for output of iperf3: JSON (`-J`, `--json-stream`) and the text of both ends, 3.1 to 3.21.

mod document;
mod record;
mod stream;
mod text;

pub(crate) use document::{is_document, read};
pub(crate) use stream::Iperf3StreamReader;
pub(crate) use text::Iperf3TextReader;
