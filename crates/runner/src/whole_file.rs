//! Files that are never seen half written.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use linerate_sock::files::{give_to_owner_of, only_for_owner};

/// Writes a file; an existing file is replaced only when the new one is complete. A device or a pipe is written to, and
/// of a symbolic link that to which it points.
///
/// # Errors
/// It cannot be created, written or renamed; nothing of a file is left then.
pub fn whole_file(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let create = |part: &Path| File::create(part);
    match path.metadata() {
        Ok(found) if found.is_file() => replace(&path.canonicalize()?, create, write),
        Ok(_) => {
            let mut out = io::BufWriter::new(OpenOptions::new().write(true).open(path)?);
            write(&mut out).and_then(|()| out.flush())
        }
        Err(_) => replace(path, create, write),
    }
}

/// As [`whole_file`], for a file that only its owner may read: that of the file before, or of the folder, which is made
/// if it is missing. So root can write it for the user of a service.
///
/// # Errors
/// As [`whole_file`].
pub fn whole_private_file(path: &Path, content: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)?;
    }
    let owner = [Some(path), path.parent()].into_iter().flatten().find_map(|path| path.metadata().ok());
    let create = |part: &Path| {
        // One that was left by a killed process could have another mode.
        let _ = std::fs::remove_file(part);
        let file = only_for_owner(OpenOptions::new().write(true).create_new(true)).open(part)?;
        if let Some(owner) = owner {
            give_to_owner_of(&file, &owner);
        }
        Ok(file)
    };
    replace(path, create, |out| out.write_all(content))
}

/// As [`whole_private_file`], for what must also survive a power failure.
///
/// # Errors
/// It cannot be written, or not for certain.
pub fn lasting_private_file(path: &Path, content: &[u8]) -> io::Result<()> {
    let part = path.with_extension("new");
    whole_private_file(&part, content)?;
    File::open(&part)?.sync_all()?;
    std::fs::rename(&part, path)?;
    match path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

fn replace(
    path: &Path,
    create: impl FnOnce(&Path) -> io::Result<File>,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    let part = path.with_file_name(name);
    let mut out = io::BufWriter::new(create(&part)?);
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
    use std::io::Read;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

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

    #[test]
    fn a_device_stays_a_device_and_a_link_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        std::fs::write(&file, "old").unwrap();
        symlink(&file, &link).unwrap();
        whole_file(&link, |out| out.write_all(b"new")).unwrap();
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(std::fs::read(&file).unwrap(), b"new");
        // Where it points to the device, whose folder only root could change.
        let null = folder.path().join("null");
        symlink("/dev/null", &null).unwrap();
        whole_file(&null, |out| out.write_all(b"nothing")).unwrap();
        assert!(null.symlink_metadata().unwrap().is_symlink() && !null.metadata().unwrap().is_file());
        assert!(whole_file(folder.path(), |out| out.write_all(b"x")).is_err(), "a folder");
    }

    #[test]
    fn what_reads_from_a_pipe_gets_all_of_it() {
        let (mut reader, writer) = io::pipe().unwrap();
        let path = format!("/proc/self/fd/{}", linerate_sock::handle::number(&writer));
        whole_file(Path::new(&path), |out| out.write_all(b"report")).unwrap();
        drop(writer);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "report");
    }

    #[test]
    fn a_private_file_is_for_its_owner_whatever_was_there_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        std::fs::write(&path, "old").unwrap();
        std::fs::write(folder.path().join("tokens.part"), "left by a killed process").unwrap();
        whole_private_file(&path, b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_private_file_keeps_its_owner_and_a_new_one_has_that_of_the_folder() {
        const NOBODY: u32 = 65_534;
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (folder.path().join("old"), folder.path().join("new"));
        std::fs::write(&old, "old").unwrap();
        let own = old.metadata().unwrap().uid();
        // Only root may give files away.
        let given = chown(&old, Some(NOBODY), None).is_ok();
        whole_private_file(&old, b"1").unwrap();
        whole_private_file(&new, b"1").unwrap();
        assert_eq!(new.metadata().unwrap().uid(), own);
        assert_eq!(old.metadata().unwrap().uid(), if given { NOBODY } else { own });
        if given {
            std::fs::remove_file(&new).unwrap();
            chown(folder.path(), Some(NOBODY), None).unwrap();
            whole_private_file(&new, b"1").unwrap();
            assert_eq!(new.metadata().unwrap().uid(), NOBODY);
        }
    }
}
