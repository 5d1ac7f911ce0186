//! Requests about settings, in virtual time.

use linerate_units::{Span, Timestamp};

use super::settings::{SettingInForce, SettingsAnswer, SettingsOrder, SettingsRequest};
use super::tests::{AgentEnds, TICKET, alone, job, secret};
use super::{About, AgentDialogue, AgentInput, AgentOutput};
use crate::PeerError;

fn order(names: &[(&str, &str)]) -> Box<SettingsOrder> {
    let values = names.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    Box::new(SettingsOrder { interface: None, towards: vec!["b".into()], values })
}

fn apply() -> SettingsRequest {
    SettingsRequest::Apply(order(&[("mtu", "9000")]))
}

fn in_force() -> Box<SettingsAnswer> {
    let setting = SettingInForce {
        setting: "mtu".into(),
        interface: Some("eth0".into()),
        found: "1500".into(),
        now: "9000".into(),
    };
    Box::new(SettingsAnswer { in_force: vec![setting], troubles: Vec::new() })
}

/// The error of a refused request, from the coordinator's end or from the agent's.
fn refused(pair: &mut AgentEnds, input: AgentInput<'_>) -> String {
    let asked = pair.coordinator.input(pair.now, input);
    asked.and_then(|()| pair.settle()).unwrap_err().to_string()
}

#[test]
fn settings_are_checked_applied_and_put_back() {
    let mut pair = AgentEnds::at_work();
    let check = SettingsRequest::Check(order(&[("mtu", "9000"), ("qdisc", "fq limit 5")]));
    for (request, answer) in [
        (check, Box::new(SettingsAnswer { troubles: vec!["no fq".into()], ..SettingsAnswer::default() })),
        (apply(), in_force()),
        (SettingsRequest::Restore, Box::default()),
    ] {
        pair.ask(AgentInput::Settings(request.clone()));
        assert!(
            matches!(&pair.asked[..], [AgentOutput::Settings(asked)] if *asked == request),
            "{:?}",
            pair.asked
        );
        pair.agent_input(AgentInput::SettingsDone(answer.clone()));
        assert!(
            matches!(&pair.at_coordinator[..], [AgentOutput::SettingsDone(received)] if *received == answer),
            "{:?}",
            pair.at_coordinator
        );
        pair.forget();
    }
    pair.ask(AgentInput::Release);
    assert!(matches!(pair.asked[..], [AgentOutput::Release]));
}

#[test]
fn what_can_be_set_is_asked_without_a_place_but_not_set() {
    let mut pair = AgentEnds::new(Some(secret()), secret());
    pair.settle().unwrap();
    pair.agent_input(AgentInput::About(Box::new(About { settings: vec!["mtu".into()], ..About::default() })));
    assert!(matches!(&pair.at_coordinator[..], [AgentOutput::Welcomed(about)] if about.settings == ["mtu"]));
    pair.forget();
    pair.ask(AgentInput::Settings(SettingsRequest::Check(order(&[("mtu", "9000")]))));
    assert_eq!(pair.asked.len(), 1);
    pair.agent_input(AgentInput::SettingsDone(Box::default()));
    let error = refused(&mut pair, AgentInput::Settings(apply()));
    assert!(error.contains("without a place"), "{error}");
}

#[test]
fn settings_and_runs_are_never_under_way_at_once() {
    let mut pair = AgentEnds::at_work();
    pair.ask(AgentInput::Prepare(job(1)));
    let error = refused(&mut pair, AgentInput::Settings(apply()));
    assert!(error.contains("its runs are in progress"), "{error}");
    let mut pair = AgentEnds::at_work();
    pair.ask(AgentInput::Settings(apply()));
    let error = refused(&mut pair, AgentInput::Prepare(job(1)));
    assert!(error.contains("settings are being changed"), "{error}");
    let mut pair = AgentEnds::at_work();
    pair.ask(AgentInput::Settings(apply()));
    assert!(refused(&mut pair, AgentInput::Release).contains("'release' at the wrong time"));
}

#[test]
fn one_request_at_a_time_and_of_a_size_that_can_be() {
    let mut pair = AgentEnds::at_work();
    pair.ask(AgentInput::Settings(apply()));
    let error = pair.coordinator.input(pair.now, AgentInput::Settings(apply())).unwrap_err();
    assert!(matches!(error, PeerError::Local { .. }), "{error}");
    let names: Vec<String> = (0..65).map(|number| format!("x{number}")).collect();
    let many: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "1")).collect();
    let mut pair = AgentEnds::at_work();
    let error = refused(&mut pair, AgentInput::Settings(SettingsRequest::Apply(order(&many))));
    assert!(error.contains("more than 64"), "{error}");
}

#[test]
fn an_answer_that_nobody_asked_for_ends_the_dialogue_and_a_late_word_is_passed_over() {
    let mut pair = AgentEnds::at_work();
    pair.agent_input(AgentInput::SettingsDone(in_force()));
    assert!(pair.at_coordinator.is_empty(), "{:?}", pair.at_coordinator);
    let text = br#"{"type":"settings","in_force":[],"troubles":[]}"#;
    let bytes = [&u32::try_from(text.len()).unwrap().to_be_bytes()[..], text].concat();
    let error = pair.coordinator.input(pair.now, AgentInput::Bytes(&bytes)).unwrap_err();
    assert!(error.to_string().contains("that was not made"), "{error}");
}

#[test]
fn settings_that_are_never_done_end_both_ends() {
    let mut pair = AgentEnds::at_work();
    pair.ask(AgentInput::Settings(apply()));
    // Both are alive, but the agent's program hangs: the agent gives up first.
    let error = pair.pass(Span::from_secs(61)).unwrap_err();
    assert!(error.to_string().contains("changing settings"), "{error}");
    // A coordinator alone does not wait forever.
    let mut pair = AgentEnds::at_work();
    pair.ask(AgentInput::Settings(apply()));
    let (error, waited) = alone(&mut pair.coordinator, pair.now);
    assert!(waited <= Span::from_secs(6), "{error} {waited}");
    assert!(pair.coordinator.deadline().is_some_and(|deadline| deadline > Timestamp::START));
}

#[test]
fn the_place_is_still_the_coordinators_after_settings() {
    let mut pair = AgentEnds::at_work();
    pair.ask(AgentInput::Settings(apply()));
    pair.agent_input(AgentInput::SettingsDone(in_force()));
    pair.ask(AgentInput::Prepare(job(1)));
    assert!(matches!(&pair.asked[1..], [AgentOutput::Prepare(asked)] if asked.ticket == Some(TICKET)));
}
