//! Tokens, sessions, and what visitors may do with them.

use super::*;

const SECRET: &str = "0123456789abcdef";
const HOME: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

fn access() -> AccessControl {
    let token = Some(WebToken::new(&format!(" {SECRET}\n")).unwrap());
    AccessControl::new(Access { token, ..Access::default() }, true, false).unwrap()
}

/// A service that knows the tokens of a file.
fn listing() -> (tempfile::TempDir, TokenFile, AccessControl) {
    let folder = tempfile::tempdir().unwrap();
    let file = TokenFile::new(Some(&folder.path().join("tokens"))).unwrap();
    let access = Access { tokens: Some(file.clone()), ..Access::default() };
    (folder, file, AccessControl::new(access, false, false).unwrap())
}

fn with(name: header::HeaderName, value: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(name, value.parse().unwrap());
    headers
}

fn bearer(token: &str) -> HeaderMap {
    with(header::AUTHORIZATION, &format!("Bearer {token}"))
}

/// The result of what a handler awaits.
fn now<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}

fn abilities(access: &AccessControl, headers: &HeaderMap) -> Vec<Ability> {
    now(access.visitor(headers, HOME)).unwrap().abilities()
}

fn refusal(access: &AccessControl, ability: Ability, headers: &HeaderMap) -> u16 {
    now(access.permit(ability, headers, HOME)).unwrap_err().status
}

#[test]
fn an_open_service_asks_nobody() {
    let access = AccessControl::new(Access::default(), true, false).unwrap();
    assert_eq!(abilities(&access, &HeaderMap::new()), Ability::ALL);
    assert!(!access.needs_token());
    let elsewhere = AccessControl::new(Access::default(), false, false).unwrap();
    assert_eq!(abilities(&elsewhere, &HeaderMap::new()), []);
    let insecure = Access { insecure: true, ..Access::default() };
    assert_eq!(
        abilities(&AccessControl::new(insecure, false, false).unwrap(), &HeaderMap::new()),
        Ability::ALL
    );
}

#[test]
fn the_token_opens_and_another_one_does_not() {
    let access = access();
    assert_eq!(refusal(&access, Ability::View, &HeaderMap::new()), 401);
    assert!(now(access.permit(Ability::Admin, &bearer(SECRET), HOME)).is_ok());
    assert_eq!(refusal(&access, Ability::View, &bearer("0123456789abcdeg")), 401);
    assert_eq!(WebToken::new("0123456789abcde"), Err(TokenTooShort));
    assert_eq!(format!("{:?}", access.token), "Some(WebToken)");
}

#[test]
fn a_token_gives_its_ability_and_those_below_it() {
    let (_folder, file, access) = listing();
    let tokens = Ability::ALL.map(|ability| file.add(ability.name(), ability, None).unwrap());
    for (at, token) in tokens.iter().enumerate() {
        assert_eq!(abilities(&access, &bearer(token)), Ability::ALL[..=at]);
        for above in &Ability::ALL[at + 1..] {
            let problem = now(access.permit(*above, &bearer(token), HOME)).unwrap_err();
            assert_eq!(problem.status, 403);
            assert!(problem.detail.contains(&format!("--ability {}", above.name())), "{problem:?}");
        }
    }
    // The id alone, or with the secret of another token, opens nothing.
    let mixed = format!("{}{}", &tokens[2][..12], &tokens[0][12..]);
    for wrong in [&tokens[0][..12], &mixed, &tokens[0].to_uppercase()] {
        assert_eq!(refusal(&access, Ability::View, &bearer(wrong)), 401, "{wrong}");
    }
}

#[test]
fn a_token_that_was_verified_is_not_computed_again_until_the_file_changes() {
    let (_folder, file, access) = listing();
    let token = file.add("robot", Ability::Run, None).unwrap();
    assert!(now(access.permit(Ability::Run, &bearer(&token), HOME)).is_ok());
    // Without a permit nothing can be computed.
    let taken = now(Arc::clone(&access.verifications).acquire_owned()).unwrap();
    assert!(now(access.permit(Ability::Run, &bearer(&token), HOME)).is_ok());
    file.add("other", Ability::View, None).unwrap();
    let second = async {
        let within = Duration::from_millis(50);
        tokio::time::timeout(within, access.permit(Ability::Run, &bearer(&token), HOME)).await
    };
    let waits = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(second);
    assert!(waits.is_err(), "it is computed again: {waits:?}");
    drop(taken);
    assert!(now(access.permit(Ability::Run, &bearer(&token), HOME)).is_ok());
    assert!(!format!("{access:?}").contains(&token));
}

#[test]
fn a_session_ends_when_its_token_is_removed() {
    let (_folder, file, access) = listing();
    let token = file.add("laptop", Ability::Run, None).unwrap();
    file.add("other", Ability::View, None).unwrap();
    let set = now(access.sign_in(&token, HOME)).unwrap();
    let cookie = with(header::COOKIE, set.split(';').next().unwrap());
    let visitor = now(access.permit(Ability::Run, &cookie, HOME)).unwrap();
    assert!(access.still_sees(&visitor));
    assert_eq!(refusal(&access, Ability::Admin, &cookie), 403);
    file.remove("laptop").unwrap();
    assert!(!access.still_sees(&visitor));
    assert_eq!(refusal(&access, Ability::View, &cookie), 401);
    assert_eq!(refusal(&access, Ability::View, &bearer(&token)), 401);
    // Another token with the old name is not the old one.
    file.add("laptop", Ability::Run, None).unwrap();
    assert_eq!(refusal(&access, Ability::View, &cookie), 401);
}

#[test]
fn a_token_that_has_expired_opens_nothing_any_more_and_its_sessions_end() {
    let (_folder, file, access) = listing();
    let token = file.add("guest", Ability::Run, Some(1)).unwrap();
    let set = now(access.sign_in(&token, HOME)).unwrap();
    let cookie = with(header::COOKIE, set.split(';').next().unwrap());
    let visitor = now(access.permit(Ability::Run, &cookie, HOME)).unwrap();
    assert_eq!(access.name_of(&visitor), "with the token guest");
    // A day later, as the file sees it.
    let until = file.list().unwrap().remove(0).until.unwrap();
    let text = std::fs::read_to_string(file.path()).unwrap().replace(&until, "2026-01-01T00:00:00Z");
    linerate_runner::whole_private_file(file.path(), text.as_bytes()).unwrap();
    assert!(!access.still_sees(&visitor));
    assert_eq!(refusal(&access, Ability::View, &cookie), 401);
    for given in [&token, &token] {
        let problem = now(access.permit(Ability::View, &bearer(given), HOME)).unwrap_err();
        assert_eq!((problem.status, problem.detail.contains("has expired, at 2026-01-01")), (401, true));
    }
    assert_eq!(now(access.sign_in(&token, HOME)).unwrap_err().status, 401);
    // Whoever has only its id learns nothing, and the service stays closed.
    let guess = format!("{}{}", &token[..12], "0".repeat(64));
    assert!(
        !now(access.permit(Ability::View, &bearer(&guess), HOME)).unwrap_err().detail.contains("expired")
    );
    assert!(access.needs_token());
}

#[test]
fn the_first_token_closes_an_open_service_and_removing_the_last_one_does_not_open_it() {
    let (_folder, file, _) = listing();
    let access = Access { tokens: Some(file.clone()), ..Access::default() };
    let access = AccessControl::new(access, true, false).unwrap();
    let nobody = HeaderMap::new();
    let set = now(access.sign_in("anything", HOME)).unwrap();
    assert_eq!(abilities(&access, &nobody), Ability::ALL);
    file.add("laptop", Ability::View, None).unwrap();
    assert_eq!(abilities(&access, &nobody), []);
    assert_eq!(abilities(&access, &with(header::COOKIE, set.split(';').next().unwrap())), []);
    file.remove("laptop").unwrap();
    assert_eq!(abilities(&access, &nobody), []);
    assert!(access.needs_token());
}

#[test]
fn strangers_of_a_public_service_see_results_and_do_nothing_else() {
    let (_folder, file, _) = listing();
    for (is_loopback, insecure) in [(true, false), (false, false), (false, true)] {
        let access = Access { tokens: Some(file.clone()), public: true, insecure, ..Access::default() };
        let access = AccessControl::new(access, is_loopback, false).unwrap();
        let nobody = HeaderMap::new();
        assert_eq!(abilities(&access, &nobody), [Ability::View]);
        assert!(access.needs_token());
        assert_eq!(refusal(&access, Ability::Run, &nobody), 401);
        assert_eq!(refusal(&access, Ability::Admin, &nobody), 401);
        let token = file.add("laptop", Ability::Run, None).unwrap();
        assert!(now(access.permit(Ability::Run, &bearer(&token), HOME)).is_ok());
        assert_eq!(abilities(&access, &nobody), [Ability::View]);
        file.remove("laptop").unwrap();
        assert_eq!(refusal(&access, Ability::View, &bearer(&token)), 401);
    }
}

#[test]
fn a_file_that_becomes_unusable_opens_nothing() {
    use std::os::unix::fs::PermissionsExt;
    let (_folder, file, access) = listing();
    let token = file.add("laptop", Ability::Admin, None).unwrap();
    let set = now(access.sign_in(&token, HOME)).unwrap();
    let cookie = with(header::COOKIE, set.split(';').next().unwrap());
    std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(refusal(&access, Ability::View, &bearer(&token)), 503);
    assert_eq!(refusal(&access, Ability::View, &cookie), 401);
    std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o600)).unwrap();
    assert!(now(access.permit(Ability::Admin, &cookie, HOME)).is_ok());
}

#[test]
fn a_session_lasts_until_it_is_ended() {
    let access = access();
    assert_eq!(now(access.sign_in("wrong", HOME)).unwrap_err().field.as_deref(), Some("token"));
    let set = now(access.sign_in(SECRET, HOME)).unwrap();
    assert!(set.contains("HttpOnly; SameSite=Strict"), "{set}");
    let pair = set.split(';').next().unwrap();
    let headers = with(header::COOKIE, &format!("theme=dark; {pair}"));
    assert_eq!(abilities(&access, &headers), Ability::ALL);
    assert_eq!(abilities(&access, &with(header::COOKIE, &format!("{pair}0"))), []);
    assert!(access.sign_out(&headers).contains("Max-Age=0"));
    assert_eq!(abilities(&access, &headers), []);
}

#[test]
fn what_a_visitor_watches_ends_with_the_session() {
    let access = access();
    let signed_in = || {
        let set = now(access.sign_in(SECRET, HOME)).unwrap();
        let headers = with(header::COOKIE, set.split(';').next().unwrap());
        (now(access.permit(Ability::View, &headers, HOME)).unwrap(), headers)
    };
    let (visitor, headers) = signed_in();
    let (other, _) = signed_in();
    assert!(access.still_sees(&visitor));
    access.sign_out(&headers);
    assert!(!access.still_sees(&visitor));
    assert!(access.still_sees(&other), "another session of the same token goes on");
    assert!(!access.sees_at(&other, clock::now() + SESSION_LIFETIME));
    // A token in the request itself has no session that could end.
    let program = now(access.permit(Ability::View, &bearer(SECRET), HOME)).unwrap();
    assert!(access.sees_at(&program, clock::now() + SESSION_LIFETIME));
}

#[test]
fn sessions_do_not_grow_without_end() {
    let access = access();
    for _ in 0..MAX_SESSIONS + 50 {
        now(access.sign_in(SECRET, HOME)).unwrap();
    }
    assert_eq!(locked(&access.sessions).len(), MAX_SESSIONS);
}

#[test]
fn whoever_guesses_has_to_wait_and_others_do_not() {
    let access = access();
    let guess = |from: &str| now(access.sign_in("wrong", from.parse().unwrap())).unwrap_err().status;
    for _ in 0..MAX_TRIES {
        assert_eq!(guess("2001:db8:0:100::1"), 401);
    }
    let refused = now(access.sign_in(SECRET, "2001:db8:0:1ff:ffff::7".parse().unwrap())).unwrap_err();
    assert_eq!((refused.status, refused.retry_after), (429, Some(60)));
    assert_eq!(guess("2001:db8:0:200::1"), 401, "the neighbour has tries of its own");
    assert!(now(access.sign_in(SECRET, HOME)).is_ok());
    for number in 0..MAX_TRIERS as u128 * 2 {
        let address = IpAddr::from((0x2001_0db9_u128 << 96 | number << 72).to_be_bytes());
        let _ = now(access.sign_in("wrong", address));
    }
    assert!(locked(&access.tries).len() <= MAX_TRIERS);
}

#[test]
fn wrong_secrets_of_a_known_id_are_counted_and_right_ones_are_not() {
    let (_folder, file, access) = listing();
    let token = file.add("laptop", Ability::View, None).unwrap();
    for _ in 0..MAX_TRIES * 2 {
        assert!(now(access.permit(Ability::View, &bearer(&token), HOME)).is_ok());
    }
    let wrong = bearer(&format!("{}0", &token[..20]));
    let statuses: Vec<u16> = (0..=MAX_TRIES).map(|_| refusal(&access, Ability::View, &wrong)).collect();
    assert_eq!(statuses, [vec![401; MAX_TRIES as usize], vec![429]].concat());
}
