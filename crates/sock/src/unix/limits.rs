//! Limits on open files, and thus on connections, and on threads.

use std::io;

use super::call::check;
use crate::SockError;

/// Limits on the open files of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenFiles {
    /// The limit in force.
    pub soft: u64,
    /// Largest value to which `soft` can be raised without privileges.
    pub hard: u64,
}

/// Reads the limit of open files.
///
/// # Errors
/// None is expected: the arguments are always valid.
pub fn open_files() -> Result<OpenFiles, SockError> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes one rlimit to `limit`.
    check("read the limit of open files", unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) })?;
    Ok(OpenFiles { soft: limit.rlim_cur, hard: limit.rlim_max })
}

/// Raises the limit to `needed` open files if it is lower; returns the limit in force.
///
/// # Errors
/// The hard limit is lower; the message contains both numbers and how to raise it.
pub fn raise_open_files(needed: u64) -> Result<u64, SockError> {
    const OP: &str = "raise the limit of open files";
    let now = open_files()?;
    if needed <= now.soft {
        return Ok(now.soft);
    }
    let limit = libc::rlimit { rlim_cur: needed, rlim_max: now.hard.max(needed) };
    // SAFETY: the kernel reads one rlimit from `limit`.
    match check(OP, unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }) {
        Ok(_) => Ok(needed),
        Err(error) => {
            let text = format!(
                "{needed} open files are needed but only {} are allowed ({}); raise the hard limit (ulimit \
                 -Hn, LimitNOFILE= of the service) or use fewer streams or hosts",
                now.hard, error.source
            );
            Err(SockError::new(OP, io::Error::new(io::ErrorKind::PermissionDenied, text)))
        }
    }
}

/// Limit on processes and threads of this user (`RLIMIT_NPROC`); absent if unlimited. It does not apply to
/// root.
#[must_use]
pub fn processes() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes one rlimit to `limit`.
    let ret = unsafe { libc::getrlimit(libc::RLIMIT_NPROC, &raw mut limit) };
    (ret == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

/// Limit on processes and threads of this process's control group; absent if unlimited or unreadable.
#[must_use]
pub fn pids_of_group() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let files = groups.lines().filter_map(pids_file);
    files.filter_map(|file| std::fs::read_to_string(file).ok()?.trim().parse().ok()).min()
}

/// The file with the limit for one line of `/proc/PID/cgroup`: `0::/PATH` in version 2, `N:pids:/PATH` in
/// version 1.
fn pids_file(line: &str) -> Option<String> {
    let mut parts = line.splitn(3, ':');
    let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
    let root = match (number, controllers) {
        ("0", "") => "/sys/fs/cgroup",
        (_, "pids") => "/sys/fs/cgroup/pids",
        _ => return None,
    };
    Some(format!("{root}{}/pids.max", path.trim_end_matches('/')))
}

/// Number of open files of this process; absent if `/proc` is not readable.
#[must_use]
pub fn files_in_use() -> Option<u64> {
    // The directory is one of them while it is being read.
    Some((std::fs::read_dir("/proc/self/fd").ok()?.count() as u64).saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_the_limit_of_threads_is_found_in_either_version() {
        assert_eq!(pids_file("0::/user.slice/a").as_deref(), Some("/sys/fs/cgroup/user.slice/a/pids.max"));
        assert_eq!(pids_file("7:pids:/").as_deref(), Some("/sys/fs/cgroup/pids/pids.max"));
        assert_eq!(pids_file("3:cpu,cpuacct:/x"), None);
        assert_eq!(pids_file(""), None);
    }

    #[test]
    fn open_files_are_counted() {
        let before = files_in_use().unwrap();
        let _three: Vec<_> = (0..3).map(|_| std::fs::File::open("/dev/null").unwrap()).collect();
        // Other tests of this process open and close files meanwhile.
        assert!(before > 0 && files_in_use().unwrap() >= 4);
    }

    // A single test, because the limit applies to the whole process.
    #[test]
    fn a_limit_is_raised_as_far_as_needed_and_as_far_as_the_kernel_goes() {
        let before = open_files().unwrap();
        assert_eq!(raise_open_files(1).unwrap(), before.soft, "enough is left alone");
        // Not even root may exceed fs.nr_open, which is an int.
        let error = raise_open_files(1 << 40).unwrap_err();
        assert!(error.source.to_string().contains("ulimit -Hn"), "{}", error.source);
        assert_eq!(open_files().unwrap(), before);

        let lowered = libc::rlimit { rlim_cur: before.soft - 1, rlim_max: before.hard };
        // SAFETY: the kernel reads one rlimit from `lowered`.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const lowered) }, 0);
        assert_eq!(raise_open_files(before.soft).unwrap(), before.soft);
        assert_eq!(open_files().unwrap(), before);
    }
}
