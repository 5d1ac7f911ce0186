//! Which field of a request makes its specification invalid.

use linerate_model::{SpecError, TestSpec};
use serde_json::Value;

/// The path of the field, such as `traffic.streams`: the one without which the specification is valid, or makes
/// another error. A specification names its error as the command line does, where settings have other names.
pub(crate) fn field_at_fault(spec: &TestSpec, error: &SpecError) -> Option<String> {
    let given = serde_json::to_value(spec).ok()?;
    let default = serde_json::to_value(TestSpec::default()).ok()?;
    let named = error.knob.trim_start_matches('-').replace('-', "_");
    let mut candidates: Vec<(&str, &str)> = Vec::new();
    for (group, fields) in given.as_object()? {
        for (field, value) in fields.as_object().into_iter().flatten() {
            if default.get(group).and_then(|fields| fields.get(field)) != Some(value) {
                candidates.push((group, field));
            }
        }
    }
    // The named setting first: without another one there may be no error either.
    candidates.sort_by_key(|(_, field)| !field.starts_with(&named));
    let cures = |(group, field): &&(&str, &str)| {
        let mut without = given.clone();
        let value = default.get(group).and_then(|fields| fields.get(field)).cloned();
        let Some(fields) = without.get_mut(group).and_then(Value::as_object_mut) else { return false };
        match value {
            Some(value) => fields.insert((*field).to_owned(), value),
            None => fields.remove(*field),
        };
        let Ok(spec) = serde_json::from_value::<TestSpec>(without) else { return false };
        spec.check().and_then(|()| spec.agree()).err().is_none_or(|other| other != *error)
    };
    candidates.iter().find(cures).map(|(group, field)| format!("{group}.{field}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_units::{Bytes, Span};

    fn field(change: impl FnOnce(&mut TestSpec)) -> Option<String> {
        let mut spec = TestSpec::default();
        change(&mut spec);
        let error = spec.check().and_then(|()| spec.agree()).unwrap_err();
        field_at_fault(&spec, &error)
    }

    #[test]
    fn the_field_is_found_although_the_command_line_calls_it_differently() {
        assert_eq!(field(|spec| spec.traffic.streams = 0).as_deref(), Some("traffic.streams"));
        assert_eq!(
            field(|spec| spec.traffic.duration = Some(Span::ZERO)).as_deref(),
            Some("traffic.duration_ns")
        );
        assert_eq!(field(|spec| spec.socket.mss = Some(1)).as_deref(), Some("socket.mss_bytes"));
        assert_eq!(
            field(|spec| (spec.traffic.udp, spec.socket.congestion) = (true, Some("cubic".into())))
                .as_deref(),
            Some("socket.congestion")
        );
    }

    #[test]
    fn of_two_that_exclude_each_other_the_named_one_is_found() {
        let both = |spec: &mut TestSpec| {
            spec.traffic.bytes = Some(Bytes::new(1 << 20));
            spec.traffic.blocks = Some(4);
        };
        assert!(
            field(both).is_some_and(|field| ["traffic.bytes", "traffic.blocks"].contains(&field.as_str()))
        );
    }
}
