//! Files that people write: TOML as a tree in which every key and value knows its position.
//!
//! [`parse`] turns a text into a [`ConfigTable`]. A reader collects every error in [`Mistakes`], each with its
//! [`SourcePosition`], and continues. [`hint`] suggests the most similar known name. Topologies and plans are
//! read this way.
//!
//! ```
//! let mut mistakes = linerate_config::Mistakes::default();
//! let table = linerate_config::parse("[link]\ndeley = \"10ms\"\n", 0, &mut mistakes).unwrap();
//! for entry in &table.table("link").unwrap().0 {
//!     let hint = linerate_config::hint(&entry.key, ["rate", "delay"]);
//!     mistakes.add(&entry.at, format!("'{}' is unknown{hint}", entry.key));
//! }
//! assert_eq!(mistakes.in_order()[0].text, "'deley' is unknown; did you mean 'delay'?");
//! ```

mod bundled;
mod mistake;
mod name;
mod option_file;
mod suggest;
mod tree;

pub use bundled::Bundled;
pub use mistake::{FileMistakes, LineIndex, Mistake, Mistakes, SourcePosition};
pub use name::{NameError, check_name};
pub use option_file::{ConfiguredOption, OptionKind, read_options};
pub use suggest::hint;
pub use tree::{ConfigContent, ConfigEntry, ConfigTable, ConfigValue, MAX_FILE_BYTES, parse};
