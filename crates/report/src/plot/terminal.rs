//! Curves as text: braille dots between two axes.

use linerate_model::RunRecord;
use ratatui_core::buffer::{Buffer, Cell};
use ratatui_core::layout::Rect;
use ratatui_core::symbols::Marker;
use ratatui_core::widgets::Widget;
use ratatui_widgets::chart::{Axis, Chart, Dataset, GraphType};

use super::{Curve, curves, size_tick};
use crate::layout::{TextLayout, TextRole, wrap};
use crate::sizes::series;

/// Lines of a curve including its axis.
const LINES: u16 = 15;

/// Narrowest and widest curve, columns.
const MIN_WIDTH: usize = 40;
const MAX_WIDTH: usize = 120;

/// Columns of a tick's text on the lower axis.
const TICK_WIDTH: usize = 12;

/// Rate and time over size, for a terminal of the view's width; empty if there is nothing to draw.
#[must_use]
pub fn terminal(record: &RunRecord, view: &TextLayout) -> String {
    let mut out = String::new();
    for curve in series(record).filter_map(|flow| curves(record, flow)).flatten() {
        out.push('\n');
        for line in wrap(&format!("{} over message size", curve.title), view.columns()) {
            out.push_str(&view.ink(TextRole::Faint, &line));
            out.push('\n');
        }
        for line in drawn(&curve, view.columns().clamp(MIN_WIDTH, MAX_WIDTH)) {
            out.push_str(line.trim_end());
            out.push('\n');
        }
    }
    out
}

fn drawn(curve: &Curve, columns: usize) -> Vec<String> {
    let area = Rect::new(0, 0, columns as u16, LINES);
    let (low, high, step) = size_axis(curve.sizes, columns);
    let ticks = (0..=(high - low) / step).map(|at| size_tick(low + at * step));
    let x_axis = Axis::default().bounds([f64::from(low), f64::from(high)]).labels(ticks.collect::<Vec<_>>());
    let (bottom, top) = curve.values;
    let ticks = (bottom..=top).map(curve.tick);
    let y_axis =
        Axis::default().bounds([f64::from(bottom), f64::from(top)]).labels(ticks.collect::<Vec<_>>());
    let line = |graph, marker| Dataset::default().marker(marker).graph_type(graph).data(&curve.points);
    let datasets = vec![line(GraphType::Line, Marker::Braille)];
    let mut buffer = Buffer::empty(area);
    Chart::new(datasets).x_axis(x_axis).y_axis(y_axis).legend_position(None).render(area, &mut buffer);
    let row = |y| (0..area.width).filter_map(|x| buffer.cell((x, y)).map(Cell::symbol)).collect();
    (0..area.height).map(row).collect()
}

/// Ends of the lower axis and the distance of its ticks, in powers of two: the distance must divide the range.
pub(super) fn size_axis((low, high): (i32, i32), columns: usize) -> (i32, i32, i32) {
    let most = (columns / TICK_WIDTH).clamp(2, 10) as i32;
    let step = ((high - low) + most - 1) / most;
    let step = step.max(1);
    (low, low + (high - low + step - 1) / step * step, step)
}
