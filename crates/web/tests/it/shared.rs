//! Links that show one run to whoever has them.

use linerate_web::{Ability, Access, ShareKey, TokenFile};

use crate::client::TestSite;

const SHORT: &str = r#"{"to":"this host","test":{"traffic":{"duration_ns":300000000}}}"#;

#[test]
fn a_link_shows_its_run_and_no_other_until_the_key_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let file = TokenFile::new(Some(&folder.path().join("tokens"))).unwrap();
    let [view, run] =
        [Ability::View, Ability::Run].map(|ability| file.add(ability.name(), ability, None).unwrap());
    let site = TestSite::start(Access { tokens: Some(file), ..Access::default() });
    let with = |token: &str| format!("Authorization: Bearer {token}\r\n");
    let start = || {
        let reply = site.write("POST", "/api/v1/runs", &with(&run), SHORT);
        let id = reply.json()["id"].as_str().unwrap().to_owned();
        let head = with(&run);
        let live = format!(
            "GET /api/v1/runs/{id}/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{head}\r\n"
        );
        assert!(site.send(&live).body.contains("event: end"));
        id
    };
    let (first, second) = (start(), start());
    let share =
        |token: &str, id: &str| site.write("POST", &format!("/api/v1/runs/{id}/share"), &with(token), "");
    share(&view, &first).problem(403);
    site.post(&format!("/api/v1/runs/{first}/share"), "").problem(401);
    share(&run, "0000000000000000").problem(404);
    let link = share(&run, "latest").json();
    assert_eq!(link["id"], second.as_str());
    let link = share(&run, &first[..10]).json()["path"].as_str().unwrap().to_owned();
    assert!(link.starts_with(&format!("/shared/{first}/")), "{link}");
    assert_eq!(share(&run, &first).json()["path"], link.as_str(), "the link of a run stays");
    let share_for =
        |days: &str| site.write("POST", &format!("/api/v1/runs/{first}/share?days={days}"), &with(&run), "");
    let ending = share_for("7").json();
    assert!(ending["valid_until"].as_str().unwrap().ends_with("T00:00:00Z"), "{ending}");
    let ending = ending["path"].as_str().unwrap().to_owned();
    assert_ne!(ending, link);
    assert_eq!(site.get(&format!("/api/v1{ending}")).json()["id"], first.as_str());
    for wrong in ["0", "3661", "-1", "1.5", "x", "1&hours=2"] {
        share_for(wrong).problem(422);
    }

    // Without a token: the page, the result, what the page shows, and the exports.
    assert_eq!(site.get(&link).status, 200);
    let api = format!("/api/v1{link}");
    let status = site.get(&api).json();
    assert_eq!((&status["id"], &status["state"]), (&first.as_str().into(), &"ended".into()));
    assert!(site.get(&format!("{api}/view")).json()["html"].is_string());
    assert!(site.get(&format!("{api}/export/jsonl")).body.contains(&first));
    site.get(&format!("{api}/export/nothing")).problem(404);

    // Nothing else: not another run, not the words that select runs, nothing that changes something.
    let secret = link.rsplit('/').next().unwrap();
    for id in [second.as_str(), "latest", &first[..10], &first.to_uppercase()] {
        for rest in ["", "/view", "/export/json"] {
            site.get(&format!("/api/v1/shared/{id}/{secret}{rest}")).problem(404);
        }
    }
    site.get(&format!("/api/v1/runs/{first}")).problem(401);
    site.write("DELETE", &api, "", "").problem(405);
    ShareKey::new(Some(&site.folder.path().join("share.key"))).unwrap().rotate().unwrap();
    site.get(&api).problem(404);
    assert_ne!(share(&run, &first).json()["path"], link.as_str());
}
