//! Derives rows for lists from a folded run.

use linerate_model::{FlowHead, RunRecord};

/// The flows for lists of runs.
pub(crate) fn flow_heads(record: &RunRecord) -> Vec<FlowHead> {
    let heads = record.flows.iter().map(|flow| FlowHead {
        flow: flow.plan.flow,
        name: flow.plan.name.to_string().into(),
        direction: flow.plan.direction.name().into(),
        transport: serialised_name(&flow.plan.transport).into(),
        bitrate: flow.bitrate(),
        cause: flow.verdict.as_ref().map(|verdict| verdict.cause.name().into()),
    });
    heads.collect()
}

/// The name of a unit variant in results.
pub(crate) fn serialised_name<T: serde::Serialize>(value: &T) -> String {
    let json = serde_json::to_value(value).unwrap_or_default();
    json.as_str().unwrap_or_default().to_owned()
}
