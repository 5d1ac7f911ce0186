//! The assertions of a plan as a JUnit report, which continuous integration services show: a test case for each
//! assertion at each point, flow and direction.

use std::io::Write;

use linerate_model::{Outcome, PlanRecord};
use quick_junit::{NonSuccessKind, Report, SerializeError, TestCase, TestCaseStatus, TestSuite};

use super::label;

/// Writes the report. A plan that was not completed has a test case that says why, so that it cannot pass.
///
/// # Errors
/// It cannot be written to `out`.
pub fn junit(record: &PlanRecord, out: &mut dyn Write) -> Result<(), SerializeError> {
    let plan = record.start.as_ref().map_or("plan", |start| start.name.as_str());
    let mut suite = TestSuite::new(plan);
    for judgement in &record.judgements {
        let mut status = TestCaseStatus::success();
        if !judgement.holds {
            status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_message(judgement.found.as_deref().unwrap_or("it does not hold"));
        }
        let (point, flow) = (label(record, &judgement.point), &judgement.flow);
        let name =
            format!("{} at {point}, {flow} {}", judgement.assertion.as_str(), judgement.direction.name());
        let mut case = TestCase::new(name, status);
        case.set_classname(plan);
        suite.add_test_case(case);
    }
    if record.outcome != Some(Outcome::Completed) {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
        status.set_message(record.reason.as_deref().unwrap_or("it is still running, or was killed"));
        let mut case = TestCase::new("the plan is completed", status);
        case.set_classname(plan);
        suite.add_test_case(case);
    }
    let mut report = Report::new("linerate");
    report.add_test_suite(suite);
    report.serialize(out)
}

#[cfg(test)]
mod tests {
    use linerate_model::{ForeignText, PlanJudgement};

    use super::*;
    use crate::samples_of_plans::two_axes;

    fn written(record: &PlanRecord) -> String {
        let mut out = Vec::new();
        junit(record, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// The value of an attribute in the first element that has it.
    fn attribute(text: &str, element: &str, name: &str) -> String {
        let from = text.split_once(&format!("<{element} ")).unwrap().1;
        let value = from.split_once(&format!("{name}=\"")).unwrap().1;
        value.split('"').next().unwrap().to_owned()
    }

    #[test]
    fn every_judgement_is_a_case_and_those_that_do_not_hold_are_failures() {
        let record = two_axes().1;
        let text = written(&record);
        let failed = record.judgements.iter().filter(|one| !one.holds).count();
        assert!(failed > 0 && failed < record.judgements.len());
        assert_eq!(attribute(&text, "testsuite", "tests"), record.judgements.len().to_string());
        assert_eq!(attribute(&text, "testsuite", "failures"), failed.to_string());
        assert_eq!(text.matches("<failure ").count(), failed);
        let found = record.judgements.iter().find_map(|one| one.found.as_deref()).unwrap();
        assert_eq!(attribute(&text, "failure", "message"), found);
    }

    #[test]
    fn a_plan_that_was_not_completed_cannot_pass() {
        let mut record = two_axes().1;
        record.judgements.clear();
        record.outcome = None;
        let text = written(&record);
        assert_eq!(attribute(&text, "testsuite", "errors"), "1");
        record.outcome = Some(Outcome::Completed);
        assert_eq!(attribute(&written(&record), "testsuite", "tests"), "0");
    }

    #[test]
    fn foreign_text_cannot_leave_its_attribute() {
        let mut record = two_axes().1;
        let hostile = "\"><script>&\u{1b}[31m";
        let judgement: &mut PlanJudgement = record.judgements.first_mut().unwrap();
        judgement.assertion = ForeignText::from(hostile);
        (judgement.holds, judgement.found) = (false, Some(ForeignText::from(hostile)));
        let text = written(&record);
        assert!(!text.contains("<script>") && !text.contains('\u{1b}'), "{text}");
    }
}
