//! What Windows says about itself.

use windows_sys::Wdk::System::SystemServices::RtlGetVersion;
use windows_sys::Win32::System::SystemInformation::OSVERSIONINFOW;

use crate::proc::host::Kernel;

/// Reads the name and version of the system.
#[must_use]
pub fn kernel() -> Kernel {
    // SAFETY: all zero is a valid value: numbers and an empty text.
    let mut about: OSVERSIONINFOW = unsafe { std::mem::zeroed() };
    about.dwOSVersionInfoSize = size_of::<OSVERSIONINFOW>() as u32;
    // SAFETY: `about` is valid for writing and says its size. The call always succeeds.
    unsafe { RtlGetVersion(&raw mut about) };
    let (major, minor, build) = (about.dwMajorVersion, about.dwMinorVersion, about.dwBuildNumber);
    Kernel {
        system: "Windows".to_owned(),
        host: std::env::var("COMPUTERNAME").unwrap_or_default(),
        release: format!("{major}.{minor}"),
        version: format!("build {build}"),
        machine: std::env::consts::ARCH.to_owned(),
    }
}

/// Ticks per second of processor time, which Windows counts in units of 100 ns.
#[must_use]
pub const fn ticks_per_second() -> u64 {
    10_000_000
}
