//! The two versioned formats: event logs and specifications.

use linerate_model::{RunRecord, TestSpec};
use linerate_report::{document, ndjson};

/// A log that decodes encodes to the same log again, and always yields a record and a result.
pub fn event_log(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let Ok(events) = ndjson::read(text) else { return };
    let mut written = Vec::new();
    for event in &events {
        assert!(ndjson::write(event, &mut written).is_ok());
    }
    let again = String::from_utf8_lossy(&written);
    assert_eq!(ndjson::read(&again).ok().as_ref(), Some(&events));
    let record = RunRecord::fold(&events);
    assert!(serde_json::to_value(document(&record)).is_ok());
}

/// A specification from the wire: one that passes its check can be planned.
pub fn spec(bytes: &[u8]) {
    let Ok(spec) = serde_json::from_slice::<TestSpec>(bytes) else { return };
    if spec.check().is_ok() {
        assert!(!spec.traffic.phases().is_empty());
        let _ = (spec.traffic.transport(), spec.traffic.measured(), spec.traffic.offered());
        let _ = spec.socket.tos_byte();
    }
    let again = serde_json::to_vec(&spec).map(|text| serde_json::from_slice(&text));
    assert!(again.is_ok_and(|again| again.is_ok_and(|again: TestSpec| again == spec)));
}
