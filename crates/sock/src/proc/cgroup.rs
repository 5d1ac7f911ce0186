//! CPU quotas and memory limits that hold for this process: those of its cgroup and of the ones above it, cgroups(7).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// A CPU quota, and its periods since the cgroup exists.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct CpuQuota {
    /// CPUs that all threads of the cgroup may use together.
    pub cpus: f64,
    /// Periods in which the cgroup had something to run.
    pub periods: u64,
    /// Periods at whose end threads were stopped because the quota was used up.
    pub throttled: u64,
}

/// The cgroups whose quotas hold for this process. To find them takes longer than to read their quotas, the more so the
/// more file systems are mounted.
#[derive(Clone, Debug, Default)]
pub struct CpuCgroups(Vec<PathBuf>);

impl CpuCgroups {
    /// Finds them; none if the host does not say.
    #[must_use]
    pub fn find() -> Self {
        Self(own_cgroups("cpu"))
    }

    /// Reads their quotas; empty if there are none.
    #[must_use]
    pub fn quotas(&self) -> CpuQuotas {
        CpuQuotas(self.0.iter().filter_map(|folder| Some((folder.clone(), quota(folder)?))).collect())
    }
}

/// All quotas that hold for this process, by the folder of their cgroup.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CpuQuotas(BTreeMap<PathBuf, CpuQuota>);

impl CpuQuotas {
    /// CPUs of the smallest quota; absent if there is none.
    #[must_use]
    pub fn cpus(&self) -> Option<f64> {
        self.0.values().map(|quota| quota.cpus).reduce(f64::min)
    }

    /// Share of the periods since `earlier` in which a quota was used up, 0 to 1, for the quota with the most of them;
    /// absent if there is none.
    #[must_use]
    pub fn throttled_share(&self, earlier: &Self) -> Option<f64> {
        let share = |(folder, now): (&PathBuf, &CpuQuota)| {
            let then = earlier.0.get(folder)?;
            let periods = now.periods.saturating_sub(then.periods).max(1) as f64;
            Some((now.throttled.saturating_sub(then.throttled) as f64 / periods).min(1.0))
        };
        self.0.iter().filter_map(share).reduce(f64::max)
    }
}

/// The smallest limit of the memory of this process, bytes; absent if there is none.
#[must_use]
pub fn memory_limit_bytes() -> Option<u64> {
    own_cgroups("memory").iter().filter_map(|folder| memory_limit(folder)).min()
}

fn own_cgroups(controller: &str) -> Vec<PathBuf> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    cgroups(controller, &read("/proc/self/cgroup"), &read("/proc/self/mountinfo"))
}

/// The folders of this process's cgroup that has a controller, and of all above it that can be seen.
///
/// `own` is the text of `/proc/self/cgroup`, `mounts` that of `/proc/self/mountinfo`.
fn cgroups(controller: &str, own: &str, mounts: &str) -> Vec<PathBuf> {
    let paths: Vec<(&str, &Path)> = own
        .lines()
        .filter_map(|line| line.split_once(':')?.1.split_once(':'))
        .map(|(controllers, path)| (controllers, Path::new(path)))
        .collect();
    let mut folders = Vec::new();
    for mount in mounts.lines().filter_map(|line| CgroupMount::parse(controller, line)) {
        let is_its = |controllers: &str| match mount.is_unified {
            true => controllers.is_empty(),
            false => controllers.split(',').any(|name| name == controller),
        };
        let Some((_, path)) = paths.iter().find(|(controllers, _)| is_its(controllers)) else { continue };
        // In a container, the path may begin above what is mounted.
        let below = path
            .strip_prefix(mount.root)
            .ok()
            .filter(|below| below.components().all(|component| matches!(component, Component::Normal(_))));
        // Joining an empty path would add a slash.
        let below = below.filter(|below| !below.as_os_str().is_empty());
        let folder = below.map_or_else(|| mount.at.to_owned(), |below| mount.at.join(below));
        folders
            .extend(folder.ancestors().take_while(|folder| folder.starts_with(mount.at)).map(Path::to_owned));
    }
    folders
}

/// A mounted hierarchy of cgroups that may have a controller.
struct CgroupMount<'a> {
    /// What of the hierarchy is mounted, and where.
    root: &'a Path,
    at: &'a Path,
    /// Whether it is of version 2.
    is_unified: bool,
}

impl<'a> CgroupMount<'a> {
    /// Parses a line of `/proc/self/mountinfo`, proc_pid_mountinfo(5); absent for any other mount.
    fn parse(controller: &str, line: &'a str) -> Option<Self> {
        let (mount, file_system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3).map(Path::new);
        let mut file_system = file_system.split(' ');
        let kind = file_system.next()?;
        let has_it = file_system.nth(1)?.split(',').any(|option| option == controller);
        let (root, at) = (mount.next()?, mount.next()?);
        (kind == "cgroup2" || kind == "cgroup" && has_it).then_some(Self {
            root,
            at,
            is_unified: kind == "cgroup2",
        })
    }
}

/// The quota of a cgroup; absent if it has none.
fn quota(cgroup: &Path) -> Option<CpuQuota> {
    let read = |name: &str| fs::read_to_string(cgroup.join(name)).ok();
    let cpus = match read("cpu.max") {
        Some(quota_and_period) => parse_cpus(&quota_and_period)?,
        None => parse_cpus(&format!("{} {}", read("cpu.cfs_quota_us")?, read("cpu.cfs_period_us")?))?,
    };
    let stat = read("cpu.stat")?;
    let count = |key: &str| {
        let mut lines = stat.lines().filter_map(|line| line.split_once(' '));
        lines.find(|(name, _)| *name == key)?.1.trim().parse().ok()
    };
    Some(CpuQuota { cpus, periods: count("nr_periods")?, throttled: count("nr_throttled")? })
}

/// The memory limit of a cgroup, bytes; absent if it has none. In version 1 that is a number above all memory.
fn memory_limit(cgroup: &Path) -> Option<u64> {
    let read = |name: &str| fs::read_to_string(cgroup.join(name)).ok();
    read("memory.max").or_else(|| read("memory.limit_in_bytes"))?.trim().parse().ok()
}

/// CPUs from a quota and its period; absent without a quota, which is `max` or -1.
fn parse_cpus(quota_and_period: &str) -> Option<f64> {
    let mut numbers = quota_and_period.split_whitespace().map(str::parse::<f64>);
    let (quota, period) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    Some(quota / period).filter(|cpus| cpus.is_finite() && *cpus > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIFIED: &str = "30 23 0:27 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate";
    const FIRST: &str = "32 31 0:29 / /sys/fs/cgroup/cpu rw shared:5 - cgroup cgroup rw,cpu,cpuacct\n\
                         35 31 0:32 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset";

    fn found(own: &str, mounts: &str) -> Vec<String> {
        cgroups("cpu", own, mounts).into_iter().map(|folder| folder.display().to_string()).collect()
    }

    #[test]
    fn a_cgroup_is_found_with_all_above_it() {
        let own = "0::/system.slice/linerate.service\n";
        let service = "/sys/fs/cgroup/system.slice/linerate.service";
        assert_eq!(found(own, UNIFIED), [service, "/sys/fs/cgroup/system.slice", "/sys/fs/cgroup"]);
        let own = "5:cpuset:/elsewhere\n4:cpu,cpuacct:/docker/1f\n0::/other\n";
        let docker = "/sys/fs/cgroup/cpu/docker";
        assert_eq!(found(own, FIRST), [&format!("{docker}/1f"), docker, "/sys/fs/cgroup/cpu"]);
    }

    #[test]
    fn in_a_container_only_what_is_mounted_is_read() {
        let mounted = "32 31 0:29 /docker/1f /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu";
        let at = "/sys/fs/cgroup/cpu";
        assert_eq!(found("4:cpu:/docker/1f/a\n", mounted), [&format!("{at}/a"), at]);
        assert_eq!(found("4:cpu:/docker/other\n", mounted), [at]);
        assert_eq!(found("0::/\n", UNIFIED), ["/sys/fs/cgroup"]);
        assert_eq!(found("0::/../other\n", UNIFIED), ["/sys/fs/cgroup"]);
    }

    #[test]
    fn each_controller_of_version_1_has_its_own_hierarchy() {
        let own = "7:memory:/docker/1f\n4:cpu:/other\n";
        let mounts = format!("{FIRST}\n36 31 0:33 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory");
        let memory = "/sys/fs/cgroup/memory";
        let found: Vec<PathBuf> = cgroups("memory", own, &mounts);
        assert_eq!(
            found,
            [format!("{memory}/docker/1f"), format!("{memory}/docker"), memory.into()].map(PathBuf::from)
        );
    }

    #[test]
    fn what_the_host_does_not_say_is_no_quota() {
        for (own, mounts) in [("", UNIFIED), ("0::/", ""), ("nonsense", "non - sense"), ("0::/", FIRST)] {
            assert_eq!(found(own, mounts), [""; 0], "{own} {mounts}");
        }
        for nothing in ["max 100000", "-1\n 100000\n", "", "5000", "5000 0", "0 100000", "x y"] {
            assert_eq!(parse_cpus(nothing), None, "{nothing}");
        }
        assert_eq!(parse_cpus("5000 100000\n"), Some(0.05));
    }

    #[test]
    fn the_quota_that_stopped_most_is_counted() {
        let quotas = |counts: [(&str, u64, u64); 2]| {
            let of = |(name, periods, throttled)| {
                (PathBuf::from(name), CpuQuota { cpus: 0.5, periods, throttled })
            };
            CpuQuotas(counts.map(of).into())
        };
        let then = quotas([("/a", 100, 90), ("/a/b", 10, 0)]);
        assert_eq!(quotas([("/a", 110, 91), ("/a/b", 20, 8)]).throttled_share(&then), Some(0.8));
        assert_eq!(then.throttled_share(&then), Some(0.0));
        assert_eq!(then.throttled_share(&CpuQuotas::default()), None);
        assert_eq!((then.cpus(), CpuQuotas::default().cpus()), (Some(0.5), None));
    }

    #[test]
    fn quotas_and_limits_of_both_versions_are_read() {
        let folder = std::env::temp_dir().join(format!("linerate-quota-{}", std::process::id()));
        let write = |files: &[(&str, &str)]| {
            let _ = fs::remove_dir_all(&folder);
            fs::create_dir_all(&folder).unwrap();
            files.iter().for_each(|(name, text)| fs::write(folder.join(name), text).unwrap());
        };
        for (file, limit) in [
            (("memory.max", "max\n"), None),
            (("memory.max", "536870912\n"), Some(512 << 20)),
            (("memory.limit_in_bytes", "536870912\n"), Some(512 << 20)),
            (("memory.limit_in_bytes", "9223372036854771712\n"), Some(9_223_372_036_854_771_712)),
            (("memory.limit_in_bytes", "?"), None),
        ] {
            write(&[file]);
            assert_eq!(memory_limit(&folder), limit, "{file:?}");
        }
        let files = |files: &[(&str, &str)]| {
            write(files);
            quota(&folder)
        };
        let stat = ("cpu.stat", "usage_usec 7\nnr_periods 40\nnr_throttled 38\nthrottled_usec 9\n");
        let expected = Some(CpuQuota { cpus: 0.25, periods: 40, throttled: 38 });
        assert_eq!(files(&[("cpu.max", "25000 100000\n"), stat]), expected);
        let first = [("cpu.cfs_quota_us", "2500\n"), ("cpu.cfs_period_us", "10000\n"), stat];
        assert_eq!(files(&first), expected);
        assert_eq!(files(&[("cpu.max", "max 100000\n"), stat]), None);
        assert_eq!(files(&[stat]), None, "the root has no quota");
        fs::remove_dir_all(&folder).unwrap();
    }
}
