//! Results of the points of a plan by point, flow, direction and quantity.

use std::collections::BTreeMap;

use linerate_model::{Direction, PlanRecord, PointSummary};

/// Name of a flow of a plan, and its direction.
pub(super) type FlowWay<'a> = (&'a str, Direction);

/// The summaries of a plan. If a log has one twice, the first counts.
pub(super) struct Summaries<'a> {
    pub(super) record: &'a PlanRecord,
    by_place: BTreeMap<(&'a str, &'a str, &'static str, &'a str), &'a PointSummary>,
    /// Flows and directions with summaries, in the order of the log.
    pub(super) flows: Vec<FlowWay<'a>>,
    /// Quantities, in the order of the log.
    pub(super) quantities: Vec<&'a str>,
}

impl<'a> Summaries<'a> {
    pub(super) fn of(record: &'a PlanRecord) -> Self {
        let mut summaries =
            Self { record, by_place: BTreeMap::new(), flows: Vec::new(), quantities: Vec::new() };
        for one in &record.summaries {
            let (flow, quantity) = ((one.flow.as_str(), one.direction), one.quantity.as_str());
            if !summaries.flows.contains(&flow) {
                summaries.flows.push(flow);
            }
            if !summaries.quantities.contains(&quantity) {
                summaries.quantities.push(quantity);
            }
            summaries.by_place.entry((&one.point, flow.0, flow.1.name(), quantity)).or_insert(one);
        }
        summaries
    }

    pub(super) fn find(&self, point: &str, flow: FlowWay<'_>, quantity: &str) -> Option<&'a PointSummary> {
        self.by_place.get(&(point, flow.0, flow.1.name(), quantity)).copied()
    }
}
