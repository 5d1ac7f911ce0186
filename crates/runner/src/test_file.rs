//! A file as the source or the sink of a test.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::Duration;

use linerate_control::FlowFile;
use linerate_model::{SpecError, TestSpec};
use linerate_sock::{Mono, clock, files};
use linerate_units::{Bitrate, Bytes, Span};

/// For how long the disk works alone.
const ALONE: Duration = Duration::from_secs(2);
/// Bytes of a call.
const BLOCK_BYTES: usize = 128 << 10;
/// A reading that takes as long has waited for the disk.
const DISK_WAIT: Duration = Duration::from_millis(1);
/// More than any kernel reads ahead.
const MOST_READ_AHEAD: u64 = 64 << 20;
/// The most that is written to a fast disk.
const MOST_WRITTEN: u64 = 512 << 20;
/// Bytes that are written before they are made safe on the disk.
const SAFE_BYTES: usize = 16 << 20;

/// A file, and what a test sends of it or writes to it.
#[derive(Debug)]
pub struct PreparedFile {
    pub(crate) file: FlowFile,
    /// Bytes of a file that is sent.
    bytes: Option<Bytes>,
}

impl PreparedFile {
    /// The file that the test sends, or the new file that it writes. Measures for two seconds what its disk does alone.
    ///
    /// # Errors
    /// The test cannot send or write a file, or this one cannot be read or written. A file that exists is not
    /// overwritten.
    pub fn prepare(path: &Path, spec: &TestSpec) -> Result<Self, SpecError> {
        check(spec)?;
        let mut file = FlowFile::of(path);
        let fail = |done: &str, error: std::io::Error| {
            refused(format!("{} cannot be {done}: {error}", path.display()))
        };
        if spec.traffic.download {
            file.about.alone_bps = write_alone(path).map_err(|error| fail("written", error))?;
            return Ok(Self { file, bytes: None });
        }
        let (alone, bytes) = read_alone(path).map_err(|error| fail("read", error))?;
        file.about.alone_bps = alone;
        Ok(Self { file, bytes: Some(bytes) })
    }

    /// The test, with the size of a file that is sent once as its amount unless it has another one or a time.
    #[must_use]
    pub fn amount(&self, mut spec: TestSpec) -> TestSpec {
        let traffic = &mut spec.traffic;
        let open = traffic.duration.is_none() && traffic.blocks.is_none() && traffic.until.is_none();
        if open && traffic.bytes.is_none() {
            traffic.bytes = self.bytes;
        }
        spec
    }
}

fn refused(trouble: String) -> SpecError {
    let remedy = "name a file to read with --upload, or a new one to write with --download".to_owned();
    SpecError { knob: "--file", trouble, remedy }
}

/// Whether the test can send or write a file.
fn check(spec: &TestSpec) -> Result<(), SpecError> {
    let (traffic, socket) = (&spec.traffic, &spec.socket);
    let fail = |trouble: &str, remedy: &str| {
        Err(SpecError { knob: "--file", trouble: trouble.to_owned(), remedy: remedy.to_owned() })
    };
    let others = [
        (traffic.bidir, "--bidir"),
        (traffic.udp, "--udp"),
        (traffic.streams > 1, "--parallel"),
        (spec.transactions.are_made(), "--workload"),
        (socket.zerocopy, "--zerocopy"),
        (socket.io.is_some(), "--io"),
        (socket.skip_rx_copy, "--skip-rx-copy"),
    ];
    if let Some((_, knob)) = others.into_iter().find(|(given, _)| *given) {
        return fail(&format!("it cannot be combined with {knob}"), "remove one of them");
    }
    if traffic.upload == traffic.download {
        return fail("the direction is open", "add --upload to send the file, or --download to write it");
    }
    Ok(())
}

/// Reads a file from its disk for two seconds or to its end. Returns the rate and the size.
fn read_alone(path: &Path) -> std::io::Result<(Option<Bitrate>, Bytes)> {
    // A pipe would wait for a writer when it is opened.
    if !files::has_size(&std::fs::metadata(path)?) {
        return Err(std::io::Error::other("it is neither a file nor a disk"));
    }
    let mut file = File::open(path)?;
    let size = file.seek(SeekFrom::End(0))?;
    if size == 0 {
        return Err(std::io::Error::other("it is empty"));
    }
    file.rewind()?;
    files::forget_content(&file)?;
    let rate = reading_rate(&mut file)?;
    files::forget_content(&file)?;
    Ok((rate, Bytes::new(size)))
}

/// Reads a file for two seconds or to its end.
///
/// The kernel reads much more than it is asked for, so what a disk delivers arrives in parts. Counted is what lies between
/// the end of the first reading and that of a later one, with all that the disk had delivered by then.
fn reading_rate(file: &mut File) -> std::io::Result<Option<Bitrate>> {
    let mut block = vec![0; BLOCK_BYTES];
    let begun = clock::now();
    let first = file.read(&mut block)?;
    let counted_from = clock::now();
    let (mut bytes, mut last) = (0_u64, None::<(Mono, u64)>);
    loop {
        let before = clock::now();
        let read = file.read(&mut block)? as u64;
        let now = clock::now();
        match last {
            _ if read == 0 => return Ok(rate(first as u64 + bytes, now.since(begun))),
            Some((last, _)) if now.since(before) >= DISK_WAIT => {
                return Ok(rate(bytes, last.since(counted_from)));
            }
            Some((_, at_last)) if bytes - at_last >= MOST_READ_AHEAD => {
                return Ok(rate(bytes, before.since(counted_from)));
            }
            _ => bytes += read,
        }
        if last.is_none() && now.since(begun) >= ALONE {
            last = Some((now, bytes));
        }
    }
}

/// Writes a file without a name in the same folder for two seconds.
fn write_alone(path: &Path) -> std::io::Result<Option<Bitrate>> {
    if path.symlink_metadata().is_ok() {
        return Err(std::io::Error::other("it exists, and is not overwritten"));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut file = tempfile::tempfile_in(folder.unwrap_or(Path::new(".")))?;
    let (block, mut bytes) = (vec![0x5a; BLOCK_BYTES], 0);
    let begun = clock::now();
    while clock::now().since(begun) < ALONE && bytes < MOST_WRITTEN {
        for _ in 0..SAFE_BYTES / BLOCK_BYTES {
            file.write_all(&block)?;
            bytes += BLOCK_BYTES as u64;
        }
        file.sync_data()?;
    }
    Ok(rate(bytes, clock::now().since(begun)))
}

fn rate(bytes: u64, time: Duration) -> Option<Bitrate> {
    Bitrate::of(Bytes::new(bytes), Span::from_ns(u64::try_from(time.as_nanos()).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::Traffic;

    fn spec(change: impl FnOnce(&mut TestSpec)) -> TestSpec {
        let mut spec =
            TestSpec { traffic: Traffic { upload: true, ..Traffic::default() }, ..TestSpec::default() };
        change(&mut spec);
        spec
    }

    #[test]
    fn a_file_is_sent_once_unless_an_amount_or_a_time_is_given() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("image");
        std::fs::write(&path, vec![1; 300_001]).unwrap();
        let file = PreparedFile::prepare(&path, &spec(|_| ())).unwrap();
        assert_eq!(&*file.file.about.name, "image");
        assert!(file.file.about.alone_bps.is_some());
        assert_eq!(file.amount(spec(|_| ())).traffic.bytes, Some(Bytes::new(300_001)));
        let timed = spec(|spec| spec.traffic.duration = Some(Span::from_secs(1)));
        assert_eq!(file.amount(timed).traffic.bytes, None);
        let counted = spec(|spec| spec.traffic.bytes = Some(Bytes::new(7)));
        assert_eq!(file.amount(counted).traffic.bytes, Some(Bytes::new(7)));
    }

    #[test]
    fn a_new_file_is_tried_and_removed_and_an_old_one_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("received");
        let download = spec(|spec| (spec.traffic.upload, spec.traffic.download) = (false, true));
        let file = PreparedFile::prepare(&path, &download).unwrap();
        assert!(file.file.about.alone_bps.is_some() && !path.exists());
        assert_eq!(file.amount(download.clone()).traffic.bytes, None);
        std::fs::write(&path, "precious").unwrap();
        let error = PreparedFile::prepare(&path, &download).unwrap_err().to_string();
        assert!(error.contains("received cannot be written: it exists, and is not overwritten"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    }

    #[test]
    fn what_cannot_be_sent_or_written_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let empty = folder.path().join("empty");
        std::fs::write(&empty, "").unwrap();
        let error = |path: &Path, spec: &TestSpec| PreparedFile::prepare(path, spec).unwrap_err().to_string();
        assert!(error(&empty, &spec(|_| ())).contains("it is empty"));
        assert!(error(folder.path(), &spec(|_| ())).contains("neither a file nor a disk"));
        assert!(error(Path::new("/dev/zero"), &spec(|_| ())).contains("neither a file nor a disk"));
        assert!(error(&folder.path().join("none"), &spec(|_| ())).contains("No such file"));
        std::fs::write(&empty, "full").unwrap();
        assert!(error(&empty, &spec(|spec| spec.traffic.upload = false)).contains("add --upload"));
        assert!(error(&empty, &spec(|spec| spec.traffic.bidir = true)).contains("--bidir"));
        assert!(error(&empty, &spec(|spec| spec.traffic.streams = 2)).contains("--parallel"));
        assert!(error(&empty, &spec(|spec| spec.traffic.udp = true)).contains("--udp"));
        assert!(error(&empty, &spec(|spec| spec.socket.zerocopy = true)).contains("--zerocopy"));
    }
}
