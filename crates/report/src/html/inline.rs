//! Foreign text inside a page: it cannot end the element that contains it.

use std::io::{self, Write};

use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;
use flate2::Compression;
use flate2::write::GzEncoder;
use linerate_model::Event;

use crate::ndjson;

/// JSON for a `script` element. These characters occur only inside strings, where they may be escaped.
pub(super) fn json(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 64);
    for c in text.chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            c => out.push(c),
        }
    }
    out
}

/// A script for a `script` element. The end tag can only be part of a string, where the backslash has no
/// effect. The start of a comment may also be code, where the space has no effect.
pub(super) fn script(text: &str) -> String {
    text.replace("</script", "<\\/script").replace("<!--", "< !--")
}

/// A style sheet for a `style` element.
pub(super) fn style(text: &str) -> String {
    text.replace("</", "<\\/")
}

/// Writes an event log as JSON lines, compressed with gzip and encoded as base64.
pub(super) fn log(events: &[Event], out: &mut dyn Write) -> io::Result<()> {
    let letters = EncoderWriter::new(out, &STANDARD);
    let mut packed = io::BufWriter::with_capacity(1 << 16, GzEncoder::new(letters, Compression::fast()));
    for event in events {
        ndjson::write(event, &mut packed).map_err(io::Error::other)?;
    }
    let packer = packed.into_inner().map_err(io::IntoInnerError::into_error)?;
    packer.finish()?.finish()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples_of_runs as runs;
    use base64::Engine as _;
    use std::io::Read as _;

    #[test]
    fn json_stays_the_same_value_without_markup() {
        let value = serde_json::json!({ "</script><!--": ["<b>&amp;", "\u{2028}\u{2029}"], "n": 1.5 });
        let text = json(&value.to_string());
        assert!(!text.contains(['<', '>', '&', '\u{2028}', '\u{2029}']), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }

    #[test]
    fn code_cannot_end_its_element() {
        assert_eq!(script("a='</script>';b<!--c;d</e/.f"), "a='<\\/script>';b< !--c;d</e/.f");
        assert_eq!(style("a{content:'</style>'}"), "a{content:'<\\/style>'}");
    }

    #[test]
    fn a_log_comes_out_as_it_went_in() {
        let events = runs::tcp_run();
        let mut out = Vec::new();
        log(&events, &mut out).unwrap();
        let packed = STANDARD.decode(&out).unwrap();
        let mut text = String::new();
        flate2::read::GzDecoder::new(packed.as_slice()).read_to_string(&mut text).unwrap();
        assert_eq!(ndjson::read(&text).unwrap(), events);
    }
}
