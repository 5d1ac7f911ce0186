//! The text files of the workspace, read once for all checks.

use std::fs;
use std::path::{Path, PathBuf};

use crate::rust_text::RustText;

/// Folders without text of ours: build products, version control, downloads, fuzzer output.
const SKIPPED: &[&str] =
    &[".git", ".bench", "target", "node_modules", "dist", "demo-report", "corpus", "artifacts"];

/// One text file, its path relative to the workspace root with `/` between the parts.
pub(crate) struct SourceFile {
    pub(crate) path: String,
    pub(crate) text: String,
    /// The views of a Rust file; absent for other files.
    pub(crate) rust: Option<RustText>,
    /// Whether the file contains only tests: `tests.rs`, anything in a `tests` folder, modules under
    /// `#[cfg(test)]`.
    pub(crate) is_test: bool,
}

impl SourceFile {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let rust = path.ends_with(".rs").then(|| RustText::new(text));
        // Examples are for readers, who use the standard library.
        let is_test = ["/tests/", "/examples/"].iter().any(|folder| path.contains(folder))
            || path.ends_with("/tests.rs");
        Self { path: path.to_owned(), text: text.to_owned(), rust, is_test }
    }

    /// The crate of a file under `crates/`, for instance `sock`.
    pub(crate) fn crate_name(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }
}

/// All text files, ordered by path.
pub(crate) struct Tree {
    pub(crate) files: Vec<SourceFile>,
}

impl Tree {
    /// Reads every text file below `root`. Files that are not UTF-8 are skipped as data.
    pub(crate) fn read(root: &Path) -> Result<Self, String> {
        let mut paths = Vec::new();
        collect(root, &mut paths)?;
        paths.sort();
        let mut files = Vec::new();
        for path in paths {
            let bytes = fs::read(&path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
            let (Ok(text), Ok(relative)) = (String::from_utf8(bytes), path.strip_prefix(root)) else {
                continue;
            };
            files.push(SourceFile::new(&relative.to_string_lossy(), &text));
        }
        Ok(Self::with_tests_marked(files))
    }

    /// Marks the files of modules that another file declares under `#[cfg(test)]`.
    fn with_tests_marked(mut files: Vec<SourceFile>) -> Self {
        let declared =
            files.iter().filter_map(|file| Some((module_folder(&file.path)?, file.rust.as_ref()?)));
        let test_files: Vec<String> = declared
            .flat_map(|(folder, rust)| {
                rust.test_modules().into_iter().map(move |name| format!("{folder}/{name}"))
            })
            .collect();
        for file in &mut files {
            let stem = file.path.strip_suffix(".rs").unwrap_or(&file.path);
            let belongs = |module: &String| {
                stem.strip_prefix(module.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            file.is_test |= test_files.iter().any(belongs);
        }
        Self { files }
    }

    /// A tree of literal samples.
    #[cfg(test)]
    pub(crate) fn of(samples: &[(&str, &str)]) -> Self {
        Self::with_tests_marked(samples.iter().map(|(path, text)| SourceFile::new(path, text)).collect())
    }

    pub(crate) fn file(&self, path: &str) -> Option<&SourceFile> {
        self.files.iter().find(|file| file.path == path)
    }

    pub(crate) fn rust_files(&self) -> impl Iterator<Item = (&SourceFile, &RustText)> {
        self.files.iter().filter_map(|file| Some((file, file.rust.as_ref()?)))
    }
}

/// The folder of the modules declared in a Rust file: its own for `lib.rs`, `main.rs` and `mod.rs`, otherwise
/// the one with its name.
fn module_folder(path: &str) -> Option<&str> {
    let stem = path.strip_suffix(".rs")?;
    let (folder, name) = stem.rsplit_once('/')?;
    Some(if matches!(name, "lib" | "main" | "mod") { folder } else { stem })
}

/// The workspace root: the parent of this package's folder, which cargo provides.
pub(crate) fn root() -> Result<PathBuf, String> {
    let package = std::env::var_os("CARGO_MANIFEST_DIR")
        .ok_or("not started by cargo: type `cargo xtask`, in the workspace")?;
    let parent = Path::new(&package).parent();
    parent.map(Path::to_owned).ok_or_else(|| "this package has no parent folder".to_owned())
}

fn collect(folder: &Path, into: &mut Vec<PathBuf>) -> Result<(), String> {
    let fail = |e| format!("cannot list {}: {e}", folder.display());
    for entry in fs::read_dir(folder).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let kind = entry.file_type().map_err(fail)?;
        let name = entry.file_name();
        // In a linked working tree `.git` is a file.
        if SKIPPED.iter().any(|skipped| name == *skipped) {
            continue;
        }
        if kind.is_dir() {
            collect(&entry.path(), into)?;
        } else if kind.is_file() {
            into.push(entry.path());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_this_workspace_and_skips_build_products() {
        let tree = Tree::read(&root().unwrap()).unwrap();
        assert!(tree.file("Cargo.toml").is_some());
        assert!(tree.file("xtask/src/tree.rs").is_some_and(|file| file.rust.is_some()));
        assert!(tree.files.iter().all(|file| !file.path.starts_with("target/")));
        assert!(tree.files.iter().all(|file| file.path != ".git" && !file.path.starts_with(".git/")));
    }

    #[test]
    fn knows_the_room_and_the_tests() {
        let file = SourceFile::new("crates/sock/src/open.rs", "");
        assert_eq!(file.crate_name(), Some("sock"));
        assert!(!file.is_test);
        assert!(SourceFile::new("crates/sock/tests/pair.rs", "").is_test);
        assert!(SourceFile::new("crates/proto/src/native/tests.rs", "").is_test);
        assert_eq!(SourceFile::new("xtask/src/main.rs", "").crate_name(), None);
    }

    #[test]
    fn modules_under_cfg_test_are_tests_wherever_they_lie() {
        let tree = Tree::of(&[
            ("crates/a/src/lib.rs", "mod b;\n#[cfg(test)]\nmod samples;\n"),
            ("crates/a/src/b.rs", "#[cfg(test)]\nmod cases;\n#[cfg(test)]\nmod tests { fn a() {} }\n"),
            ("crates/a/src/b/cases.rs", ""),
            ("crates/a/src/cases.rs", ""),
            ("crates/a/src/samples.rs", ""),
            ("crates/a/src/samples/more.rs", ""),
            ("crates/a/src/samples_of_wire.rs", ""),
        ]);
        let tests: Vec<&str> =
            tree.files.iter().filter(|file| file.is_test).map(|file| file.path.as_str()).collect();
        assert_eq!(
            tests,
            ["crates/a/src/b/cases.rs", "crates/a/src/samples.rs", "crates/a/src/samples/more.rs"]
        );
    }
}
