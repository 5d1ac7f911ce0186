//! CPU affinity of threads.

use crate::SockError;
use crate::linux::call::check;

/// Words of the kernel's CPU mask; Linux supports at most 8192 CPUs.
const WORDS: usize = 8192 / u64::BITS as usize;

/// Restricts the calling thread to these CPUs, numbered from 0 as in `/proc/cpuinfo`.
///
/// # Errors
/// `EINVAL` if none of them exists or is allowed for this process.
pub fn set_thread_affinity(cpus: &[usize]) -> Result<(), SockError> {
    const OP: &str = "set CPU affinity";
    let mask = mask_of(cpus).ok_or_else(|| SockError::errno(OP, libc::EINVAL))?;
    // SAFETY: the kernel reads `size_of_val(&mask)` bytes; `cpu_set_t` is an array of words like ours.
    let ret = unsafe { libc::sched_setaffinity(0, size_of_val(&mask), mask.as_ptr().cast()) };
    check(OP, ret).map(|_| ())
}

/// The CPUs that the calling thread may run on.
///
/// # Errors
/// None is expected: the arguments are always valid.
pub fn thread_affinity() -> Result<Vec<usize>, SockError> {
    let mut mask = [0u64; WORDS];
    // SAFETY: the kernel writes at most `size_of_val(&mask)` bytes; `cpu_set_t` is an array of words like ours.
    let ret = unsafe { libc::sched_getaffinity(0, size_of_val(&mask), mask.as_mut_ptr().cast()) };
    check("read CPU affinity", ret)?;
    Ok(cpus_in(&mask))
}

/// `None` if a CPU number is larger than Linux supports.
fn mask_of(cpus: &[usize]) -> Option<[u64; WORDS]> {
    let mut mask = [0; WORDS];
    for &cpu in cpus {
        *mask.get_mut(cpu / 64)? |= 1 << (cpu % 64);
    }
    Some(mask)
}

fn cpus_in(mask: &[u64; WORDS]) -> Vec<usize> {
    (0..WORDS * 64).filter(|cpu| mask[cpu / 64] >> (cpu % 64) & 1 == 1).collect()
}

/// Number of online CPUs, at least 1.
#[must_use]
pub fn online_cpus() -> usize {
    // SAFETY: takes a number and accesses none of our memory.
    let count = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    usize::try_from(count).unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_64_is_the_first_bit_of_the_second_word() {
        let mask = mask_of(&[0, 63, 64, 8191]).unwrap();
        assert_eq!((mask[0], mask[1], mask[WORDS - 1]), (1 << 63 | 1, 1, 1 << 63));
        assert_eq!(cpus_in(&mask), [0, 63, 64, 8191]);
        assert_eq!(mask_of(&[8192]), None);
    }

    #[test]
    fn a_pinned_thread_runs_where_it_was_put() {
        std::thread::spawn(|| {
            let last = thread_affinity().unwrap().pop().unwrap();
            set_thread_affinity(&[last]).unwrap();
            assert_eq!(thread_affinity().unwrap(), [last]);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_refused() {
        assert_eq!(set_thread_affinity(&[8191]).unwrap_err().raw_os_error(), Some(libc::EINVAL));
        assert_eq!(set_thread_affinity(&[1_000_000]).unwrap_err().raw_os_error(), Some(libc::EINVAL));
        assert!(online_cpus() >= 1);
    }
}
