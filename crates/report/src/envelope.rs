//! The document of `linerate envelope`: what a described path can carry, and what it needs for that.
//!
//! ```
//! use linerate_report::page::Page;
//! use linerate_report::envelope::{EnvelopeDocument, text};
//! use linerate_theory::envelope::{PathDescription, Questions, answers};
//! use linerate_units::{Bitrate, Span};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut path = PathDescription::of_link("1G".parse::<Bitrate>()?);
//! path.rtt = Some(Span::from_ms(20).into());
//! let answers = answers(&path, &Questions::default())?;
//! let json = serde_json::to_string_pretty(&EnvelopeDocument::of(&answers)?)?;
//! assert!(json.contains(r#""schema": "linerate.envelope/2""#));
//! assert!(text(Page::new(80, false), &answers).starts_with("Link of 1.000 Gb/s, round trip 20 ms"));
//! # Ok(())
//! # }
//! ```

mod document;
mod sheet;
mod text;

pub use document::EnvelopeDocument;
pub use text::text;
