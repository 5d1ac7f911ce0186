//! Other processes.

use windows_sys::Win32::Foundation::{CloseHandle, STILL_ACTIVE};
use windows_sys::Win32::System::Threading::{
    GetExitCodeProcess, OpenProcess, PROCESS_QUERY_LIMITED_INFORMATION,
};

/// Whether a process with this id exists and has not ended.
pub(crate) fn is_running(pid: u32) -> bool {
    // SAFETY: takes numbers; the result is null or a handle that is closed below.
    let process = unsafe { OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, 0, pid) };
    if process.is_null() {
        return false;
    }
    let mut code = 0;
    // SAFETY: the handle is open, and `code` is valid for writing.
    let known = unsafe { GetExitCodeProcess(process, &raw mut code) } != 0;
    // SAFETY: the handle is open and not used after this.
    unsafe { CloseHandle(process) };
    known && code == STILL_ACTIVE.cast_unsigned()
}
