//! Results of a plan by point, flow and quantity, as table cells.

use std::collections::BTreeMap;

use linerate_model::{
    Direction, MethodCell, MethodColumn, PlanAxis, PlanPoint, PlanRecord, PlanStart, PointSummary,
};

/// A flow in one direction, at a point.
#[derive(Debug, Clone, Copy)]
pub(super) struct FlowAtPoint<'r> {
    pub(super) point: &'r PlanPoint,
    pub(super) flow: &'r str,
    pub(super) direction: Direction,
}

/// The summaries of a plan by point, flow, direction and quantity.
pub(super) struct Points<'r> {
    pub(super) start: &'r PlanStart,
    by_place: BTreeMap<(&'r str, &'r str, &'static str, &'r str), &'r PointSummary>,
}

impl<'r> Points<'r> {
    /// The summaries of a plan; `None` if it was not started, or nothing was measured.
    pub(super) fn of(record: &'r PlanRecord) -> Option<Self> {
        let place = |one: &'r PointSummary| {
            ((one.point.as_str(), one.flow.as_str(), one.direction.name(), one.quantity.as_str()), one)
        };
        let by_place: BTreeMap<_, _> = record.summaries.iter().map(place).collect();
        let start = record.start.as_ref().filter(|_| !by_place.is_empty())?;
        Some(Self { start, by_place })
    }

    /// Every flow that is not cross traffic, in each direction that has the quantity, point by point.
    pub(super) fn flows_with(&self, quantity: &str) -> Vec<FlowAtPoint<'r>> {
        let flows = || self.start.flows.iter().filter(|flow| !flow.cross_traffic);
        let directions = [Direction::Upload, Direction::Download];
        let of_point = |point: &'r PlanPoint| {
            let of_flow =
                move |flow: &'r str| directions.map(|direction| FlowAtPoint { point, flow, direction });
            flows().flat_map(move |flow| of_flow(&flow.name))
        };
        let all = self.start.points.iter().flat_map(of_point);
        all.filter(|way| self.find(way, quantity).is_some()).collect()
    }

    pub(super) fn find(&self, way: &FlowAtPoint<'_>, quantity: &str) -> Option<&'r PointSummary> {
        self.by_place.get(&(way.point.id.as_str(), way.flow, way.direction.name(), quantity)).copied()
    }

    /// Median of the quantity.
    pub(super) fn number(&self, way: &FlowAtPoint<'_>, quantity: &str) -> Option<f64> {
        self.find(way, quantity)?.median
    }

    /// Median of the quantity with its interval.
    pub(super) fn cell(&self, way: &FlowAtPoint<'_>, quantity: &str) -> MethodCell {
        let Some(found) = self.find(way, quantity) else { return MethodCell::default() };
        let ends = found.interval.as_ref();
        MethodCell {
            low: ends.map(|ends| ends.low),
            high: ends.map(|ends| ends.high),
            ..MethodCell::number(found.median)
        }
    }

    /// The label of the point on an axis.
    pub(super) fn label(&self, point: &PlanPoint, axis: usize) -> Option<&'r str> {
        let value = point.values.get(axis)?;
        self.start.axes.get(axis)?.values.get(*value).map(|value| value.label.as_str())
    }

    /// Columns that identify a row: the axes, the flow if there are several, the direction if there are both.
    pub(super) fn naming(&self, ways: &[FlowAtPoint<'_>]) -> Naming {
        let differ =
            |of: fn(&FlowAtPoint<'_>) -> String| ways.windows(2).any(|pair| of(&pair[0]) != of(&pair[1]));
        Naming {
            axes: self.start.axes.len(),
            flow: differ(|way| way.flow.to_owned()),
            direction: differ(|way| way.direction.name().to_owned()),
        }
    }

    pub(super) fn naming_columns(&self, naming: &Naming) -> Vec<MethodColumn> {
        let axes = self.start.axes.iter().map(|axis: &PlanAxis| text_column(&axis.name));
        let flow = naming.flow.then(|| text_column("flow"));
        axes.chain(flow).chain(naming.direction.then(|| text_column("direction"))).collect()
    }

    pub(super) fn naming_cells(&self, naming: &Naming, way: &FlowAtPoint<'_>) -> Vec<MethodCell> {
        let axes = (0..naming.axes)
            .map(|axis| self.label(way.point, axis).map_or_else(MethodCell::default, MethodCell::text));
        let flow = naming.flow.then(|| MethodCell::text(way.flow));
        axes.chain(flow).chain(naming.direction.then(|| MethodCell::text(way.direction.name()))).collect()
    }
}

/// The columns that identify a row.
pub(super) struct Naming {
    axes: usize,
    flow: bool,
    direction: bool,
}

/// A column of words.
pub(super) fn text_column(name: &str) -> MethodColumn {
    MethodColumn { name: name.into(), unit: None }
}

/// A column of numbers in a unit.
pub(super) fn numbers(name: &str, unit: &str) -> MethodColumn {
    MethodColumn { name: name.into(), unit: Some(unit.into()) }
}

/// The median over several rows; `None` if no row has a value.
pub(super) fn typical(found: impl Iterator<Item = f64>) -> Option<f64> {
    linerate_theory::stats::order::median(&found.collect::<Vec<f64>>())
}
