//! Plans as pages show them: those that come along, what one would do, and how it is carried out.

use std::net::TcpListener;

use linerate_archive::Store;
use linerate_control::Token;
use linerate_runner::plan::{PlanRequest, PlanWorld, Resume};
use linerate_runner::{ArchiveSink, CancelToken, Loopback, archive_at};
use linerate_web::{Ability, Access, PlanSetup, TokenFile, WebConfig};
use serde_json::{Value, json};

use crate::client::{TestSite, config};

const PREVIEW: &str = "/api/v1/plans/preview";
const RUNS: &str = "/api/v1/plans/runs";
const SECRET: &str = "known to the agents and to the pages";

fn preview(site: &TestSite, text: &str, set: &[&str]) -> Value {
    site.post(PREVIEW, &json!({ "text": text, "set": set }).to_string()).json()
}

#[test]
fn every_plan_that_comes_along_is_listed_and_described() {
    let site = TestSite::open();
    let known = site.get("/api/v1/plans").json();
    let names: Vec<&str> =
        known["plans"].as_array().unwrap().iter().map(|plan| plan["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"bufferbloat") && names.len() > 10, "{names:?}");
    for name in names {
        let file = site.get(&format!("/api/v1/plans/{name}")).json();
        let found = preview(&site, file["text"].as_str().unwrap(), &[]);
        assert_eq!(found["mistakes"], json!([]), "{name}");
        assert!(found["text"].as_str().unwrap().starts_with(name), "{name}: {found}");
        assert!(found["trials"].as_u64().unwrap() >= found["points"].as_u64().unwrap(), "{name}: {found}");
        assert!(found["time_ns"].as_u64().unwrap() > 1_000_000_000, "{name}: {found}");
    }
    site.get("/api/v1/plans/buferbloat").problem(404);
}

#[test]
fn a_mistake_has_its_place_and_settings_are_what_a_command_takes() {
    let site = TestSite::open();
    let plan = "repeats = 2\n[lab]\ntopology = \"pair\"\n[test]\ndurations = 3\n";
    let found = preview(&site, plan, &["repeats=x"]);
    let mistakes = found["mistakes"].as_array().unwrap();
    assert_eq!((mistakes.len(), found.get("text")), (2, None), "{found}");
    let at = mistakes.iter().find(|mistake| mistake["line"] == 5).unwrap();
    assert_eq!(at["quoted"], "durations = 3");
    assert!(at["text"].as_str().unwrap().contains("duration"), "{at}");
    let setting = mistakes.iter().find(|mistake| mistake.get("line").is_none()).unwrap();
    assert_eq!(setting["quoted"], "repeats=x");
    let plan = plan.replace("durations", "duration");
    assert_eq!(preview(&site, &plan, &[])["trials"], 2);
    assert_eq!(preview(&site, &plan, &["repeats=5"])["trials"], 5);
}

#[test]
fn nobody_reads_files_of_this_host_or_occupies_it() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret.toml");
    std::fs::write(&secret, "name = \"hidden-word\"\n").unwrap();
    let site = TestSite::open();
    let include = format!("include = [{:?}]\n", secret.display().to_string());
    let topology = format!("[lab]\ntopology = {:?}\n", secret.display().to_string());
    for plan in [include, topology] {
        let found = preview(&site, &plan, &[]).to_string();
        assert!(found.contains("not read here") && !found.contains("hidden-word"), "{found}");
    }
    let many = json!({ "text": "", "set": vec!["repeats=1"; 101] }).to_string();
    assert_eq!(site.post(PREVIEW, &many).problem(422)["field"], "set");
    let long = json!({ "text": "#".repeat(64 << 10) }).to_string();
    site.post(PREVIEW, &long).problem(413);
    assert_eq!(site.post(PREVIEW, r#"{"text":3}"#).problem(422)["field"], "text");
}

#[test]
fn plans_are_for_those_who_may_view() {
    let folder = tempfile::tempdir().unwrap();
    let file = TokenFile::new(Some(&folder.path().join("tokens"))).unwrap();
    let token = file.add("viewer", Ability::View, None).unwrap();
    let site = TestSite::start(Access { tokens: Some(file), ..Access::default() });
    site.get("/api/v1/plans").problem(401);
    site.post(PREVIEW, r#"{"text":""}"#).problem(401);
    let head = format!("Authorization: Bearer {token}\r\n");
    assert!(site.write("POST", PREVIEW, &head, r#"{"text":""}"#).json()["mistakes"].is_array());
}

/// Two agents on this host, and pages that know their token.
struct PlanSite {
    site: TestSite,
    agents: [Loopback; 2],
}

impl PlanSite {
    fn open() -> Self {
        let token = Token::new(SECRET).unwrap();
        let agents = [(); 2].map(|()| Loopback::agent(token.clone()).unwrap());
        let plans = PlanSetup { agent_token: Some(token), ..PlanSetup::default() };
        Self { site: TestSite::with(WebConfig { plans, ..config(Access::default(), None) }), agents }
    }

    /// A plan between the agents, and the request for it.
    fn request(&self, rest: &str) -> Value {
        let [near, far] = [0, 1].map(|at: usize| self.agents[at].port());
        let text = format!(
            "name = \"two-points\"\n\
             host.near = {{ address = \"127.0.0.1\", port = {near} }}\n\
             host.far = {{ address = \"127.0.0.1\", port = {far} }}\n\
             flow.bulk = {{ from = \"near\", to = \"far\" }}\n{rest}"
        );
        json!({ "text": text })
    }

    fn start(&self, request: &Value) -> String {
        let reply = self.site.post(RUNS, &request.to_string());
        assert_eq!(reply.status, 201, "{reply:?}");
        let id = reply.json()["id"].as_str().unwrap().to_owned();
        assert_eq!(reply.header("location"), Some(format!("/api/v1/runs/{id}").as_str()));
        id
    }
}

#[test]
fn a_plan_is_carried_out_watched_and_archived() {
    let bed = PlanSite::open();
    let site = &bed.site;
    assert_eq!(site.get("/api/v1/session").json()["plan_worlds"], json!(["hosts"]));
    let request = bed.request("test.duration = \"500ms\"\ntest.upload = true\naxis.streams = [1, 2]\n");
    assert_eq!(site.post(PREVIEW, &request.to_string()).json()["worlds"], json!(["hosts"]));
    let id = bed.start(&request);
    let messages = site.watch(&format!("/api/v1/runs/{id}/live"), "end");
    assert_eq!(messages[0].0, "snapshot", "{messages:?}");
    let (_, seen) = messages.iter().rfind(|(kind, _)| kind == "snapshot").unwrap();
    let trials = seen["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 2, "{messages:?}");
    for (trial, (number, point)) in trials.iter().zip([(1, "streams=1"), (2, "streams=2")]) {
        assert_eq!((&trial["number"], &trial["trial"]), (&number.into(), &point.into()));
        let [goodput] = &trial["goodputs"].as_array().unwrap()[..] else { panic!("{trial}") };
        assert_eq!((&goodput["flow"], &goodput["direction"]), (&"bulk".into(), &"upload".into()));
        assert!(trial["measured"] == true && goodput["bitrate_bps"].as_f64().unwrap() > 0.0, "{trial}");
    }
    assert_eq!(messages.last().unwrap().1["outcome"], "completed");

    let status = site.get(&format!("/api/v1/runs/{id}")).json();
    let told = ["kind", "state", "target"].map(|key| status[key].as_str().unwrap().to_owned());
    assert_eq!(told, ["plan", "ended", "two-points"], "{status}");
    let listed = site.get("/api/v1/runs").json()["runs"].clone();
    let [run] = &listed.as_array().unwrap()[..] else { panic!("parts are not listed: {listed}") };
    assert_eq!(
        (&run["id"], &run["kind"], &run["outcome"]),
        (&json!(id), &json!("plan"), &json!("completed"))
    );
    let view = site.get(&format!("/api/v1/runs/{id}/view")).json();
    assert!(view["html"].as_str().unwrap().contains("<h3>streams 2</h3>"), "{view}");
    assert_eq!(site.get("/api/v1/runs?parts=true").json()["runs"].as_array().unwrap().len(), 3);
}

#[test]
fn a_plan_that_is_cancelled_keeps_what_it_has() {
    let bed = PlanSite::open();
    let id = bed.start(&bed.request("test.duration = 600\ntest.upload = true\nrepeats = 5\n"));
    // A short test waits for it, as the thread that carries out runs has one at a time.
    let after = bed.site.start_run(r#"{"to":"this host","test":{"traffic":{"duration_ns":300000000}}}"#);
    let live = format!("/api/v1/runs/{id}/live");
    let has_rate = |seen: &(String, Value)| {
        let frame = if seen.0 == "snapshot" { &seen.1["frame"] } else { &seen.1 };
        frame["flows"].as_array().is_some_and(|flows| flows.iter().any(|flow| flow["bitrate_bps"].is_f64()))
    };
    while !has_rate(bed.site.watch(&live, "frame").last().unwrap()) {}
    assert_eq!(bed.site.get(&format!("/api/v1/runs/{after}")).json()["state"], "waiting");
    assert_eq!(bed.site.post(&format!("/api/v1/runs/{id}/cancel"), "").status, 202);
    let status = bed.site.ended(&id);
    assert!(status["problem"].as_str().is_some_and(|problem| problem.contains("cancelled")), "{status}");
    assert_eq!(bed.site.ended(&after)["result"]["run"]["outcome"], "completed");
}

#[test]
fn a_plan_that_is_cancelled_before_its_hosts_answer_was_interrupted() {
    let bed = PlanSite::open();
    // It takes connections, and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut request = bed.request("test.duration = 1\ntest.upload = true\n");
    request["set"] = json!([format!("host.near.port={}", silent.local_addr().unwrap().port())]);
    let id = bed.start(&request);
    let (_connected, _) = silent.accept().unwrap();
    // Its log has not begun.
    let run = in_history(&bed.site, &id);
    assert_eq!((&run["state"], &run["kind"]), (&json!("running"), &json!("plan")), "{run}");
    assert_eq!(bed.site.post(&format!("/api/v1/runs/{id}/cancel"), "").status, 202);
    let messages = bed.site.watch(&format!("/api/v1/runs/{id}/live"), "end");
    assert_eq!(messages.last().unwrap().1, json!({ "outcome": "interrupted", "reason": "cancelled" }));
    assert_eq!(bed.site.get(&format!("/api/v1/runs/{id}")).json()["problem"], "cancelled");
    assert_eq!(in_history(&bed.site, &id)["outcome"], "interrupted");
}

#[test]
fn a_plan_that_was_completed_elsewhere_is_complete_here() {
    let bed = PlanSite::open();
    let id = bed.start(&bed.request("test.duration = 1\ntest.upload = true\nrepeats = 2\npause = 60\n"));
    let live = format!("/api/v1/runs/{id}/live");
    let has_trial = |seen: &(String, Value)| seen.1["trials"].as_array().is_some_and(|all| !all.is_empty());
    while !has_trial(bed.site.watch(&live, "snapshot").last().unwrap()) {}
    assert_eq!(bed.site.post(&format!("/api/v1/runs/{id}/cancel"), "").status, 202);
    assert!(bed.site.ended(&id)["problem"].is_string());
    let location = TestSite::archive_in(&bed.site.folder);
    let archive = || archive_at(Some(&location)).map(|found| Box::new(found) as Box<dyn Store>);
    let request = PlanRequest {
        resume: Some(Resume::Run(&id)),
        set: &["pause=0".to_owned()],
        archive: Some(&archive),
        ..PlanRequest::default()
    };
    let prepared = request.prepare().unwrap();
    let world = PlanWorld::Hosts { token: Token::new(SECRET).unwrap(), tls: None };
    let mut sink = ArchiveSink::open(Some(&location), |warning| panic!("{warning}")).unwrap();
    prepared.run(world, &CancelToken::new(), vec![&mut sink], &mut ()).unwrap();
    assert!(sink.close().unwrap());
    let status = bed.site.ended(&id);
    assert_eq!((&status["state"], status.get("problem")), (&json!("ended"), None), "{status}");
    assert_eq!(bed.site.watch(&live, "end").last().unwrap().1, json!({ "outcome": "completed" }));
}

#[test]
fn a_plan_that_cannot_be_carried_out_says_why() {
    let bed = PlanSite::open();
    let refused = |request: &Value, status: u16| bed.site.post(RUNS, &request.to_string()).problem(status);
    assert_eq!(refused(&bed.request("test.durations = 3\n"), 422)["field"], "text");
    let one_host = json!({ "text": "[lab]\ntopology = \"pair\"\n", "set": ["repeats=x"] });
    assert_eq!(refused(&one_host, 422)["field"], "set");
    assert_eq!(refused(&json!({ "text": "", "world": "twin" }), 422)["field"], "world");
    // Nothing here emulates networks.
    let lab = json!({ "text": "[lab]\ntopology = \"pair\"\n" });
    assert_eq!(refused(&lab, 403)["field"], "world");
    assert_eq!(TestSite::open().post(RUNS, &bed.request("").to_string()).problem(403)["field"], "world");
    // The agents do not know this token.
    let token = Token::new("not known to any of the agents").unwrap();
    let plans = PlanSetup { agent_token: Some(token), ..PlanSetup::default() };
    let stranger = TestSite::with(WebConfig { plans, ..config(Access::default(), None) });
    let id = stranger.post(RUNS, &bed.request("test.duration = 1\n").to_string()).json()["id"].clone();
    let status = stranger.ended(id.as_str().unwrap());
    assert!(status["problem"].as_str().is_some_and(|problem| problem.contains("token")), "{status}");
    assert_eq!(status["kind"], "plan");
    // The visitor who started it may come back tomorrow.
    let run = in_history(&stranger, id.as_str().unwrap());
    assert_eq!((&run["outcome"], &run["kind"]), (&json!("failed"), &json!("plan")), "{run}");
    let view = stranger.get(&format!("/api/v1/runs/{}/view", id.as_str().unwrap())).json();
    assert!(view["html"].as_str().unwrap().contains("token"), "{view}");
}

/// The run as the history lists it.
fn in_history(site: &TestSite, id: &str) -> Value {
    let listed = site.get("/api/v1/runs").json()["runs"].clone();
    let run = listed.as_array().unwrap().iter().find(|run| run["id"] == id);
    run.unwrap_or_else(|| panic!("{id} is not in {listed}")).clone()
}

#[test]
fn a_plan_that_is_started_twice_with_one_key_runs_once() {
    let bed = PlanSite::open();
    let request = bed.request("test.duration = \"300ms\"\ntest.upload = true\n");
    let start =
        |request: &Value| bed.site.write("POST", RUNS, "Idempotency-Key: one\r\n", &request.to_string());
    let first = start(&request).json()["id"].clone();
    assert_eq!(start(&request).json()["id"], first);
    assert_eq!(start(&bed.request("test.duration = 1\n")).problem(422)["field"], "Idempotency-Key");
    assert_eq!(bed.site.ended(first.as_str().unwrap())["state"], "ended");
}

#[test]
fn plans_are_carried_out_for_those_who_may_run_tests_and_only_where_tests_may_go() {
    let folder = tempfile::tempdir().unwrap();
    let file = TokenFile::new(Some(&folder.path().join("tokens"))).unwrap();
    let [viewer, runner] = [("viewer", Ability::View), ("runner", Ability::Run)]
        .map(|(name, ability)| file.add(name, ability, None).unwrap());
    let plans = PlanSetup { agent_token: Some(Token::new(SECRET).unwrap()), ..PlanSetup::default() };
    let targets = vec!["192.0.2.0/24".parse().unwrap()];
    let access = Access { tokens: Some(file), public: true, ..Access::default() };
    let site = TestSite::with(WebConfig { plans, targets, ..config(access, None) });
    let plan = "host.a.address = \"198.51.100.1\"\nhost.b.address = \"192.0.2.2\"\n\
                flow.x = { from = \"a\", to = \"b\" }\n";
    let start = |head: &str| site.write("POST", RUNS, head, &json!({ "text": plan }).to_string());
    start("").problem(401);
    start(&format!("Authorization: Bearer {viewer}\r\n")).problem(403);
    let refused = start(&format!("Authorization: Bearer {runner}\r\n")).problem(403);
    assert!(refused["detail"].as_str().unwrap().contains("192.0.2.0/24"), "{refused}");
}
