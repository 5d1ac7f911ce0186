use super::super::{LabResourceError, sweep, switch_pid};
use super::*;
use linerate_emu::link_direction::LinkDirection;
use linerate_emu::packet_batch::HashFields;
use linerate_emu::topology::{TopologyHost, TopologyLink};
use linerate_sock::routing::{LinkChange, RoutingSocket, index_of};
use linerate_units::Bitrate;
use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard};

/// Tests that inspect the whole system run one at a time.
static SYSTEM: Mutex<()> = Mutex::new(());

/// Two hosts on a switch, at 1 Gb/s with long packets and at 100 Mb/s without a NIC, and a direct cable between
/// them.
fn topology() -> Topology {
    let host = |name: &str, number: u8, sysctl: &[(&str, &str)]| TopologyHost {
        name: name.to_owned(),
        v4: ([10, 77, 0, number].into(), 24),
        v6: ([0xfd77, 0, 0, 0, 0, 0, 0, u16::from(number)].into(), 64),
        congestion: Some("cubic".to_owned()),
        sysctl: sysctl.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
    };
    let direction =
        |bps, mtu| LinkDirection { rate: Bitrate::from_bps(bps), mtu, ..LinkDirection::default() };
    let link = |name: &str, ends: [&str; 2], directions, nic| TopologyLink {
        name: name.to_owned(),
        ends: ends.map(str::to_owned),
        directions,
        members: 1,
        hash: HashFields::default(),
        nic,
    };
    Topology {
        name: "two".to_owned(),
        about: String::new(),
        seed: 1,
        hosts: vec![host("a", 1, &[("ipv4.tcp_rmem", "4096 131072 7654321")]), host("b", 2, &[])],
        switches: vec![],
        links: vec![
            link("a", ["a", "s"], [direction(1e9, 9000), direction(2e9, 1500)], true),
            link("b", ["s", "b"], [direction(2e9, 1500), direction(100e6, 1500)], false),
            link("direct", ["b", "a"], [LinkDirection::default(), direction(10e9, 1400)], true),
        ],
    }
}

/// A lab that no other test uses; its leftovers are removed on drop.
struct TestLab {
    run: tempfile::TempDir,
    lab: LabName,
    privilege: Privilege,
}

impl TestLab {
    fn new(name: &str, privilege: Privilege) -> Self {
        let lab = format!("t-{name}-{}", std::process::id()).parse().unwrap();
        Self { run: tempfile::tempdir().unwrap(), lab, privilege }
    }

    fn create(&self) -> Result<LabResources, LabResourceError> {
        self.create_with(&topology())
    }

    fn create_with(&self, topology: &Topology) -> Result<LabResources, LabResourceError> {
        let site = Site { run_dir: self.run.path().to_owned(), privilege: self.privilege };
        LabResources::create(topology, &self.lab, &site)
    }

    /// Leaves a journal with that entry and without a lock.
    fn leave(&self, boot_id: String, entry: &LabJournalEntry) {
        let folder = LabFolder::claim(self.run.path(), &self.lab).unwrap();
        let mut journal = LabJournal::create(folder.path()).unwrap();
        journal
            .note(&LabJournalEntry::Opening(LabJournalHeader::new(boot_id, "our token".to_owned(), 1)))
            .unwrap();
        journal.note(entry).unwrap();
    }

    fn sweep(&self) -> usize {
        let swept = sweep(self.run.path()).unwrap();
        swept.into_iter().map(|one| one.outcome.unwrap()).filter(Vec::is_empty).count()
    }
}

impl Drop for TestLab {
    fn drop(&mut self) {
        let _ = sweep(self.run.path());
    }
}

/// Everything that a lab could leave behind in the system.
#[derive(Debug, PartialEq, Eq)]
struct System {
    names: BTreeSet<String>,
    mounts: Vec<String>,
    links: String,
    allowed: Option<String>,
}

impl System {
    /// Only names of this process's labs: other tests create namespaces too.
    fn now(_turn: &LabTestTurn) -> Self {
        let mine = format!("-{}-", std::process::id());
        let names = fs::read_dir("/run/netns").into_iter().flatten();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        Self {
            names: names.filter(|name| name.contains(&mine)).collect(),
            mounts: mounts.lines().filter(|line| line.contains(&mine)).map(str::to_owned).collect(),
            links: output("ip", "-o link"),
            allowed: proc::sysctl(ALLOWED),
        }
    }
}

/// The turn of one test, in a system where cubic is reserved for root, as on some.
struct LabTestTurn {
    allowed: String,
    _turn: MutexGuard<'static, ()>,
}

const ALLOWED: &str = "net.ipv4.tcp_allowed_congestion_control";

impl LabTestTurn {
    fn take() -> Self {
        let turn = SYSTEM.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let allowed = proc::sysctl(ALLOWED).unwrap();
        let others: Vec<&str> = allowed.split_whitespace().filter(|name| *name != "cubic").collect();
        proc::set_sysctl(ALLOWED, &others.join(" ")).unwrap();
        Self { allowed, _turn: turn }
    }
}

impl Drop for LabTestTurn {
    fn drop(&mut self) {
        proc::set_sysctl(ALLOWED, &self.allowed).unwrap();
    }
}

fn output(program: &str, arguments: &str) -> String {
    let output = Command::new(program).args(arguments.split_whitespace()).output().unwrap();
    assert!(output.status.success(), "{program} {arguments}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A namespace of another owner, with that alias on its `lo`.
fn foreign(alias: Option<&str>) -> OwnedFd {
    let netns = netns::create().unwrap();
    with_netns_fd(&netns, || {
        let change = LinkChange { alias, ..LinkChange::default() };
        RoutingSocket::open().unwrap().change(index_of("lo").unwrap(), &change).unwrap();
    })
    .unwrap();
    netns
}

/// A program in a namespace that ends when requested, with the `/sys` that programs in a lab get.
fn start(netns: &OwnedFd) -> Child {
    with_netns_fd(netns, || {
        linerate_sock::mount::fresh_sys().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "echo; read line"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        child
    })
    .unwrap()
}

#[test]
#[ignore = "needs root and network namespaces"]
fn hosts_are_as_the_topology_says() {
    let turn = LabTestTurn::take();
    let bench = TestLab::new("as", Privilege::Root);
    let allowed = System::now(&turn).allowed;
    let resources = bench.create().unwrap();
    assert_eq!(System::now(&turn).allowed, allowed, "extended for a moment only");
    assert_eq!(resources.notes, [] as [&str; 0]);
    assert_eq!(switch_pid(bench.run.path(), &bench.lab), Some(std::process::id()));
    let [a, b] = resources.hosts.as_slice() else { unreachable!() };
    let name = format!("linerate-{}-a", bench.lab);
    assert_eq!((a.name.as_str(), a.netns_name.as_deref()), ("a", Some(name.as_str())));
    assert_eq!(a.path(), Path::new("/run/netns").join(&name));
    let places: Vec<_> =
        resources.taps.iter().map(|tap| (tap.host, tap.link, tap.end, tap.tap.name())).collect();
    assert_eq!(places, [(0, 0, 0, "eth0"), (0, 2, 1, "eth1"), (1, 1, 1, "eth0"), (1, 2, 0, "eth1")]);

    let shown = |arguments: &str| output("ip", &format!("-n {name} {arguments}"));
    let eth0 = shown("-d addr show eth0");
    for wanted in ["mtu 9000", ",UP", "qlen 8192", "alias linerate-lab", "inet 10.77.0.1/24", "fd77::1/64"] {
        assert!(eth0.contains(wanted), "{wanted}: {eth0}");
    }
    let mac: Vec<String> = resources.taps[0].mac.iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(eth0.contains(&mac.join(":")), "{eth0}");
    assert!(!eth0.contains("tentative"), "addresses are usable at once: {eth0}");
    let eth1 = shown("addr show eth1");
    assert!(eth1.contains("mtu 1400") && !eth1.contains("inet 10"), "only the first has an address: {eth1}");
    assert!(shown("addr show lo").contains("inet 127.0.0.1/8"));

    with_netns_fd(&a.netns, || {
        let speed = output("ethtool", "eth0");
        assert!(speed.contains("Speed: 1000Mb/s") && speed.contains("Duplex: Full"), "{speed}");
        // 125 MB/s of link rate, 9014 in 9038 bytes of it counted, less 200 ppm: 124.6431 MB/s, 997.145 Mb/s.
        let pace = output("tc", "-r qdisc show dev eth0");
        assert!(pace.contains("qdisc tbf") && pace.contains("rate 997145Kbit"), "{pace}");
        let setting = |name: &str| proc::sysctl(name).unwrap();
        assert_eq!(setting("net.ipv4.tcp_rmem"), "4096\t131072\t7654321");
        assert_eq!(setting("net.ipv4.tcp_congestion_control"), "cubic");
        assert_eq!(setting("net.ipv6.conf.eth0.router_solicitations"), "0");
    })
    .unwrap();
    with_netns_fd(&b.netns, || {
        assert!(!output("tc", "qdisc show dev eth0").contains("tbf"), "it has no card");
        assert!(output("ethtool", "eth0").contains("Speed: 100Mb/s"));
        assert!(!output("tc", "qdisc show dev eth1").contains("tbf"), "its line is infinitely fast");
    })
    .unwrap();
    resources.remove().unwrap();
}

#[test]
#[ignore = "needs root and network namespaces"]
fn nothing_is_left_of_a_lab_that_was_removed_or_whose_switch_is_gone() {
    let turn = LabTestTurn::take();
    let before = System::now(&turn);
    for privilege in [Privilege::Root, Privilege::UserNamespace] {
        let bench = TestLab::new("left", privilege);
        let resources = bench.create().unwrap();
        let mut child = start(&resources.hosts[1].netns);
        fs::write(resources.folder().join("control"), "").unwrap();
        assert!(matches!(bench.create(), Err(LabResourceError::Running(_))));
        assert_eq!(resources.remove().unwrap(), [] as [&str; 0]);
        assert_eq!(child.wait().unwrap().signal(), Some(15), "programs in it are ended");
        assert_eq!(fs::read_dir(bench.run.path().join("labs")).unwrap().count(), 0);
        assert_eq!(System::now(&turn), before);

        let resources = bench.create().unwrap();
        let mut child = start(&resources.hosts[0].netns);
        drop(resources);
        assert_eq!(bench.sweep(), 1, "{privilege:?}");
        assert_eq!(child.wait().unwrap().signal(), Some(15));
        assert_eq!(bench.sweep(), 0, "once");
        assert_eq!(System::now(&turn), before);
        // A killed lab does not prevent a new one of the same name.
        drop(bench.create().unwrap());
        bench.create().unwrap().remove().unwrap();
        assert_eq!(System::now(&turn), before);
    }
}

/// When, relative to a line of the journal, the switch is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kill {
    BeforeTheLine,
    BeforeTheThing,
    AfterTheThing,
}

/// Creates the resources up to the entry with that index, and stops there as if killed. `None` if there are
/// fewer entries.
fn kill_at(bench: &TestLab, number: usize, kill: Kill) -> Option<LabResourceError> {
    let folder = LabFolder::claim(bench.run.path(), &bench.lab).unwrap();
    let mut journal = LabJournal::create(folder.path()).unwrap();
    let mut count = 0;
    let mut record = |entry: &LabJournalEntry| {
        if count == number && kill == Kill::BeforeTheLine {
            return Err(LabResourceError::NotOurs(PathBuf::new()));
        }
        journal.note(entry)?;
        if count == number {
            if kill == Kill::AfterTheThing {
                make(entry);
            }
            return Err(LabResourceError::NotOurs(PathBuf::new()));
        }
        count += 1;
        Ok(())
    };
    let site = Site { run_dir: bench.run.path().to_owned(), privilege: bench.privilege };
    Built::make(&topology(), &bench.lab, &site, &mut record).err()
}

/// Creates the resource that an entry announces, if it survives its creator.
fn make(entry: &LabJournalEntry) {
    match entry {
        LabJournalEntry::Name { name } => fs::write(netns::path_of(name).unwrap(), "").unwrap(),
        LabJournalEntry::Sysctl { name, ours, .. } => proc::set_sysctl(name, ours).unwrap(),
        LabJournalEntry::Opening(_) | LabJournalEntry::NotOurs { .. } | LabJournalEntry::Namespace { .. } => {
        }
    }
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_kill_at_any_entry_of_the_journal_leaves_nothing() {
    let turn = LabTestTurn::take();
    let before = System::now(&turn);
    // The opening; for each of two hosts a namespace, and with root also its name and the list of congestion
    // controls.
    for (privilege, entries) in [(Privilege::Root, 7), (Privilege::UserNamespace, 3)] {
        let bench = TestLab::new("kill", privilege);
        for number in 0..=entries {
            for kill in [Kill::BeforeTheLine, Kill::BeforeTheThing, Kill::AfterTheThing] {
                let killed = kill_at(&bench, number, kill);
                assert_eq!(killed.is_some(), number < entries, "{killed:?}");
                assert_eq!(bench.sweep(), 1);
                assert_eq!(System::now(&turn), before, "{privilege:?}, entry {number}, {kill:?}");
            }
        }
    }
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_file_in_the_place_of_a_name_is_removed_only_if_it_is_as_we_make_it() {
    let _turn = LabTestTurn::take();
    let bench = TestLab::new("file", Privilege::Root);
    // The second entry is the first host's name.
    assert!(kill_at(&bench, 1, Kill::BeforeTheThing).is_some());
    let path = netns::path_of(&bench.lab.netns("a")).unwrap();
    fs::write(&path, "x").unwrap();
    let swept = sweep(bench.run.path()).unwrap();
    assert!(swept[0].outcome.as_ref().unwrap()[0].contains("was not removed"));
    fs::remove_file(path).unwrap();
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_taken_name_is_an_error_and_what_is_behind_it_is_never_touched() {
    let turn = LabTestTurn::take();
    let bench = TestLab::new("taken", Privilege::Root);
    let name = bench.lab.netns("b");
    for mounted in [true, false] {
        let foreign = netns::create().unwrap();
        let mut inhabitant = start(&foreign);
        if mounted {
            netns::pin(&foreign, &name).unwrap();
        } else {
            fs::write(netns::path_of(&name).unwrap(), "").unwrap();
        }
        let before = System::now(&turn);
        let error = bench.create().unwrap_err();
        assert!(error.to_string().contains(&format!("ip netns delete {name}")), "{error}");
        assert_eq!(System::now(&turn), before, "all of ours is gone, all of theirs is there");
        assert!(inhabitant.try_wait().unwrap().is_none());
        netns::unpin(&name).unwrap();
        inhabitant.kill().unwrap();
        inhabitant.wait().unwrap();
    }
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_namespace_without_our_token_is_left_alone_and_reported() {
    let _turn = LabTestTurn::take();
    for alias in [None, Some("linerate of another day")] {
        let bench = TestLab::new("token", Privilege::Root);
        drop(bench.create().unwrap());
        // Another process has removed this lab's namespace and created one of the same name.
        let name = bench.lab.netns("a");
        netns::unpin(&name).unwrap();
        let foreign = foreign(alias);
        netns::pin(&foreign, &name).unwrap();
        let mut inhabitant = start(&foreign);
        let swept = sweep(bench.run.path()).unwrap();
        let left = swept[0].outcome.as_ref().unwrap();
        assert_eq!(left.len(), 1, "{left:?}");
        assert!(left[0].contains(&name));
        assert!(inhabitant.try_wait().unwrap().is_none());
        assert!(matches!(netns::open_named(&name).unwrap(), NameState::Namespace(_)));
        assert!(matches!(netns::open_named(&bench.lab.netns("b")).unwrap(), NameState::Free));
        netns::unpin(&name).unwrap();
        inhabitant.kill().unwrap();
        inhabitant.wait().unwrap();
    }
}

/// The journal contains the inode number of a namespace; another namespace may have it by then.
#[test]
#[ignore = "needs root and network namespaces"]
fn a_program_in_a_namespace_that_only_has_the_same_number_lives_on() {
    let _turn = LabTestTurn::take();
    for alias in [None, Some("another token")] {
        let bench = TestLab::new("number", Privilege::UserNamespace);
        let foreign = foreign(alias);
        let mut inhabitant = start(&foreign);
        let NetnsId { device, inode } = NetnsId::of(&foreign).unwrap();
        let namespace = LabJournalEntry::Namespace { name: None, device, inode };
        bench.leave(proc::sysctl(undo::BOOT_ID).unwrap(), &namespace);
        assert_eq!(bench.sweep(), 1);
        assert!(inhabitant.try_wait().unwrap().is_none());
        inhabitant.kill().unwrap();
        inhabitant.wait().unwrap();
    }
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_setting_is_put_back_unless_somebody_else_has_changed_it() {
    let _turn = LabTestTurn::take();
    // In a namespace of its own, where no other test looks.
    let own = netns::create().unwrap();
    with_netns_fd(&own, || {
        let name = "net.ipv4.tcp_rmem";
        let value = || proc::sysctl(name).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        let (before, ours, theirs) = ("4096 5000 6000", "4096 5000 7000", "4096 5000 8000");
        for (boot_id, now, expected) in [
            (proc::sysctl(undo::BOOT_ID), ours, before),
            (proc::sysctl(undo::BOOT_ID), theirs, theirs),
            (Some("another day".to_owned()), ours, ours),
        ] {
            let bench = TestLab::new("setting", Privilege::Root);
            let entry =
                LabJournalEntry::Sysctl { name: name.into(), before: before.into(), ours: ours.into() };
            bench.leave(boot_id.unwrap(), &entry);
            proc::set_sysctl(name, now).unwrap();
            assert_eq!(bench.sweep(), 1);
            assert_eq!(value(), expected);
        }
    })
    .unwrap();
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_setting_that_another_lab_is_changing_is_put_back_after_that() {
    let _turn = LabTestTurn::take();
    let own = netns::create().unwrap();
    let name = "net.ipv4.tcp_rmem";
    let bench = TestLab::new("changing", Privilege::Root);
    let entry = LabJournalEntry::Sysctl {
        name: name.into(),
        before: "4096 5000 6000".into(),
        ours: "4096 5000 7000".into(),
    };
    bench.leave(proc::sysctl(undo::BOOT_ID).unwrap(), &entry);
    let inside = |act: &(dyn Fn() + Sync)| with_netns_fd(&own, act).unwrap();
    inside(&|| {
        proc::set_sysctl(name, "4096 5000 7000").unwrap();
        let held = proc::lock_sysctl(name).unwrap();
        let number = format!(":{} ", held.metadata().unwrap().ino());
        std::thread::scope(|scope| {
            let sweep = scope.spawn(|| inside(&|| assert_eq!(bench.sweep(), 1)));
            let waits = |line: &str| line.contains("-> FLOCK") && line.contains(&number);
            while !fs::read_to_string("/proc/locks").unwrap().lines().any(waits) {
                assert!(!sweep.is_finished(), "it does not wait");
            }
            proc::set_sysctl(name, "4096 5000 8000").unwrap();
            drop(held);
        });
        assert!(proc::sysctl(name).unwrap().ends_with("8000"));
    });
}

#[test]
#[ignore = "needs root and network namespaces"]
fn what_a_host_cannot_have_is_named_and_nothing_is_left() {
    let turn = LabTestTurn::take();
    let before = System::now(&turn);
    let bench = TestLab::new("cannot", Privilege::Root);
    let mut wrong = topology();
    wrong.hosts[1].congestion = Some("nosuch".to_owned());
    let error = bench.create_with(&wrong).unwrap_err().to_string();
    assert!(
        error.contains("host \"b\"") && error.contains("\"nosuch\"") && error.contains("reno"),
        "{error}"
    );
    let mut wrong = topology();
    wrong.hosts[0].sysctl.insert("ipv4.tcp_window_scaling".to_owned(), "wide".to_owned());
    let error = bench.create_with(&wrong).unwrap_err().to_string();
    assert!(error.contains("the setting net.ipv4.tcp_window_scaling = wide is not"), "{error}");
    assert_eq!(System::now(&turn), before);
    assert_eq!(fs::read_dir(bench.run.path().join("labs")).unwrap().count(), 0);
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_restricted_congestion_control_is_a_note_where_the_system_is_not_ours_to_change() {
    let _turn = LabTestTurn::take();
    let bench = TestLab::new("note", Privilege::UserNamespace);
    let resources = bench.create().unwrap();
    assert_eq!(resources.notes.len(), 2, "{:?}", resources.notes);
    assert!(
        resources.notes[0].contains("the congestion control cubic could not become the default of host a"),
        "{:?}",
        resources.notes
    );
    assert!(resources.hosts[0].path().starts_with(format!("/proc/{}/fd", std::process::id())));
    assert!(resources.hosts[0].path().exists());
    resources.remove().unwrap();
}
