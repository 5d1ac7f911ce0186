//! Storage of this host's calibration, and how it is measured.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use linerate_control::{ControlError, calibrate};
use linerate_model::{CALIBRATION_SCHEMA, Calibration};

use crate::{CancelToken, now};

/// The environment variable with another file name; empty for no file.
const FILE_VARIABLE: &str = "LINERATE_CALIBRATION";

/// A calibration has some kilobytes; a longer file is not one.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The file: `linerate/calibration.json` in the user's state directory (`$XDG_STATE_HOME`, otherwise
/// `~/.local/state`), unless the environment variable is set. Absent if there is no such directory.
#[must_use]
pub fn path() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os(FILE_VARIABLE) {
        return (!named.is_empty()).then(|| named.into());
    }
    let strategy = etcetera::choose_base_strategy().ok()?;
    // Systems without a state directory use the data directory.
    let folder = strategy.state_dir().unwrap_or_else(|| strategy.data_dir());
    // A relative HOME would resolve against the working directory; the archive reports that.
    folder.is_absolute().then(|| folder.join("linerate").join("calibration.json"))
}

/// A stored calibration that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error(
    "the calibration {} is not used: {reason}; linerate doctor --calibrate makes a new one",
    file.display()
)]
pub struct CalibrationError {
    /// The file.
    pub file: PathBuf,
    reason: String,
}

/// The calibration of this host; absent if there is none.
///
/// # Errors
/// The file cannot be read, or is not a calibration of this version.
pub fn stored() -> Result<Option<Box<Calibration>>, CalibrationError> {
    let Some(file) = path() else { return Ok(None) };
    match read(&file) {
        Ok(found) => Ok(found.map(Box::new)),
        Err(reason) => Err(CalibrationError { file, reason }),
    }
}

fn read(path: &Path) -> Result<Option<Calibration>, String> {
    let length = match fs::metadata(path) {
        Ok(found) => found.len(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    if length > MAX_FILE_BYTES {
        return Err(format!("it has {length} bytes"));
    }
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let found: Calibration = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    if found.schema != CALIBRATION_SCHEMA {
        return Err(format!("its format is '{}', this version reads {CALIBRATION_SCHEMA}", found.schema));
    }
    Ok(Some(found))
}

/// Measures the limits of this host, for about ten seconds, and stores them. Returns the file too. `report` gets what
/// is measured next, as a text for the user.
///
/// # Errors
/// The calibration failed or could not be stored, or it was cancelled.
pub fn measure(
    cancel: &CancelToken,
    report: &mut dyn FnMut(&str),
) -> Result<(Calibration, PathBuf), ControlError> {
    let found = calibrate(now(), cancel.flag(), report)?;
    let file = save(&found)
        .map_err(|error| ControlError::Local(format!("the calibration could not be saved: {error}")))?;
    Ok((found, file))
}

/// Atomically replaces the stored calibration; returns its path.
///
/// # Errors
/// There is no directory for it, or it is not writable.
fn save(calibration: &Calibration) -> io::Result<PathBuf> {
    let nowhere = || {
        io::Error::new(ErrorKind::NotFound, format!("no home directory, and {FILE_VARIABLE} names no file"))
    };
    let path = path().ok_or_else(nowhere)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder {
        fs::create_dir_all(folder)?;
    }
    let text = serde_json::to_string_pretty(calibration).map_err(io::Error::other)?;
    let mut written = path.clone().into_os_string();
    written.push(format!(".{}", std::process::id()));
    let put = fs::write(&written, text + "\n").and_then(|()| fs::rename(&written, &path));
    if put.is_err() {
        let _ = fs::remove_file(&written);
    }
    put.map(|()| path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, text: &str) -> Result<Option<Calibration>, String> {
        let path = std::env::temp_dir().join(format!("linerate-calibration-{}-{name}", std::process::id()));
        fs::write(&path, text).map_err(|error| error.to_string())?;
        let found = read(&path);
        let _ = fs::remove_file(&path);
        found
    }

    #[test]
    fn a_file_without_data_on_this_host_is_not_used() {
        assert_eq!(read(Path::new("/no/such/folder/calibration.json")), Ok(None));
        let known = of("known", r#"{"schema":"linerate.calibration/1","cores":2}"#);
        assert_eq!(known.map(|found| found.map(|found| found.cores)), Ok(Some(2)));
        for (name, text) in [("none", ""), ("half", r#"{"schema":"linerate.cal"#), ("list", "[]")] {
            assert!(of(name, text).is_err(), "{text}");
        }
        let newer = of("newer", r#"{"schema":"linerate.calibration/2"}"#);
        assert!(newer.as_ref().is_err_and(|why| why.contains("calibration/2")), "{newer:?}");
        let long = of("long", &" ".repeat((MAX_FILE_BYTES + 1) as usize));
        assert!(long.as_ref().is_err_and(|why| why.contains("bytes")), "{long:?}");
    }
}
