//! Settings of the loopback interface in a test's own network namespace.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use linerate_sock::netns;

use super::*;

const RMEM: &str = "8192 262144 8388608";

/// Runs a test in a temporary namespace, with a folder for journals.
fn inside(test: impl FnOnce(&Path) + Send) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("settings");
    netns::with_netns_fd(&netns::create().unwrap(), || test(&path)).unwrap();
    let left: Vec<PathBuf> = std::fs::read_dir(&path)
        .map_or_else(|_| Vec::new(), |all| all.map(|one| one.unwrap().path()).collect());
    assert!(left.is_empty(), "{left:?}");
}

fn requested(values: &[(&str, &str)]) -> Vec<(HostSettingRequest, Option<JournaledInterface>)> {
    let values = values.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    check(&values, || Ok("lo".to_owned())).unwrap()
}

fn begin(folder: &Path) -> Changes {
    Changes::begin(folder).unwrap().0
}

/// The state of all settings that these tests change.
fn state() -> Vec<String> {
    HostSetting::ALL.into_iter().map(|setting| setting.read("lo").unwrap()).collect()
}

fn mtu() -> String {
    HostSetting::Mtu.read("lo").unwrap()
}

#[test]
#[ignore = "needs root and network namespaces"]
fn exactly_what_is_asked_for_holds_and_in_the_end_what_was_found() {
    inside(|folder| {
        let before = state();
        let mut changes = begin(folder);
        changes.apply(&requested(&[("mtu", "9000"), ("gro", "false"), ("tcp_rmem", RMEM)])).unwrap();
        assert_eq!((mtu().as_str(), HostSetting::TcpRmem.read("").unwrap().as_str()), ("9000", RMEM));
        let in_force: Vec<(HostSetting, String, String)> =
            changes.in_force().map(|(setting, _, found, now)| (setting, found, now)).collect();
        assert!(
            in_force.contains(&(HostSetting::Mtu, "65536".to_owned(), "9000".to_owned())),
            "{in_force:?}"
        );
        // The next point: another MTU and a qdisc, but nothing else.
        changes.apply(&requested(&[("mtu", "4000"), ("qdisc", "pfifo limit 7")])).unwrap();
        let now = state();
        let differs: Vec<&str> = (0..now.len())
            .filter(|at| now[*at] != before[*at])
            .map(|at| HostSetting::ALL[at].name())
            .collect();
        assert_eq!((differs, mtu().as_str()), (vec!["mtu", "qdisc"], "4000"));
        // Applying the same settings again changes nothing.
        changes.apply(&requested(&[("mtu", "4000"), ("qdisc", "pfifo limit 7")])).unwrap();
        assert_eq!(state(), now);
        changes.apply(&requested(&[("mtu", "4000"), ("qdisc", "pfifo limit 8")])).unwrap();
        assert_ne!(state(), now);
        assert_eq!(changes.finish().left, Vec::<String>::new());
        assert_eq!(state(), before);
    });
}

#[test]
#[ignore = "needs root and network namespaces"]
fn nothing_is_half_applied() {
    inside(|folder| {
        let before = state();
        let mut changes = begin(folder);
        let mut asked = requested(&[("mtu", "9000"), ("tcp_rmem", RMEM)]);
        // No check would accept this value. The kernel refuses it after the first two settings have been
        // applied.
        asked.push((HostSettingRequest::Congestion("carrier_pigeon".to_owned()), None));
        let troubles = changes.apply(&asked).unwrap_err();
        assert!(troubles[0].starts_with("congestion"), "{troubles:?}");
        assert_eq!(state(), before);
        assert_eq!(changes.in_force().count(), 0);
        changes.finish();
    });
}

#[test]
#[ignore = "needs root and network namespaces"]
fn without_its_journal_nothing_is_changed() {
    inside(|folder| {
        let before = state();
        let file = folder.with_extension("file");
        std::fs::write(&file, "").unwrap();
        let error = Changes::begin(&file).unwrap_err();
        assert!(error.contains("undo journal"), "{error}");
        // The journal cannot be created because a directory has its name.
        let mut changes = begin(folder);
        let journal = changes.held_journal.place.journal.clone();
        std::fs::create_dir(&journal).unwrap();
        let troubles = changes.apply(&requested(&[("mtu", "9000"), ("congestion", "reno")])).unwrap_err();
        assert!(troubles[0].contains("no setting is changed without it"), "{troubles:?}");
        assert_eq!(state(), before);
        std::fs::remove_dir(&journal).unwrap();
        changes.finish();
    });
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_value_that_somebody_else_set_meanwhile_is_left_alone_and_reported() {
    inside(|folder| {
        let mut changes = begin(folder);
        changes.apply(&requested(&[("mtu", "9000"), ("tcp_rmem", RMEM)])).unwrap();
        HostSetting::Mtu.put_back("lo", "1400").unwrap();
        let troubles = changes.apply(&requested(&[("mtu", "4000")])).unwrap_err();
        assert!(troubles[0].contains("somebody else has made it 1400"), "{troubles:?}");
        assert_eq!(mtu(), "1400");
        let restored = changes.finish();
        assert_eq!((restored, mtu().as_str()), (Restored::default(), "1400"));
    });
}

#[test]
#[ignore = "needs root and network namespaces"]
fn what_a_killed_agent_left_is_seen_and_put_back_by_the_next() {
    inside(|folder| {
        let before = state();
        let mut changes = begin(folder);
        changes
            .apply(&requested(&[("mtu", "9000"), ("qdisc", "pfifo limit 7"), ("congestion", "reno")]))
            .unwrap();
        let alive = leftovers(folder).unwrap().unwrap();
        assert!(alive.is_alive && alive.pid == Some(std::process::id()));
        assert!(alive.settings.contains(&"mtu of lo: 9000, before 65536".to_owned()), "{alive:?}");
        // Like a kill: the lock is released, the journal stays.
        drop(changes);
        while leftovers(folder).unwrap().unwrap().is_alive {
            std::thread::yield_now();
        }
        assert_ne!(state(), before);
        let restored = restore_leftovers(folder).unwrap();
        assert!(restored.put_back.len() >= 2 && restored.left.is_empty(), "{restored:?}");
        assert_eq!(state(), before);
        assert_eq!(leftovers(folder).unwrap(), None);
        assert_eq!(restore_leftovers(folder).unwrap(), Restored::default());
    });
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_change_that_was_announced_and_not_made_is_not_undone() {
    inside(|folder| {
        let before = state();
        let mut changes = begin(folder);
        let iface = requested(&[("mtu", "9000")])[0].1.clone();
        let change = |found: &str, ours: &str| SettingsJournalEntry::Change {
            setting: "mtu".to_owned(),
            interface: iface.clone(),
            found: found.to_owned(),
            ours: ours.to_owned(),
        };
        changes.note(&change("65536", "9000")).unwrap();
        drop(changes);
        assert_eq!(restore_leftovers(folder).unwrap(), Restored::default());
        assert_eq!(state(), before);
        // Killed between the second journal entry and the second change: the first value is in force.
        let mut changes = begin(folder);
        changes.apply(&requested(&[("mtu", "9000")])).unwrap();
        changes.note(&change("9000", "4000")).unwrap();
        drop(changes);
        assert_eq!(restore_leftovers(folder).unwrap().put_back.len(), 1);
        assert_eq!(state(), before);
    });
}

#[test]
#[ignore = "needs root and network namespaces"]
fn after_a_restart_of_the_system_the_journal_alone_is_dropped() {
    inside(|folder| {
        let mut changes = begin(folder);
        changes.apply(&requested(&[("mtu", "9000")])).unwrap();
        let journal = changes.held_journal.place.journal.clone();
        drop(changes);
        let text = std::fs::read_to_string(&journal).unwrap();
        std::fs::write(&journal, text.replace(&boot_id(), "of-yesterday")).unwrap();
        assert_eq!(leftovers(folder).unwrap(), None);
        assert_eq!(restore_leftovers(folder).unwrap(), Restored::default());
        assert_eq!(mtu(), "9000", "nothing is known of this system's settings");
    });
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_renamed_interface_is_found_and_a_missing_one_is_reported() {
    inside(|folder| {
        let ip =
            |args: &[&str]| assert!(std::process::Command::new("ip").args(args).status().unwrap().success());
        ip(&["link", "add", "v0", "type", "veth", "peer", "name", "v1"]);
        let values = [("mtu".into(), "9000".into())].into();
        let of = |name: &str| check(&values, || Ok(name.to_owned())).unwrap().remove(0);
        let mut changes = begin(folder);
        changes.apply(&[of("v0")]).unwrap();
        ip(&["link", "set", "v0", "name", "wan"]);
        let restored = changes.finish();
        assert_eq!((restored.put_back.len(), HostSetting::Mtu.read("wan").unwrap().as_str()), (1, "1500"));
        let mut changes = begin(folder);
        changes.apply(&[of("wan")]).unwrap();
        ip(&["link", "del", "wan"]);
        let restored = changes.finish();
        assert!(restored.left[0].contains("gone"), "{restored:?}");
    });
}

#[test]
#[ignore = "needs root and network namespaces"]
fn two_agents_do_not_change_one_namespace() {
    inside(|folder| {
        let mut changes = begin(folder);
        changes.apply(&requested(&[("mtu", "9000")])).unwrap();
        let error = Changes::begin(folder).unwrap_err();
        assert!(error.contains(&format!("process {}", std::process::id())), "{error}");

        assert_eq!(restore_leftovers(folder).unwrap(), Restored::default(), "its agent lives");
        assert_eq!(mtu(), "9000");
        // Another namespace is independent.
        netns::with_netns_fd(&netns::create().unwrap(), || drop(begin(folder).finish())).unwrap();
        changes.finish();
        begin(folder).finish();
    });
}

/// One thread changes and restores settings while another one reads the leftovers. The reader sees the settings
/// of a living process or nothing, and never treats them as leftovers.
#[test]
#[ignore = "needs root and network namespaces"]
fn who_looks_while_settings_come_and_go_changes_nothing() {
    inside(|folder| {
        let here = netns::of_this_thread().unwrap();
        let done = Arc::new(AtomicBool::new(false));
        std::thread::scope(|scope| {
            let looking = scope.spawn(|| {
                netns::enter_fd(&here).unwrap();
                while !done.load(Ordering::Relaxed) {
                    let seen = leftovers(folder);
                    assert!(seen.is_ok(), "{seen:?}");
                }
            });
            let change = || {
                let mut changes = Changes::begin(folder)?.0;
                let applied = changes.apply(&requested(&[("mtu", "9000")]));
                Ok((applied, changes.finish().left))
            };
            // The reader ends before the results are checked.
            let rounds: Vec<Result<_, String>> = (0..50).map(|_| change()).collect();
            done.store(true, Ordering::Relaxed);
            looking.join().unwrap();
            assert!(rounds.iter().all(|round| *round == Ok((Ok(()), Vec::new()))), "{rounds:?}");
        });
        assert_eq!(mtu(), "65536");
    });
}

#[test]
fn states_are_described_briefly() {
    let root = HostSetting::RootDiscipline;
    assert_eq!(short(root, "default fq_codel"), "fq_codel (the kernel's own)");
    assert_eq!(short(root, "fq 6c72: 08000100"), "fq");
    assert_eq!(short(HostSetting::Tso, "a=on b=on"), "on");
    assert_eq!(short(HostSetting::Tso, "a=off"), "off");
    assert_eq!(short(HostSetting::Tso, "a=on b=off"), "a=on b=off");
    assert_eq!(short(HostSetting::Mtu, "1500"), "1500");
}
