//! Emulated networks as pages show them. Their switch is one of this test, which answers what the test wants.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use linerate_runner::lab::control_protocol::{
    Answer, Ask, DirectionStatus, HistoryInterval, LinkStatus, PortHistory, PortSeries, Status,
};
use linerate_sock::clock;
use linerate_sock::journal::Lock;
use linerate_web::{Ability, Access, PlanSetup, TokenFile, WebConfig};
use serde_json::{Value, json};

use crate::client::{EventStreamReader, TestSite, config};

const SECOND: u64 = 1_000_000_000;

/// A lab in the folder of labs, whose switch is a thread of the test.
struct FakeLab {
    folder: tempfile::TempDir,
    status: Arc<Mutex<Status>>,
    /// How often its status was asked for.
    asked: Arc<AtomicUsize>,
    lock: Option<Lock>,
}

impl FakeLab {
    fn up() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let lab = folder.path().join("labs/pair");
        fs::create_dir_all(&lab).unwrap();
        let lock = Lock::take(&lab.join("lock")).unwrap().unwrap();
        let status = Arc::new(Mutex::new(status()));
        let (listener, shown) = (UnixListener::bind(lab.join("control")).unwrap(), Arc::clone(&status));
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut line = String::new();
                BufReader::new(&stream).read_line(&mut line).unwrap();
                let answer = match serde_json::from_str(&line).unwrap() {
                    Ask::PortHistory { to_ns, .. } => Answer::PortHistory(history(to_ns)),
                    _ => {
                        count.fetch_add(1, Ordering::Relaxed);
                        Answer::Status(Box::new(shown.lock().unwrap().clone()))
                    }
                };
                let _ = writeln!(&stream, "{}", serde_json::to_string(&answer).unwrap());
            }
        });
        Self { folder, status, asked, lock: Some(lock) }
    }

    fn run_dir(&self) -> &Path {
        self.folder.path()
    }

    /// What its switch answers from now on.
    fn now(&self, change: impl FnOnce(&mut Status)) {
        change(&mut self.status.lock().unwrap());
    }

    fn down(&mut self) {
        fs::remove_file(self.folder.path().join("labs/pair/control")).unwrap();
        self.lock.take();
    }
}

/// Two hosts at a switch, of which the second has a slow line; four ports.
fn status() -> Status {
    let direction = |rate: f64| DirectionStatus {
        rate_bps: Some(rate),
        drain_bps: Some(rate / 2.0),
        buffer_bytes: 100_000,
        delay_ns: 0,
    };
    let link = |host: &str, rate: f64| LinkStatus {
        name: host.to_owned(),
        ends: [host.to_owned(), "s".to_owned()],
        members: 1,
        directions: [direction(rate), direction(rate)],
    };
    let port = |name: &str| {
        json!({
            "link": name.replace(['s', '>'], ""), "rate_bps": 1e9, "wire_bps": 0.0, "pps": 0.0, "busy": 0.0,
            "dropped": 0, "name": name, "packets": 0, "bytes": 0, "wire_bytes": 0, "busy_ns": 0,
            "queue_bytes": 0, "queue_max_bytes": 0, "peak_bytes": 0, "dropped_queue": 0, "dropped_policer": 0,
            "dropped_wire": 0, "dropped_too_big": 0, "marked": 0, "duplicated": 0, "reordered": 0,
        })
    };
    let host = |name: &str, last: u8| {
        json!({ "name": name, "address": format!("10.77.0.{last}/24"), "address6": format!("fd77::{last}/64"),
                "netns": format!("linerate-pair-{name}") })
    };
    let whole = json!({
        "name": "pair", "topology": "pair", "seed": 1, "pid": 7, "rootless": false, "up_ns": 100 * SECOND,
        "hosts": [host("a", 1), host("b", 2)], "switches": ["s"],
        "links": [link("a", 1e9), link("b", 1e8)],
        "ports": [port("a>s"), port("s>a"), port("b>s"), port("s>b")],
        "packet_accounting": { "entered": 0, "made": 0, "delivered": 0, "dropped": 0, "filtered": 0, "held": 0 },
        "keeping_up": { "frames": 5, "late_p50_ns": 0, "late_p99_ns": 0, "late_max_ns": 0, "late": 1,
                        "bound_ns": 250_000, "cpu": 0.25, "refused": 0, "malformed": 0, "overrun": 0 },
        "notes": ["b has no ECN"],
    });
    serde_json::from_value(whole).unwrap()
}

/// Three seconds ago 700 bytes waited at the last port for a tenth of a second, and 900 a minute before that.
fn history(to_ns: u64) -> PortHistory {
    let interval = |ago: u64, queue_max_bytes: u64| HistoryInterval {
        start_ns: to_ns.saturating_sub(ago + SECOND / 10),
        end_ns: to_ns.saturating_sub(ago),
        packets: 1,
        bytes: 100,
        wire_bytes: 120,
        dropped: 0,
        marked: 0,
        queue_bytes: 0,
        queue_max_bytes,
        busy: None,
    };
    let intervals = vec![interval(63 * SECOND, 900), interval(3 * SECOND, 700)];
    let ports = vec![PortSeries { name: "s>b".to_owned(), intervals }];
    PortHistory { ports, late: None, packet_rate: None }
}

fn site(lab: &FakeLab, access: Access) -> TestSite {
    let plans = PlanSetup { run_dir: Some(lab.run_dir().to_owned()), ..PlanSetup::default() };
    TestSite::with(WebConfig { plans, ..config(access, None) })
}

#[test]
fn a_lab_that_is_up_is_listed_and_described_and_one_that_was_killed_is_not() {
    let mut lab = FakeLab::up();
    fs::create_dir_all(lab.run_dir().join("labs/killed")).unwrap();
    File::create(lab.run_dir().join("labs/killed/lock")).unwrap();
    let site = site(&lab, Access::default());
    assert_eq!(site.get("/api/v1/labs").json(), json!({ "labs": [{ "name": "pair" }] }));
    lab.now(|status| status.ports[3].dropped = 9);
    let found = site.get("/api/v1/labs/pair").json();
    assert_eq!(
        found["hosts"][1],
        json!({ "name": "b", "address": "10.77.0.2/24", "address6": "fd77::2/64" })
    );
    assert_eq!(found["switches"], json!(["s"]));
    assert_eq!(found["links"][1]["ends"], json!(["b", "s"]));
    let slow = json!({ "rate_bps": 1e8, "drain_bps": 5e7, "buffer_bytes": 100_000, "delay_ns": 0 });
    assert_eq!(found["links"][1]["directions"], json!([slow, slow]));
    assert_eq!(found["frame"]["ports"][3]["dropped"], 9);
    assert_eq!(found["frame"]["switch"]["late"], 1);
    assert_eq!(found["notes"], json!(["b has no ECN"]));
    for name in ["killed", "none", "..%2Fpair", "Pair"] {
        site.get(&format!("/api/v1/labs/{name}")).problem(404);
        site.get(&format!("/api/v1/labs/{name}/live")).problem(404);
    }
    lab.down();
    assert_eq!(site.get("/api/v1/labs").json(), json!({ "labs": [] }));
}

#[test]
fn the_queues_of_the_last_minute_are_where_they_were() {
    let lab = FakeLab::up();
    let site = site(&lab, Access::default());
    let found = site.get("/api/v1/labs/pair").json();
    let history = |key: &str| found["history"][key].as_array().unwrap().clone();
    let (at, queues) = (history("at_ns"), history("queue_max_bytes"));
    assert_eq!((at.len(), queues.len()), (120, 4), "{found}");
    let busy: Vec<(u64, u64)> = std::iter::zip(&at, queues[3].as_array().unwrap())
        .map(|(at, queue)| (at.as_u64().unwrap(), queue.as_u64().unwrap()))
        .filter(|(_, queue)| *queue > 0)
        .collect();
    // Of the two, only one is younger than a minute; it may be in one of two steps.
    assert_eq!(busy.len(), 1, "{busy:?}");
    let ago = 100 * SECOND - busy[0].0;
    assert!(busy[0].1 == 700 && (2 * SECOND..=3 * SECOND).contains(&ago), "{busy:?}");
}

/// Reads until a message has what is waited for; its data.
fn until(stream: &mut EventStreamReader, is_it: impl Fn(&str, &Value) -> bool) -> Value {
    loop {
        let (kind, data) = stream.next();
        if is_it(&kind, &data) {
            return data;
        }
        assert_ne!(kind, "end", "{data}");
    }
}

#[test]
fn viewers_see_frames_a_changed_link_and_the_end() {
    let mut lab = FakeLab::up();
    let site = site(&lab, Access::default());
    let mut viewers = [(); 2].map(|()| site.stream("/api/v1/labs/pair/live"));
    for viewer in &mut viewers {
        let (kind, first) = viewer.next();
        assert_eq!(
            (kind.as_str(), &first["links"][1]["directions"][0]["rate_bps"]),
            ("snapshot", &json!(1e8))
        );
    }
    lab.now(|status| status.ports[3].dropped = 4);
    for viewer in &mut viewers {
        let is_news = |kind: &str, data: &Value| {
            assert_eq!(kind, "frame", "nothing else has changed: {data}");
            data["ports"][3]["dropped"] == 4
        };
        until(viewer, is_news);
    }
    lab.now(|status| status.links[1].directions[0].rate_bps = Some(5e7));
    for viewer in &mut viewers {
        let changed = until(viewer, |kind, _| kind == "snapshot");
        assert_eq!(changed["links"][1]["directions"][0]["rate_bps"], 5e7);
    }
    lab.down();
    for viewer in &mut viewers {
        let end = until(viewer, |kind, _| kind == "end");
        assert_eq!(end, json!({ "reason": "the network is down" }));
    }
    site.get("/api/v1/labs/pair/live").problem(404);
}

#[test]
fn a_lab_that_is_started_again_under_its_name_begins_a_new_course() {
    let lab = FakeLab::up();
    let site = site(&lab, Access::default());
    let mut viewer = site.stream("/api/v1/labs/pair/live");
    assert_eq!(viewer.next().1["history"]["at_ns"].as_array().unwrap().len(), 120);
    lab.now(|status| {
        status.up_ns = Some(SECOND);
        status.ports.truncate(2);
        status.links.truncate(1);
    });
    let fresh = until(&mut viewer, |kind, _| kind == "snapshot");
    let at = fresh["history"]["at_ns"].as_array().unwrap();
    assert!(!at.is_empty() && at.iter().all(|at| *at == SECOND), "{fresh}");
    assert_eq!(fresh["history"]["queue_max_bytes"].as_array().unwrap().len(), 2, "{fresh}");
}

#[test]
fn a_lab_of_the_kernel_is_shown_without_counts() {
    let lab = FakeLab::up();
    lab.now(|status| {
        (status.pid, status.up_ns) = (None, None);
        status.ports.clear();
    });
    let site = site(&lab, Access::default());
    let found = site.get("/api/v1/labs/pair").json();
    assert_eq!((&found["backend"], &found["frame"]), (&json!("kernel"), &json!({ "ports": [] })));
    assert_eq!(found["history"], json!({ "at_ns": [], "queue_max_bytes": [] }));
}

#[test]
fn a_lab_of_another_version_is_named_so() {
    let lab = FakeLab::up();
    lab.now(|status| status.links.clear());
    let site = site(&lab, Access::default());
    let problem = site.get("/api/v1/labs/pair").problem(404);
    assert!(problem["detail"].as_str().unwrap().contains("another version of linerate"), "{problem}");
}

#[test]
fn members_of_a_lag_have_queues_of_their_own() {
    let lab = FakeLab::up();
    lab.now(|status| {
        status.links[1].members = 2;
        let member =
            |queue: u64| json!({ "packets": 0, "wire_bytes": 0, "queue_bytes": queue, "dropped_queue": 0 });
        let members = [member(7), member(30)].map(|member| serde_json::from_value(member).unwrap());
        status.ports[3].counts.members = members.to_vec();
    });
    let site = site(&lab, Access::default());
    let found = site.get("/api/v1/labs/pair").json();
    assert_eq!(found["frame"]["ports"][3]["members_queue_bytes"], json!([7, 30]));
    assert_eq!(found["frame"]["ports"][2].get("members_queue_bytes"), None);
}

#[test]
fn a_switch_is_asked_once_for_all_viewers_and_by_nobody_after_them() {
    let lab = FakeLab::up();
    let site = site(&lab, Access::default());
    let began = clock::now();
    let mut viewers: Vec<EventStreamReader> = (0..8).map(|_| site.stream("/api/v1/labs/pair/live")).collect();
    for viewer in &mut viewers {
        until(viewer, |kind, _| kind == "frame");
    }
    // Every half second, and once at the beginning.
    let most = 2 + clock::now().since(began).as_millis() as usize / 500;
    assert!(lab.asked.load(Ordering::Relaxed) <= most, "{:?} asked, at most {most}", lab.asked);
    drop(viewers);
    let deadline = clock::now() + crate::client::TIMEOUT;
    loop {
        let before = lab.asked.load(Ordering::Relaxed);
        clock::sleep_until(clock::now() + Duration::from_millis(1600));
        if lab.asked.load(Ordering::Relaxed) == before {
            break;
        }
        assert!(!deadline.has_passed(), "the switch is asked without viewers");
    }
    // Somebody who comes later is served again.
    assert_eq!(site.stream("/api/v1/labs/pair/live").next().0, "snapshot");
}

#[test]
fn labs_are_for_those_who_may_view() {
    let lab = FakeLab::up();
    let folder = tempfile::tempdir().unwrap();
    let file = TokenFile::new(Some(&folder.path().join("tokens"))).unwrap();
    let token = file.add("viewer", Ability::View, None).unwrap();
    let site = site(&lab, Access { tokens: Some(file), ..Access::default() });
    for path in ["/api/v1/labs", "/api/v1/labs/pair", "/api/v1/labs/pair/live"] {
        site.get(path).problem(401);
    }
    let head = format!("Authorization: Bearer {token}\r\n");
    assert_eq!(site.write("GET", "/api/v1/labs/pair", &head, "").json()["name"], "pair");
}
