//! The calendar of a fleet, over HTTP.

use linerate_archive::{Calendar, RunFilter};
use linerate_fleet::{FleetCalendar, FleetCoordinator, PairRequest, ScheduleRequest, fleet_file, now};
use linerate_model::calendar::{CalendarRunState, CellResult, FleetAgentState, UnixTime};
use linerate_units::{Bitrate, Span};
use linerate_web::{Ability, Access, TokenFile, WebConfig};
use serde_json::{Value, json};

use crate::client::{TestSite, config};

/// Describes a fleet in the archive of a site, and adds a schedule.
fn describe(site: &TestSite) {
    let location = TestSite::archive_in(&site.folder);
    let text =
        "name = \"campus\"\n[host.a]\naddress = \"a\"\n[host.b]\naddress = \"b\"\n[mesh.m]\nevery = \"1h\"\n";
    let file = fleet_file::Source { name: "campus.toml".to_owned(), text: text.to_owned() };
    let inventory = fleet_file::read(&file, &|_| Ok(Vec::new())).unwrap();
    let mut number = 0;
    let new_id = Box::new(move || {
        number += 1;
        Ok(format!("run-{number}"))
    });
    let calendar = Calendar::open(&location).unwrap();
    let mut coordinator = FleetCoordinator::new(calendar, "one".to_owned(), inventory, new_id);
    coordinator.tick(now(), &mut Vec::new()).unwrap();
    let request = ScheduleRequest {
        name: "often".to_owned(),
        pair: PairRequest { from: "a".to_owned(), to: "b".to_owned(), ..PairRequest::default() },
        every: Some(Span::from_secs(600)),
        ..ScheduleRequest::default()
    };
    FleetCalendar::open(Some(&location)).unwrap().add(&request, now()).unwrap();
    coordinator.tick(now(), &mut Vec::new()).unwrap();
}

#[test]
fn an_archive_without_a_fleet_says_so_and_stays_as_it_is() {
    let site = TestSite::open();
    for path in ["fleet", "agents", "meshes", "schedules", "alarms", "meshes/m/a/b", "schedules/s/why"] {
        site.get(&format!("/api/v1/{path}")).problem(404);
    }
    let archive = linerate_archive::open(&TestSite::archive_in(&site.folder)).unwrap();
    assert!(Calendar::existing(archive).unwrap().is_none());
}

#[test]
fn visitors_see_the_fleet_and_those_who_may_run_tests_change_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = TokenFile::new(Some(&folder.path().join("tokens"))).unwrap();
    let [view, run] =
        [Ability::View, Ability::Run].map(|ability| file.add(ability.name(), ability, None).unwrap());
    let site = TestSite::start(Access { tokens: Some(file), ..Access::default() });
    describe(&site);
    let with = |token: &str| format!("Authorization: Bearer {token}\r\n");
    let get = |path: &str| {
        let head = with(&view);
        site.send(&format!(
            "GET /api/v1/{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{head}\r\n"
        ))
    };
    site.get("/api/v1/fleet").problem(401);
    let fleet = get("fleet").json();
    assert_eq!((&fleet["schema"], &fleet["name"]), (&"linerate.fleet/1".into(), &"campus".into()));
    assert_eq!(fleet["agents"].as_array().unwrap().len(), 2);
    assert_eq!(fleet["schedules"]["all"], 3);
    let meshes = get("meshes").json();
    assert_eq!(meshes["meshes"][0]["cells"].as_array().unwrap().len(), 2);
    assert_eq!(get("meshes/m/a/b").json()["schema"], "linerate.calendar/1");
    get("meshes/m/a/c").problem(404);
    let why = get("schedules/often/why").json();
    assert!(why["obstacles"].is_array() && why["next"]["state"] == "booked", "{why}");
    get("schedules/offten/why").problem(404);
    let change = |token: &str, path: &str| site.write("POST", &format!("/api/v1/{path}"), &with(token), "");
    change(&view, "schedules/often/pause").problem(403);
    let paused = change(&run, "schedules/often/pause").json();
    assert!(paused["done"] == "paused" && paused["cancelled"].as_u64().unwrap() > 0, "{paused}");
    let kinds: Vec<String> = get("schedules/often/why").json()["obstacles"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["kind"].as_str().unwrap().to_owned())
        .collect();
    assert!(kinds.contains(&"paused".to_owned()), "{kinds:?}");
    assert_eq!(change(&run, "schedules/often/resume").json()["done"], "resumed");
    let booked = get("schedules").json();
    let id = booked["runs"][0]["run"].as_str().unwrap().to_owned();
    assert_eq!(change(&run, &format!("calendar/runs/{id}/cancel")).json()["cancelled"], 1);
    change(&run, &format!("calendar/runs/{id}/cancel")).problem(409);
    change(&run, "calendar/runs/nothing/cancel").problem(404);
    // The beginning of a name is no name.
    let other = get("schedules").json()["runs"][0]["run"].as_str().unwrap().to_owned();
    for beginning in ["r", "run-", &other[..other.len() - 1]] {
        change(&run, &format!("calendar/runs/{beginning}/cancel")).problem(404);
    }
}

#[test]
fn schedules_and_meshes_come_page_by_page() {
    let site = TestSite::open();
    describe(&site);
    let get = |path: &str| site.get(&format!("/api/v1/{path}"));
    let names = |page: &Value| -> Vec<String> {
        let schedules = page["schedules"].as_array().unwrap();
        schedules.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    let first = get("schedules?limit=2").json();
    assert_eq!(
        (names(&first), &first["next"]),
        (vec!["m.a.b".to_owned(), "m.b.a".to_owned()], &"m.b.a".into())
    );
    let second = get("schedules?limit=2&after=m.b.a").json();
    assert_eq!((names(&second), &second["next"]), (vec!["often".to_owned()], &Value::Null));
    // It is booked every ten minutes, and one of these runs is listed.
    let runs = second["runs"].as_array().unwrap();
    assert!(runs.len() == 1 && runs[0]["schedule"] == "often" && runs[0]["state"] == "booked", "{second}");
    assert_eq!(names(&get("schedules").json()).len(), 3);
    let meshes = get("meshes?limit=1").json();
    assert_eq!((&meshes["meshes"][0]["mesh"], &meshes["next"]), (&"m".into(), &Value::Null));
    assert_eq!(get("meshes?after=m").json()["meshes"], json!([]));
    get("meshes?after=n").problem(404);
    for list in ["schedules", "meshes"] {
        for limit in [0, 501] {
            let problem = get(&format!("{list}?limit={limit}")).problem(422);
            assert_eq!((&problem["field"], &problem["limit"]), (&"limit".into(), &500.into()));
        }
        get(&format!("{list}?beginning=a")).problem(422);
    }
}

/// A site whose visitors have these abilities, with the heads of their requests.
fn site_for<const N: usize>(abilities: [Ability; N]) -> (TestSite, tempfile::TempDir, [String; N]) {
    let folder = tempfile::tempdir().unwrap();
    let file = TokenFile::new(Some(&folder.path().join("tokens"))).unwrap();
    let heads = abilities.map(|ability| {
        let token = file.add(ability.name(), ability, None).unwrap();
        format!("Authorization: Bearer {token}\r\n")
    });
    let site = TestSite::start(Access { tokens: Some(file), ..Access::default() });
    describe(&site);
    (site, folder, heads)
}

#[test]
fn administrators_add_and_remove_schedules() {
    let (site, _folder, [run, admin]) = site_for([Ability::Run, Ability::Admin]);
    let add = |head: &str, body: &Value| site.write("POST", "/api/v1/schedules", head, &body.to_string());
    let new = json!({
        "name": "nightly", "from": "a", "to": "b", "cron": "0 3 * * *", "zone": "Europe/Berlin", "slip": "30m",
        "quiet": ["Mon-Fri 08:00-18:00"], "priority": 5, "alarm": {"below_bps": 9e8, "failure": true},
        "test": {"traffic": {"duration_ns": 2_000_000_000_u64, "streams": 4}}
    });
    add(&run, &new).problem(403);
    let added = add(&admin, &new);
    assert_eq!((added.status, added.header("location")), (201, Some("/api/v1/schedules/nightly")));
    let schedule = added.json()["schedules"][0].clone();
    let expected = [
        ("name", json!("nightly")),
        ("when", json!({"cron": "0 3 * * *"})),
        ("zone", json!("Europe/Berlin")),
        ("slip_ns", json!(1_800_000_000_000_u64)),
        ("quiet", json!(["Mon-Fri 08:00-18:00"])),
        ("priority", json!(5)),
        ("alarm", json!({"below_bps": 9e8, "failure": true})),
    ];
    for (field, value) in expected {
        assert_eq!(schedule[field], value, "{field}: {schedule}");
    }
    assert_eq!(schedule["test"]["traffic"]["streams"], 4);
    // The calendar has it.
    let why = site.send(&format!(
        "GET /api/v1/schedules/nightly/why HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{run}\r\n"
    ));
    assert_eq!(why.json()["schedule"], schedule);
    let again = add(&admin, &new).problem(409);
    assert_eq!(again["field"], "name");
    let remove =
        |head: &str, name: &str| site.write("DELETE", &format!("/api/v1/schedules/{name}"), head, "");
    remove(&run, "nightly").problem(403);
    assert_eq!(remove(&admin, "nightly").json()["done"], "removed");
    remove(&admin, "nightly").problem(404);
    let of_mesh = remove(&admin, "m.a.b").problem(422);
    assert!(of_mesh["detail"].as_str().unwrap().contains("belongs to the mesh"), "{of_mesh}");
}

#[test]
fn a_schedule_that_can_never_run_is_refused_with_the_field_to_blame() {
    let (site, _folder, [admin]) = site_for([Ability::Admin]);
    let cases = [
        ("name", json!({"name": "Not a name"})),
        ("from", json!({"from": "c"})),
        ("to", json!({"to": "c"})),
        ("to", json!({"to": "a"})),
        ("every", json!({"every": "1s"})),
        ("every", json!({"every": "soon"})),
        ("every", json!({"every": "12s"})),
        ("every", json!({"every": null})),
        ("every", json!({"cron": "0 3 * * *"})),
        ("cron", json!({"every": null, "cron": "0 0 30 2 *"})),
        ("at", json!({"every": null, "at": "2001-01-01 00:00"})),
        ("at", json!({"every": null, "at": "tomorrow"})),
        ("jitter", json!({"every": null, "cron": "0 3 * * *", "jitter": "1m"})),
        ("last", json!({"last": "never"})),
        ("every", json!({"zone": "Mars/Base"})),
        ("priority", json!({"priority": 10})),
        ("name", json!({"name": "x".repeat(301)})),
        ("test.traffic.streams", json!({"test": {"traffic": {"streams": 0}}})),
        ("test.traffic.duration_ns", json!({"test": {"traffic": {"bytes": 1}}})),
    ];
    for (field, change) in cases {
        let mut body = json!({"name": "one", "from": "a", "to": "b", "every": "15m"});
        body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let problem = site.write("POST", "/api/v1/schedules", &admin, &body.to_string()).problem(422);
        assert_eq!(problem["field"], field, "{change}: {problem}");
        let detail = problem["detail"].as_str().unwrap();
        // A wrong test is described as everywhere.
        let said = field == "test.traffic.streams" || !detail.contains("--");
        assert!(said, "an option of the command line: {detail}");
    }
}

#[test]
fn monitoring_gets_the_pairs_of_meshes_under_their_own_names() {
    let site = TestSite::open();
    describe(&site);
    let location = TestSite::archive_in(&site.folder);
    let mut calendar = Calendar::open(&location).unwrap();
    let booked = calendar.read(|calendar| calendar.runs(&RunFilter::default())).unwrap();
    let run = booked.iter().find(|run| run.schedule == "m.a.b").unwrap();
    let goodput = Bitrate::from_bps(8e6);
    let result = CellResult { goodput, ..CellResult::default() };
    let ended = UnixTime::from_ms(1_800_000_000_000);
    calendar
        .write(|calendar| calendar.end_run(&run.id, CalendarRunState::Finished, "", Some(&result), ended))
        .unwrap();
    calendar
        .write(|calendar| {
            calendar.enroll_agent("a", "KEY-A", ended)?;
            calendar.enroll_agent("b", "KEY-B", ended)?;
            calendar.note_agent("a", &FleetAgentState { waiting: 3, ..FleetAgentState::default() }, ended)
        })
        .unwrap();
    let agents = site.get("/api/v1/agents").json();
    let [a, b] = &agents["agents"].as_array().unwrap()[..] else { panic!("{agents}") };
    assert_eq!(
        (&a["state"], &a["waiting"], &a["heard"]),
        (&"ready".into(), &3.into(), &"2027-01-15T08:00:00Z".into())
    );
    assert_eq!((&b["state"], &b["heard"]), (&"never heard".into(), &Value::Null));
    let text = site.get("/metrics").body;
    for line in [
        r#"linerate_fleet_agent_seen_timestamp_seconds{agent="a"} 1800000000.0"#,
        r#"linerate_fleet_agent_waiting_results{agent="a"} 3"#,
        r#"linerate_fleet_agent_ready{agent="a"} 1"#,
        r#"linerate_fleet_agent_ready{agent="b"} 0"#,
        r#"linerate_fleet_goodput_bytes_per_second{mesh="m",src="a",dst="b"} 1000000.0"#,
        r#"linerate_fleet_last_run_timestamp_seconds{mesh="m",src="a",dst="b"} 1800000000.0"#,
        r#"linerate_fleet_last_run_success{mesh="m",src="a",dst="b"} 1"#,
        "linerate_fleet_coordinator 1",
        "linerate_fleet_schedules_paused 0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    assert!(!text.contains(r#"src="b",dst="a""#), "{text}");
}

#[test]
fn monitoring_gets_schedules_without_a_mesh_and_agents_that_are_silent() {
    let site = TestSite::open();
    describe(&site);
    let mut calendar = Calendar::open(&TestSite::archive_in(&site.folder)).unwrap();
    let booked = calendar.read(|calendar| calendar.runs(&RunFilter::default())).unwrap();
    let run = booked.iter().find(|run| run.schedule == "often").unwrap();
    let result = CellResult { goodput: Bitrate::from_bps(8e6), ..CellResult::default() };
    let ended = UnixTime::from_ms(1_800_000_000_000);
    calendar
        .write(|calendar| {
            calendar.end_run(&run.id, CalendarRunState::Finished, "", Some(&result), ended)?;
            for (agent, key, heard) in [("a", "KEY-A", 121), ("b", "KEY-B", 60)] {
                calendar.enroll_agent(agent, key, ended)?;
                let seen = now().before(Span::from_secs(heard));
                calendar.note_agent(agent, &FleetAgentState::default(), seen)?;
            }
            Ok(())
        })
        .unwrap();
    let text = site.get("/metrics").body;
    for line in [
        r#"linerate_fleet_agent_ready{agent="a"} 0"#,
        r#"linerate_fleet_agent_ready{agent="b"} 1"#,
        r#"linerate_fleet_schedule_goodput_bytes_per_second{schedule="often",src="a",dst="b"} 1000000.0"#,
        r#"linerate_fleet_schedule_last_run_timestamp_seconds{schedule="often",src="a",dst="b"} 1800000000.0"#,
        r#"linerate_fleet_schedule_last_run_success{schedule="often",src="a",dst="b"} 1"#,
        "linerate_fleet_schedules_left_out 0",
        "linerate_fleet_pairs_left_out 0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    assert!(!text.contains(r#"schedule="m.a.b""#), "{text}");
}

#[test]
fn a_schedule_sends_to_a_group_only_where_tests_may() {
    let targets = vec!["239.1.0.0/16".parse().unwrap()];
    let site = TestSite::with(WebConfig { targets, ..config(Access::default(), None) });
    describe(&site);
    let add = |group: &str| {
        let test = json!({ "traffic": { "udp": true, "multicast": group } });
        let body = json!({ "name": "rtp", "from": "a", "to": "b", "every": "15m", "test": test });
        site.write("POST", "/api/v1/schedules", "", &body.to_string())
    };
    assert_eq!(add("239.9.9.9").problem(403)["field"], "test.traffic.multicast");
    assert_eq!(add("239.1.2.3").status, 201);
}
