//! Charts as SVG pictures for papers and tickets: the same figures as in a page, from the same data.

mod matrix;
mod panel;
mod scale;
#[cfg(test)]
mod tests;

use linerate_model::{PlanRecord, RunRecord};
use plotters::drawing::DrawingAreaErrorKind;
use plotters::prelude::{BLACK, DrawingArea, IntoDrawingArea, SVGBackend, Text, WHITE};
use plotters::style::IntoFont;

use crate::html::{self, Chart, HeatMap};
use crate::text::heading;

/// Width of a picture, pixels.
const WIDTH: u32 = 960;
/// Height of the heading, and of a figure's title, pixels.
const HEAD: u32 = 34;
const TITLE: u32 = 30;
/// Font sizes in pixels: heading, title, axes, ticks.
const FONT_SIZES: [u32; 4] = [17, 15, 13, 12];

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

/// The figures of a run or of a plan, in the order of its page.
#[derive(Debug)]
pub struct Pictures {
    heading: String,
    figures: Vec<Picture>,
}

#[derive(Debug)]
enum Picture {
    Chart(Chart),
    Matrix(HeatMap),
}

impl Picture {
    fn title(&self) -> &str {
        match self {
            Self::Chart(chart) => &chart.title,
            Self::Matrix(matrix) => &matrix.title,
        }
    }

    /// Height including its title, pixels.
    fn height(&self) -> u32 {
        TITLE
            + match self {
                Self::Chart(chart) => panel::height(chart),
                Self::Matrix(matrix) => matrix::height(matrix),
            }
    }

    fn draw(&self, area: &Area<'_>) -> Drawn {
        let (head, below) = area.split_vertically(TITLE);
        head.draw(&Text::new(
            self.title(),
            (12, 8),
            ("sans-serif", FONT_SIZES[1]).into_font().color(&BLACK),
        ))?;
        match self {
            Self::Chart(chart) => panel::draw(&below, chart),
            Self::Matrix(matrix) => matrix::draw(&below, matrix),
        }
    }
}

impl Pictures {
    /// The figures of a run: curves over message size, rates and windows over time, latency as a distribution.
    #[must_use]
    pub fn of_run(record: &RunRecord) -> Self {
        let pieces = heading(record);
        let pieces = pieces.iter().filter(|piece| !piece.is_empty()).map(ToString::to_string);
        Self {
            heading: pieces.collect::<Vec<_>>().join("   "),
            figures: html::charts_of_run(record).into_iter().map(Picture::Chart).collect(),
        }
    }

    /// The figures of a plan: curves over a swept value, and matrices.
    #[must_use]
    pub fn of_plan(record: &PlanRecord) -> Self {
        let (charts, matrices) = html::figures_of_plan(record);
        let name = record
            .start
            .as_ref()
            .map_or_else(String::new, |start| format!("plan {}   {}", start.name, start.started_at));
        let charts = charts.into_iter().map(Picture::Chart);
        Self { heading: name, figures: charts.chain(matrices.into_iter().map(Picture::Matrix)).collect() }
    }

    /// The titles, in order; empty if there is nothing to draw.
    pub fn titles(&self) -> impl ExactSizeIterator<Item = &str> {
        self.figures.iter().map(Picture::title)
    }

    /// One figure, or all of them in one picture; `None` if there is no such figure.
    #[must_use]
    pub fn svg(&self, only: Option<usize>) -> Option<String> {
        let figures = match only {
            Some(number) => std::slice::from_ref(self.figures.get(number)?),
            None => &self.figures,
        };
        if figures.is_empty() {
            return None;
        }
        let mut picture = String::new();
        self.draw(figures, &mut picture).ok()?;
        Some(picture)
    }

    fn draw(&self, figures: &[Picture], picture: &mut String) -> Drawn {
        let height = HEAD + figures.iter().map(Picture::height).sum::<u32>();
        let whole = SVGBackend::with_string(picture, (WIDTH, height)).into_drawing_area();
        whole.fill(&WHITE)?;
        let (head, mut rest) = whole.split_vertically(HEAD);
        let letters = ("sans-serif", FONT_SIZES[0]).into_font().color(&BLACK);
        head.draw(&Text::new(self.heading.as_str(), (12, 10), letters))?;
        for figure in figures {
            let (area, below) = rest.split_vertically(figure.height());
            figure.draw(&area)?;
            rest = below;
        }
        whole.present()
    }
}
