//! Plans as pages show them: those that come along, and what one would do.

use linerate_web::{Ability, Access, TokenFile};
use serde_json::{Value, json};

use crate::client::TestSite;

const PREVIEW: &str = "/api/v1/plans/preview";

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
