//! Derives rows for lists from a folded run.

use linerate_model::{FlowHead, RunRecord};
use linerate_units::Bitrate;

use crate::database::Database;
use crate::error::DatabaseFault;
use crate::value::Value;

/// Flows that one statement inserts.
const FLOWS_AT_ONCE: usize = 64;

/// Derives the rows for lists from the record of a run, in place of those that it has.
pub(crate) fn derive_rows(
    database: &mut Database,
    number: i64,
    record: &RunRecord,
) -> Result<(), DatabaseFault> {
    database.execute("DELETE FROM flow WHERE run = ?1", &[number.into()])?;
    insert_flows(database, number, record)
}

/// As [`derive_rows`], for a run that has none.
pub(crate) fn insert_flows(
    database: &mut Database,
    number: i64,
    record: &RunRecord,
) -> Result<(), DatabaseFault> {
    for heads in flow_heads(record).chunks(FLOWS_AT_ONCE) {
        let mut values: Vec<Value> = vec![number.into()];
        let mut rows = Vec::new();
        for head in heads {
            let first = values.len() + 1;
            let places: Vec<String> = (first..first + 6).map(|place| format!("?{place}")).collect();
            rows.push(format!("(?1, {})", places.join(", ")));
            values.extend([
                i64::from(head.flow.0).into(),
                head.name.as_str().into(),
                head.direction.as_str().into(),
                head.transport.as_str().into(),
                head.bitrate.map(Bitrate::bps).into(),
                head.cause.as_deref().into(),
            ]);
        }
        // A log may contain a flow twice. The record keeps both, the list only the first.
        let insert = format!(
            "INSERT INTO flow (run, flow, name, direction, transport, bitrate_bps, cause) VALUES {}
             ON CONFLICT DO NOTHING",
            rows.join(", ")
        );
        database.execute(&insert, &values)?;
    }
    database.execute("UPDATE run SET derived_at = event_count WHERE number = ?1", &[number.into()])?;
    Ok(())
}

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
