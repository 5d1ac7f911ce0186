//! A chart as a picture: its panels below each other, with one axis.

use plotters::chart::{ChartBuilder, ChartContext};
use plotters::prelude::{
    BLACK, Cartesian2d, Circle, Color, DashedLineSeries, EmptyElement, LineSeries, PathElement, RGBColor,
    Rectangle, SVGBackend, Text,
};
use plotters::style::IntoFont;

use super::scale::Scale;
use super::{Area, Drawn, FONT_SIZES, WIDTH};
use crate::html::{Chart, ChartKind, ChartLine, HeatCells, LineStyle, Panel, Rounded};
use crate::layout::wrap;
use crate::quantity::in_unit;

/// Height of a panel, and additional height of the last one for its axis, pixels.
const PANEL: u32 = 210;
const AXIS: u32 = 34;
/// Width of the labels on the left of a panel, pixels.
const VALUES: u32 = 96;

/// Colours that people with any colour vision can distinguish (Okabe and Ito, 2008), black last.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
];
/// Width of the legend next to a panel in pixels, its characters per row, and its row height in pixels.
const NAMES: u32 = 220;
const ROW: usize = 34;
const LINE: i32 = 15;
/// Approximate width of a character, pixels.
const CHAR_WIDTH: f64 = 6.0;

/// Colours of a heat map above 0.
const COLOUR_STEPS: f64 = 25.0;

const LEVEL: RGBColor = RGBColor(90, 90, 90);
const CAVEAT: RGBColor = RGBColor(213, 94, 0);

type PanelContext<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Scale, Scale>>;

/// Height of a chart without its title, pixels.
pub(super) fn height(chart: &Chart) -> u32 {
    PANEL * chart.panels.len() as u32 + AXIS
}

pub(super) fn draw(area: &Area<'_>, chart: &Chart) -> Drawn {
    let lines = || chart.panels.iter().flat_map(|panel| &panel.lines);
    let cells = chart.panels.iter().filter_map(|panel| panel.cells.as_ref());
    let columns = cells.flat_map(|cells| &cells.x).map(|x| x.0);
    let ends = chart.bands.iter().flat_map(|band| [band.from, band.to]).flatten().map(|end| end.0);
    let from = (chart.kind == ChartKind::Time).then_some(0.0);
    let x =
        Scale::of(&chart.x, lines().flat_map(|line| &line.x).map(|x| x.0).chain(columns).chain(ends), from);
    let mut rest = area.clone();
    for (number, panel) in chart.panels.iter().enumerate() {
        let last = number + 1 == chart.panels.len();
        let (area, below) = rest.split_vertically(if last { PANEL + AXIS } else { PANEL });
        draw_panel(&area, chart, panel, &x, (number == 0, last))?;
        rest = below;
    }
    Ok(())
}

fn draw_panel(
    area: &Area<'_>,
    chart: &Chart,
    panel: &Panel,
    x: &Scale,
    (first, last): (bool, bool),
) -> Drawn {
    let ends = |line: &ChartLine| {
        [&line.y, &line.low, &line.high].map(|ends| ends.iter().flatten().map(|y| y.0).collect())
    };
    let values = panel.lines.iter().flat_map(ends).flat_map(|ends: Vec<f64>| ends);
    let y = match &panel.cells {
        Some(cells) => Scale::of_rows(rows(cells)),
        None => Scale::of(&panel.y, values.chain(panel.levels.iter().map(|level| level.value.0)), Some(0.0)),
    };
    let mut context = ChartBuilder::on(area)
        .margin(6)
        .margin_right(NAMES)
        .x_label_area_size(if last { 22 + AXIS } else { 6 })
        .y_label_area_size(VALUES)
        .build_cartesian_2d(x.clone(), y.clone())?;
    let mut mesh = context.configure_mesh();
    mesh.axis_desc_style(("sans-serif", FONT_SIZES[2])).label_style(("sans-serif", FONT_SIZES[3]));
    mesh.bold_line_style(BLACK.mix(0.12)).light_line_style(BLACK.mix(0.0));
    mesh.y_desc(panel.y.label.as_str());
    if last {
        mesh.x_desc(described(&chart.x.label, &chart.x.unit));
    }
    // Panels below each other share the axis of the last one.
    let x_tick = |value: &f64| if last { x.tick(*value) } else { String::new() };
    let y_tick = |value: &f64| y.tick(*value);
    mesh.x_label_formatter(&x_tick).y_label_formatter(&y_tick).draw()?;
    if let Some(cells) = &panel.cells {
        draw_cells(&mut context, cells)?;
    }
    draw_bands(&mut context, chart, x, &y, first)?;
    for (number, line) in panel.lines.iter().enumerate() {
        draw_line(&mut context, line, COLOURS[number % COLOURS.len()], x, &y)?;
    }
    for level in panel.levels.iter().filter(|level| y.holds(level.value.0)) {
        let ends = [(x.low, level.value.0), (x.high, level.value.0)];
        context.draw_series(DashedLineSeries::new(ends, 3, 4, LEVEL.stroke_width(1)))?;
        let letters = ("sans-serif", FONT_SIZES[3]).into_font().color(&LEVEL);
        context.draw_series([Text::new(level.label.clone(), (x.low, level.value.0), letters)])?;
    }
    draw_names(area, panel)
}

/// A row for each stream and a column for each interval: higher values have stronger colours.
fn draw_cells(context: &mut PanelContext<'_, '_>, cells: &HeatCells) -> Drawn {
    let high = largest(cells);
    for (ends, column) in cells.x.windows(2).zip(&cells.columns) {
        let (from, to) = (ends[0].0, ends[1].0);
        let ground = [(from, 0.5), (to, rows(cells) as f64 + 0.5)];
        context.draw_series([Rectangle::new(ground, BLACK.mix(0.08).filled())])?;
        // Neighbours of one colour are one rectangle, so that a picture of many streams stays small.
        let colour = |value: &Rounded| (value.0 / high * COLOUR_STEPS).clamp(0.0, COLOUR_STEPS).ceil();
        let mut foot = 0.5;
        let runs = column.chunk_by(|below, above| colour(below) == colour(above)).filter_map(|run| {
            let corners = [(from, foot), (to, foot + run.len() as f64)];
            foot = corners[1].1;
            let strength = run.first().map(colour).filter(|strength| *strength > 0.0)?;
            let colour = COLOURS[0].mix(0.12 + 0.88 * strength / COLOUR_STEPS);
            Some(Rectangle::new(corners, colour.filled()))
        });
        let runs: Vec<_> = runs.collect();
        context.draw_series(runs)?;
    }
    Ok(())
}

fn rows(cells: &HeatCells) -> usize {
    cells.columns.first().map_or(0, Vec::len)
}

fn largest(cells: &HeatCells) -> f64 {
    cells.columns.iter().flatten().map(|value| value.0).fold(0.0, f64::max)
}

/// The legend, next to the panel, where it hides nothing.
fn draw_names(area: &Area<'_>, panel: &Panel) -> Drawn {
    let left = (WIDTH - NAMES) as i32;
    let letters = ("sans-serif", FONT_SIZES[3]).into_font().color(&BLACK);
    let mut top = 10;
    for (number, line) in panel.lines.iter().enumerate() {
        let stroke = COLOURS[number % COLOURS.len()].stroke_width(2);
        area.draw(&PathElement::new(vec![(left + 4, top + 6), (left + 20, top + 6)], stroke))?;
        for row in wrap(&line.label, ROW) {
            area.draw(&Text::new(row, (left + 26, top), letters.clone()))?;
            top += LINE;
        }
    }
    if let Some(cells) = &panel.cells {
        let scale =
            format!("{}, grey 0 to full colour {}", cells.label, in_unit(Some(cells.unit), largest(cells)));
        for row in wrap(&scale, ROW) {
            area.draw(&Text::new(row, (left + 4, top), letters.clone()))?;
            top += LINE;
        }
    }
    Ok(())
}

/// The label of an axis, with its unit if the ticks do not show it.
fn described(label: &str, unit: &str) -> String {
    if unit == "s" { format!("{label} (s)") } else { label.to_owned() }
}

/// Remarks on ranges of the axis, with text in the first panel only.
fn draw_bands(context: &mut PanelContext<'_, '_>, chart: &Chart, x: &Scale, y: &Scale, first: bool) -> Drawn {
    for (number, band) in chart.bands.iter().enumerate() {
        let (from, to) = (band.from.map_or(x.low, |end| end.0), band.to.map_or(x.high, |end| end.0));
        let colour = if band.caveat { CAVEAT } else { BLACK };
        context.draw_series([Rectangle::new([(from, y.low), (to, y.high)], colour.mix(0.08).filled())])?;
        let room = f64::from(WIDTH - NAMES - VALUES) * (x.high - from) / (x.high - x.low) / CHAR_WIDTH;
        if let Some(text) = wrap(&band.text, room.max(1.0) as usize).into_iter().next().filter(|_| first) {
            let text = if text == band.text { text } else { format!("{text} …") };
            let letters = ("sans-serif", FONT_SIZES[3]).into_font().color(&colour);
            // At the bottom of the panel, where rate curves rarely are.
            let above = -LINE * (number as i32 + 1);
            let at = EmptyElement::at((from, y.low)) + Text::new(text, (3, above), letters);
            context.draw_series([at])?;
        }
    }
    Ok(())
}

fn draw_line(
    context: &mut PanelContext<'_, '_>,
    line: &ChartLine,
    colour: RGBColor,
    x: &Scale,
    y: &Scale,
) -> Drawn {
    let stroke = colour.stroke_width(2);
    let parts = parts(line, x, y);
    match line.style {
        LineStyle::Bars => {
            let bars = bars(&parts, y).map(|corners| Rectangle::new(corners, colour.mix(0.7).filled()));
            context.draw_series(bars)?;
        }
        LineStyle::Computed => {
            for part in parts {
                context.draw_series(DashedLineSeries::new(part, 7, 5, stroke))?;
            }
        }
        style => {
            for part in &parts {
                let path = match style {
                    LineStyle::Steps => steps(part),
                    LineStyle::StepsAfter => steps_after(part),
                    _ => part.clone(),
                };
                if style != LineStyle::Dots {
                    context.draw_series(LineSeries::new(path, stroke))?;
                }
            }
            if matches!(style, LineStyle::Points | LineStyle::Dots) {
                context.draw_series(
                    whiskers(line, x, y).map(|ends| PathElement::new(ends, colour.stroke_width(1))),
                )?;
                context.draw_series(parts.iter().flatten().map(|at| Circle::new(*at, 2, colour.filled())))?;
            }
        }
    }
    Ok(())
}

/// The points of a line, split where nothing was measured.
fn parts(line: &ChartLine, x: &Scale, y: &Scale) -> Vec<Vec<(f64, f64)>> {
    let mut parts = vec![Vec::new()];
    for (at, value) in line.x.iter().zip(&line.y) {
        match value.filter(|value| x.holds(at.0) && y.holds(value.0)) {
            Some(value) => parts.last_mut().into_iter().for_each(|part| part.push((at.0, value.0))),
            None => parts.push(Vec::new()),
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// Corners of steps: each value holds for the time since its predecessor.
fn steps(part: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let first = part.first().copied();
    let corners = part.windows(2).flat_map(|pair| [(pair[0].0, pair[1].1), pair[1]]);
    first.into_iter().chain(corners).collect()
}

/// Corners of steps: each value holds up to its successor.
fn steps_after(part: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let first = part.first().copied();
    let corners = part.windows(2).flat_map(|pair| [(pair[1].0, pair[0].1), pair[1]]);
    first.into_iter().chain(corners).collect()
}

/// Bars from the previous position to this one, and from zero to the value.
fn bars<'p>(parts: &'p [Vec<(f64, f64)>], y: &'p Scale) -> impl Iterator<Item = [(f64, f64); 2]> + 'p {
    parts.iter().flat_map(move |part| {
        let before =
            part.first().map(|first| (2.0 * first.0 - part.get(1).map_or(first.0, |next| next.0)).max(0.0));
        let starts = before.into_iter().chain(part.iter().map(|at| at.0));
        starts.zip(part).map(move |(start, at)| [(start, y.low), *at])
    })
}

fn whiskers<'p>(
    line: &'p ChartLine,
    x: &'p Scale,
    y: &'p Scale,
) -> impl Iterator<Item = Vec<(f64, f64)>> + 'p {
    let ends = line.low.iter().zip(&line.high);
    line.x.iter().zip(ends).filter_map(|(at, (low, high))| {
        let (low, high) = (low.as_ref()?.0, high.as_ref()?.0);
        (x.holds(at.0) && y.holds(low) && y.holds(high)).then(|| vec![(at.0, low), (at.0, high)])
    })
}
