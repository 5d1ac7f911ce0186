//! The CPU time of this host between two readings.

use super::wire::HostCpu;
use crate::stand_in::HostCounts;

/// The shares of the time between two readings; absent if this system does not count CPU time.
pub(super) fn between(before: &HostCounts, after: &HostCounts) -> Option<(HostCpu, u32)> {
    let (before, now) = before.cpu.zip(after.cpu)?;
    let cores = after.cores?;
    let mut spent = [0_u64; 8];
    for (spent, (now, before)) in spent.iter_mut().zip(now.iter().zip(before)) {
        *spent = now.saturating_sub(before);
    }
    let all = spent.iter().fold(0_u64, |sum, part| sum.saturating_add(*part));
    let share = |part: u64| if all == 0 { 0.0 } else { (100.0 * part as f64 / all as f64) as f32 };
    let [user, _, system, idle, iowait, irq, softirq, _] = spent;
    let busy = share(all.saturating_sub(idle));
    let cpu = HostCpu {
        busy,
        user: share(user),
        system: share(system),
        iowait: share(iowait),
        irq: share(irq),
        softirq: share(softirq),
    };
    Some((cpu, cores))
}
