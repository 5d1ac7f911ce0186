//! Curves as a picture.

use linerate_model::RunRecord;
use plotters::coord::Shift;
use plotters::drawing::DrawingAreaErrorKind;
use plotters::prelude::{
    BLACK, ChartBuilder, Circle, Color, DrawingArea, IntoDrawingArea, LineSeries, PathElement, RGBColor,
    SVGBackend, WHITE,
};

use super::{Curve, curves, size_tick};
use crate::layout::harmless;
use crate::sizes::series;
use crate::text::heading;

/// Size of the picture, in pixels.
const SIZE: (u32, u32) = (960, 840);

/// A blue that differs from the grid in brightness too.
const LINE: RGBColor = RGBColor(0, 72, 150);

/// Height of letters: title, axes, ticks; in pixels.
const LETTERS: [u32; 3] = [18, 15, 13];

type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

/// The series of a run as an SVG picture: rate and time over size; absent where there is nothing to draw.
#[must_use]
pub fn svg(record: &RunRecord) -> Option<String> {
    let (flow, curves) = series(record).find_map(|flow| Some((flow, curves(record, flow)?)))?;
    let mut head = heading(record);
    head.insert(1, flow.plan.name.clone());
    let pieces = head.iter().filter(|piece| !piece.is_empty()).map(|piece| harmless(piece));
    let mut picture = String::new();
    draw(&mut picture, &pieces.collect::<Vec<_>>().join("   "), &curves).ok()?;
    Some(picture)
}

fn draw(picture: &mut String, head: &str, curves: &[Curve]) -> Drawn {
    let whole = SVGBackend::with_string(picture, SIZE).into_drawing_area();
    whole.fill(&WHITE)?;
    let below = whole.titled(head, ("sans-serif", LETTERS[0]))?;
    let areas = below.split_evenly((curves.len(), 1));
    for (area, curve) in areas.iter().zip(curves) {
        draw_one(area, curve)?;
    }
    whole.present()
}

fn draw_one(area: &DrawingArea<SVGBackend<'_>, Shift>, curve: &Curve) -> Drawn {
    let (left, right) = curve.sizes;
    let (bottom, top) = curve.values;
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .x_label_area_size(48)
        .y_label_area_size(92)
        .build_cartesian_2d(f64::from(left)..f64::from(right), f64::from(bottom)..f64::from(top))?;
    chart
        .configure_mesh()
        .x_desc("message size (bytes)")
        .y_desc(curve.title.as_str())
        .axis_desc_style(("sans-serif", LETTERS[1]))
        .label_style(("sans-serif", LETTERS[2]))
        .x_labels(ticks(right - left, 12))
        .y_labels(ticks(top - bottom, 8))
        .x_label_formatter(&|power| whole_power(*power).map_or_else(String::new, size_tick))
        .y_label_formatter(&|power| whole_power(*power).map_or_else(String::new, curve.tick))
        .max_light_lines(1)
        .draw()?;
    let whiskers = curve.intervals.iter().map(|(size, low, high)| {
        PathElement::new(vec![(*size, *low), (*size, *high)], BLACK.stroke_width(1))
    });
    chart.draw_series(whiskers)?;
    chart.draw_series(LineSeries::new(curve.points.iter().copied(), LINE.stroke_width(2)))?;
    chart.draw_series(curve.points.iter().map(|point| Circle::new(*point, 2, LINE.filled())))?;
    Ok(())
}

/// So many ticks that they stand at whole powers.
fn ticks(powers: i32, most: i32) -> usize {
    usize::try_from(powers.clamp(1, most)).unwrap_or(1) + 1
}

/// A tick at a whole power; the others stay without a text.
fn whole_power(power: f64) -> Option<i32> {
    let whole = power.round();
    ((power - whole).abs() < 1e-6).then_some(whole as i32)
}
