//! A matrix as a picture: higher values have stronger colours.

use plotters::prelude::{BLACK, Color, RGBColor, Rectangle, Text, WHITE};
use plotters::style::IntoFont;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{Area, Drawn, FONT_SIZES, WIDTH};
use crate::html::HeatMap;
use crate::quantity::{ABSENT, in_unit};

/// Height of a row, and width of the row heads, pixels.
const ROW: i32 = 30;
const HEADS: i32 = 200;
/// Widest column, pixels.
const MAX_COLUMN_WIDTH: i32 = 150;
const MARGIN: i32 = 12;
const FULL_COLOUR: RGBColor = RGBColor(0, 114, 178);

/// Height of a matrix without its title, pixels.
pub(super) fn height(matrix: &HeatMap) -> u32 {
    ROW.unsigned_abs() * (matrix.rows.len() as u32 + 1) + 2 * MARGIN.unsigned_abs()
}

pub(super) fn draw(area: &Area<'_>, matrix: &HeatMap) -> Drawn {
    let columns = i32::try_from(matrix.columns.len().max(1)).unwrap_or(i32::MAX);
    let width = ((WIDTH.cast_signed() - HEADS - 2 * MARGIN) / columns).min(MAX_COLUMN_WIDTH);
    let left = |column: usize| MARGIN + HEADS + width * column as i32;
    let top = |row: usize| MARGIN + ROW * row as i32;
    let letters = |dark: bool| {
        let colour = if dark { WHITE } else { BLACK };
        ("sans-serif", FONT_SIZES[3]).into_font().color(&colour).pos(Pos::new(HPos::Center, VPos::Center))
    };
    let middle = |column: usize, row: usize| (left(column) + width / 2, top(row) + ROW / 2);
    let row_style =
        ("sans-serif", FONT_SIZES[3]).into_font().color(&BLACK).pos(Pos::new(HPos::Left, VPos::Center));
    area.draw(&Text::new(matrix.corner.as_str(), (MARGIN, top(0) + ROW / 2), row_style.clone()))?;
    for (number, column) in matrix.columns.iter().enumerate() {
        area.draw(&Text::new(column.as_str(), middle(number, 0), letters(false)))?;
    }
    let high = matrix.cells.values().copied().filter(|value| value.is_finite()).fold(0.0, f64::max);
    for (row, head) in matrix.rows.iter().enumerate() {
        area.draw(&Text::new(head.as_str(), (MARGIN, top(row + 1) + ROW / 2), row_style.clone()))?;
        for column in 0..matrix.columns.len() {
            let value = matrix.cells.get(&(row, column)).copied();
            let share = value.filter(|_| high > 0.0).map_or(0.0, |value| (value / high).clamp(0.0, 1.0));
            let corners =
                [(left(column) + 1, top(row + 1) + 1), (left(column) + width - 1, top(row + 1) + ROW - 1)];
            area.draw(&Rectangle::new(corners, FULL_COLOUR.mix(0.1 + 0.8 * share).filled()))?;
            let text = value.map_or(ABSENT.to_owned(), |value| in_unit(Some("bit/s"), value));
            area.draw(&Text::new(text, middle(column, row + 1), letters(share > 0.6)))?;
        }
    }
    Ok(())
}
