//! Files that are never seen half written.

use std::io::{self, Write};
use std::path::Path;

/// Writes a file; an existing file is replaced only when the new one is complete.
///
/// # Errors
/// It cannot be created, written or renamed; nothing of it is left then.
pub fn whole_file(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    let part = path.with_file_name(name);
    let mut out = io::BufWriter::new(std::fs::File::create(&part)?);
    let written = write(&mut out).and_then(|()| out.flush());
    drop(out);
    let result = written.and_then(|()| std::fs::rename(&part, path));
    if result.is_err() {
        let _ = std::fs::remove_file(&part);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_only_by_a_complete_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.txt");
        whole_file(&path, |out| out.write_all(b"old")).unwrap();
        let failed = whole_file(&path, |out| {
            out.write_all(b"new, cut")?;
            Err(io::Error::other("the source is gone"))
        });
        assert!(failed.is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left of it");
    }
}
