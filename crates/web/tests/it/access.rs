//! Who may use the service.

use linerate_web::{Access, WebError, WebServer, WebToken};

use crate::client::{TestSite, config};

const SECRET: &str = "correct horse battery";

#[test]
fn without_a_token_nothing_is_shown_and_nothing_is_started() {
    let site = TestSite::start(Access::Token(WebToken::new(SECRET).unwrap()));
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
    let site = TestSite::start(Access::Token(WebToken::new(SECRET).unwrap()));
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
    let site = TestSite::start(Access::Token(WebToken::new(SECRET).unwrap()));
    let statuses: Vec<u16> =
        (0..12).map(|_| site.post("/api/v1/session", r#"{"token":"guess"}"#).status).collect();
    assert_eq!(statuses, [vec![401; 10], vec![429; 2]].concat());
    let refused = site.post("/api/v1/session", &format!(r#"{{"token":"{SECRET}"}}"#));
    assert_eq!(refused.header("retry-after"), Some("60"), "{refused:?}");
}

#[test]
fn the_service_does_not_start_unprotected_where_others_reach_it() {
    let open = |address: &str, insecure: bool, access: Access| {
        let address = address.parse().unwrap();
        WebServer::bind(linerate_web::WebConfig { address, insecure, ..config(access, None) })
    };
    for address in ["0.0.0.0:0", "[::]:0"] {
        let refused = open(address, false, Access::Open).unwrap_err();
        assert!(matches!(refused, WebError::Unprotected(_)) && refused.needs_correction(), "{refused}");
        assert!(refused.to_string().contains("--insecure"), "{refused}");
        assert!(open(address, true, Access::Open).is_ok());
        assert!(open(address, false, Access::Token(WebToken::new(SECRET).unwrap())).is_ok());
    }
    assert!(open("127.0.0.1:0", false, Access::Open).is_ok());
}
