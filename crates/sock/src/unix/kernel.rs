//! What the kernel says about itself.

use std::ffi::CStr;

use crate::proc::host::Kernel;

/// Reads the name and version of the kernel.
#[must_use]
pub fn kernel() -> Kernel {
    // SAFETY: all zero is a valid utsname (empty strings).
    let mut name: libc::utsname = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one utsname to `name`; with a valid pointer the call cannot fail.
    unsafe { libc::uname(&raw mut name) };
    let field = |bytes: &[libc::c_char]| {
        let bytes: Vec<u8> = bytes.iter().map(|&byte| byte as u8).collect();
        CStr::from_bytes_until_nul(&bytes).map(|text| text.to_string_lossy().into_owned()).unwrap_or_default()
    };
    Kernel {
        system: field(&name.sysname),
        host: field(&name.nodename),
        release: field(&name.release),
        version: field(&name.version),
        machine: field(&name.machine),
    }
}

/// Ticks per second of the CPU counters in `/proc`, 100 on nearly every system.
#[must_use]
pub fn ticks_per_second() -> u64 {
    // SAFETY: takes a number and accesses none of our memory.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).unwrap_or(100).max(1)
}
