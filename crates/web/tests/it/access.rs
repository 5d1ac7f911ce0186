//! Who may use the service.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use linerate_sock::clock;
use linerate_web::{Ability, Access, TokenFile, WebError, WebServer, WebToken};

use crate::client::{TestSite, config};

const SECRET: &str = "correct horse battery";

fn with_token() -> Access {
    Access { token: Some(WebToken::new(SECRET).unwrap()), ..Access::default() }
}

/// A file of tokens that does not exist yet.
fn token_file() -> (tempfile::TempDir, TokenFile) {
    let folder = tempfile::tempdir().unwrap();
    let file = TokenFile::new(Some(&folder.path().join("tokens"))).unwrap();
    (folder, file)
}

#[test]
fn without_a_token_nothing_is_shown_and_nothing_is_started() {
    let site = TestSite::start(with_token());
    for path in [
        "/api/v1/hosts",
        "/api/v1/runs",
        "/api/v1/runs/latest",
        "/api/v1/runs/latest/live",
        "/api/v1/runs/latest/view",
        "/api/v1/runs/latest/events",
        "/api/v1/runs/latest/export/json",
        "/api/v1/compare/view?before=a&after=b",
        "/api/v1/live",
        "/metrics",
    ] {
        let reply = site.get(path);
        assert_eq!(reply.problem(401)["type"], "/problems/sign-in-needed", "{path}");
        assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
    }
    site.post("/api/v1/runs", r#"{"to":"this host"}"#).problem(401);
    site.post("/api/v1/runs/latest/cancel", "").problem(401);
    site.post("/api/v1/envelope", r#"{"link":"1G"}"#).problem(401);
    site.post("/api/v1/check", r#"{"rate":"941M"}"#).problem(401);
    site.write("PUT", "/api/v1/runs/latest/tags/mine", "", "").problem(401);
    site.write("DELETE", "/api/v1/runs/latest", "", "").problem(401);
    // What has no results is for everybody: whether the service lives, its pages, and who is asking.
    for path in ["/healthz", "/", "/history", "/assets/web.js", "/api/v1/openapi.json"] {
        assert_eq!(site.get(path).status, 200, "{path}");
    }
    let session = site.get("/api/v1/session").json();
    assert_eq!(
        (session["needs_token"].as_bool(), session["abilities"].as_array().unwrap().len()),
        (Some(true), 0)
    );
}

#[test]
fn the_token_opens_for_programs_and_a_session_for_browsers() {
    let site = TestSite::start(with_token());
    let with = |headers: &str| {
        site.send(&format!(
            "GET /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n\r\n"
        ))
    };
    assert_eq!(with(&format!("Authorization: Bearer {SECRET}")).status, 200);
    assert_eq!(with(&format!("Authorization: bearer {SECRET}")).status, 200);
    with("Authorization: Bearer correct horse battery!").problem(401);
    with("Authorization: Basic Y29ycmVjdA==").problem(401);
    with("Cookie: linerate_session=00000000000000000000000000000000").problem(401);
    let wrong = site.post("/api/v1/session", r#"{"token":"wrong"}"#);
    assert_eq!(wrong.problem(401)["field"], "token");
    let signed_in = site.post("/api/v1/session", &format!(r#"{{"token":"{SECRET}"}}"#));
    assert_eq!(signed_in.status, 204, "{signed_in:?}");
    let cookie = signed_in.header("set-cookie").unwrap().to_owned();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    let cookie = format!("Cookie: {}", cookie.split(';').next().unwrap());
    assert_eq!(with(&cookie).status, 200);
    assert_eq!(with(&cookie.replace("Cookie: ", "Cookie: linerate_session=old; ")).status, 200);
    let out = site.write("DELETE", "/api/v1/session", &format!("{cookie}\r\n"), "");
    assert_eq!(out.status, 204);
    with(&cookie).problem(401);
}

#[test]
fn a_guesser_is_stopped() {
    let site = TestSite::start(with_token());
    let statuses: Vec<u16> =
        (0..12).map(|_| site.post("/api/v1/session", r#"{"token":"guess"}"#).status).collect();
    assert_eq!(statuses, [vec![401; 10], vec![429; 2]].concat());
    let refused = site.post("/api/v1/session", &format!(r#"{{"token":"{SECRET}"}}"#));
    assert_eq!(refused.header("retry-after"), Some("60"), "{refused:?}");
}

#[test]
fn the_service_does_not_start_unprotected_where_others_reach_it() {
    let open = |address: &str, access: Access| {
        let address = address.parse().unwrap();
        WebServer::bind(linerate_web::WebConfig { address, ..config(access, None) })
    };
    let (_folder, file) = token_file();
    let listed = Access { tokens: Some(file.clone()), ..Access::default() };
    for address in ["0.0.0.0:0", "[::]:0"] {
        for access in [Access::default(), listed.clone()] {
            let refused = open(address, access).unwrap_err();
            assert!(matches!(refused, WebError::Unprotected(_)) && refused.needs_correction(), "{refused}");
            assert!(refused.to_string().contains("--insecure"), "{refused}");
            assert!(refused.to_string().contains("linerate token add"), "{refused}");
        }
        assert!(open(address, Access { insecure: true, ..Access::default() }).is_ok());
        assert!(open(address, with_token()).is_ok());
        let public = Access { public: true, ..Access::default() };
        assert!(matches!(open(address, public.clone()), Err(WebError::Unprotected(_))));
        assert!(open(address, Access { insecure: true, ..public }).is_ok());
    }
    assert!(open("127.0.0.1:0", Access::default()).is_ok());
    file.add("laptop", Ability::View, None).unwrap();
    assert!(open("0.0.0.0:0", listed.clone()).is_ok());
    std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o644)).unwrap();
    let exposed = open("0.0.0.0:0", listed).unwrap_err();
    assert!(exposed.needs_correction() && exposed.to_string().contains("chmod 600"), "{exposed}");
}

#[test]
fn each_ability_opens_what_it_is_for() {
    let (_folder, file) = token_file();
    let [view, run, admin] = [Ability::View, Ability::Run, Ability::Admin]
        .map(|ability| file.add(ability.name(), ability, None).unwrap());
    let site = TestSite::start(Access { tokens: Some(file.clone()), ..Access::default() });
    let with = |token: &str| format!("Authorization: Bearer {token}\r\n");
    let start = |token: &str| site.write("POST", "/api/v1/runs", &with(token), r#"{"to":"127.0.0.1:9"}"#);
    let get = |token: &str, path: &str| {
        let head = with(token);
        site.send(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{head}\r\n"))
    };
    let refused = start(&view).problem(403);
    assert_eq!(refused["type"], "/problems/ability-needed", "{refused}");
    assert!(refused["detail"].as_str().unwrap().contains("--ability run"), "{refused}");
    site.write("POST", "/api/v1/runs/latest/cancel", &with(&view), "").problem(403);
    site.write("PUT", "/api/v1/runs/latest/tags/mine", &with(&view), "").problem(403);
    // Nothing is measured or changed.
    assert_eq!(site.write("POST", "/api/v1/envelope", &with(&view), r#"{"link":"1G"}"#).status, 200);
    assert_eq!(site.write("POST", "/api/v1/check", &with(&view), r#"{"rate":"941M"}"#).status, 200);
    assert_eq!(get(&view, "/api/v1/runs").status, 200);

    let started = start(&run);
    assert_eq!(started.status, 201, "{started:?}");
    let id = started.json()["id"].as_str().unwrap().to_owned();
    for _ in 0..600 {
        if get(&run, &format!("/api/v1/runs/{id}")).json()["state"] == "ended" {
            break;
        }
        clock::sleep_until(clock::now() + Duration::from_millis(100));
    }
    let delete = |token: &str| site.write("DELETE", &format!("/api/v1/runs/{id}"), &with(token), "");
    delete(&run).problem(403);
    assert_eq!(get(&view, &format!("/api/v1/runs/{id}")).status, 200);
    let deleted = delete(&admin);
    assert_eq!(deleted.status, 204, "{deleted:?}");
    let session = get(&run, "/api/v1/session").json();
    assert_eq!(session["abilities"], serde_json::json!(["view", "run"]), "{session}");
    assert_eq!((&session["signed_in"], &session["needs_token"]), (&true.into(), &true.into()));
}

#[test]
fn a_removed_token_ends_its_sessions_and_its_streams() {
    let (_folder, file) = token_file();
    let token = file.add("laptop", Ability::View, None).unwrap();
    let site = TestSite::start(Access { tokens: Some(file.clone()), ..Access::default() });
    let signed_in = site.post("/api/v1/session", &format!(r#"{{"token":"{token}"}}"#));
    assert_eq!(signed_in.status, 204, "{signed_in:?}");
    let cookie = signed_in.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let get = |path: &str| {
        format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nCookie: {cookie}\r\n\r\n")
    };
    assert_eq!(site.send(&get("/api/v1/runs")).status, 200);
    let mut stream = site.connect();
    stream.write_all(get("/api/v1/live").as_bytes()).unwrap();
    let mut first = [0; 1];
    stream.read_exact(&mut first).unwrap();
    file.remove("laptop").unwrap();
    site.send(&get("/api/v1/runs")).problem(401);
    // Within the time after which a stream says that it lives.
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
}

#[test]
fn strangers_of_a_public_service_see_results_and_start_cancel_and_delete_nothing() {
    let (_folder, file) = token_file();
    let token = file.add("laptop", Ability::Run, None).unwrap();
    let site = TestSite::start(Access { tokens: Some(file), public: true, ..Access::default() });
    let bearer = format!("Authorization: Bearer {token}\r\n");
    let started = site.write("POST", "/api/v1/runs", &bearer, r#"{"to":"this host"}"#);
    let id = started.json()["id"].as_str().unwrap().to_owned();
    let session = site.get("/api/v1/session").json();
    assert_eq!(session["abilities"], serde_json::json!(["view"]), "{session}");
    assert_eq!((&session["signed_in"], &session["needs_token"]), (&false.into(), &true.into()));
    assert!(session["browser_test"]["port"].is_number(), "{session}");
    assert_eq!(site.get(&format!("/api/v1/runs/{id}")).status, 200);
    for (method, path, body) in [
        ("POST", "/api/v1/runs".to_owned(), r#"{"to":"127.0.0.1"}"#),
        ("POST", "/api/v1/runs".to_owned(), r#"{"to":"this host"}"#),
        ("POST", format!("/api/v1/runs/{id}/cancel"), ""),
        ("DELETE", format!("/api/v1/runs/{id}"), ""),
    ] {
        let refused = site.write(method, &path, "", body);
        assert_eq!(refused.problem(401)["type"], "/problems/sign-in-needed", "{method} {path}");
    }
    assert_ne!(site.get(&format!("/api/v1/runs/{id}")).json()["state"], "ended", "nobody has cancelled it");
    assert_eq!(site.write("POST", &format!("/api/v1/runs/{id}/cancel"), &bearer, "").status, 202);
}
