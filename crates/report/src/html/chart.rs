//! A chart as data for the page's script, which knows no metric.

use linerate_model::Direction;
use linerate_model::metrics::MetricEntry;
use serde::Serialize;

/// Kind of a figure, which determines its axes and width.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ChartKind {
    /// Panels with a common time axis.
    Time,
    /// Shares of probes over their RTT.
    Cdf,
    /// A quantity over a swept value.
    Sweep,
}

/// A figure: panels below each other with a common axis.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Chart {
    pub(crate) kind: ChartKind,
    /// Description for screen readers.
    pub(crate) title: String,
    pub(crate) x: ChartAxis,
    pub(crate) panels: Vec<Panel>,
    /// Ranges of the axis with a remark, drawn in every panel.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) bands: Vec<Band>,
    /// Sentences about what there is nothing to draw of. They are text of the page, not data of the script.
    #[serde(skip)]
    pub(crate) notes: Vec<String>,
}

impl Chart {
    /// A chart over swept or compared values; absent without panels.
    pub(super) fn of_sweep(
        title: String,
        x: ChartAxis,
        panels: Vec<Panel>,
        notes: Vec<String>,
    ) -> Option<Self> {
        let kind = ChartKind::Sweep;
        (!panels.is_empty()).then_some(Self { kind, title, x, panels, bands: Vec::new(), notes })
    }
}

/// The panels that show something, and a sentence for each of the others, in which every value is 0.
pub(super) fn folded(panels: Vec<(Panel, String)>) -> (Vec<Panel>, Vec<String>) {
    let is_empty =
        |panel: &Panel| panel.lines.iter().flat_map(|line| line.y.iter().flatten()).all(|y| y.0 == 0.0);
    let (empty, shown): (Vec<_>, Vec<_>) = panels.into_iter().partition(|(panel, _)| is_empty(panel));
    (shown.into_iter().map(|(panel, _)| panel).collect(), empty.into_iter().map(|(_, note)| note).collect())
}

/// An axis with its quantity and unit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct ChartAxis {
    pub(crate) label: String,
    /// As in the metric catalogue: `bit/s`, `bytes`, `ns`, `ratio`, `1`; and `s` for time axes.
    pub(crate) unit: String,
    pub(crate) log: bool,
    /// Whether the axis covers only its values: differences between them are what it shows.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) fitted: bool,
    /// The places that the axis names, ascending; empty for those of its scale.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) marks: Vec<Mark>,
}

impl ChartAxis {
    /// A linear axis.
    pub(crate) fn linear(label: impl Into<String>, unit: &str) -> Self {
        Self { label: label.into(), unit: unit.to_owned(), log: false, fitted: false, marks: Vec::new() }
    }

    /// A logarithmic axis.
    pub(crate) fn logarithmic(label: impl Into<String>, unit: &str) -> Self {
        Self { log: true, ..Self::linear(label, unit) }
    }
}

/// A place on an axis with its name: a value that was measured, also one that is not a number, such as `default`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Mark {
    pub(crate) at: Rounded,
    pub(crate) label: String,
}

/// One diagram of a figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Panel {
    pub(crate) y: ChartAxis,
    pub(crate) lines: Vec<ChartLine>,
    /// Limits and other single values, drawn as horizontal lines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) levels: Vec<Level>,
    /// A heat map, drawn below the lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cells: Option<HeatCells>,
}

impl Panel {
    pub(super) const fn of_lines(y: ChartAxis, lines: Vec<ChartLine>) -> Self {
        Self { y, lines, levels: Vec::new(), cells: None }
    }
}

/// A heat map over the axis of its figure: one row for each stream, the first at the foot.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct HeatCells {
    /// What a cell shows, and its unit.
    pub(crate) label: String,
    pub(crate) unit: &'static str,
    pub(crate) hue: Hue,
    /// Start of the first column and the ends of all.
    pub(crate) x: Vec<Rounded>,
    /// The columns, each with its rows.
    pub(crate) columns: Vec<Vec<Rounded>>,
}

/// How the points of a line are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LineStyle {
    /// Straight from point to point.
    Line,
    /// Each value holds for the time since its predecessor.
    Steps,
    /// Each value holds up to its successor, as in a cumulative distribution.
    StepsAfter,
    /// Bars from zero.
    Bars,
    /// Points that are not joined.
    Dots,
    /// Joined points with intervals.
    Points,
    /// A computed curve, dashed.
    Computed,
}

/// What has one colour on every page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Hue {
    Upload,
    Download,
    Latency,
}

impl From<Direction> for Hue {
    fn from(direction: Direction) -> Self {
        match direction {
            Direction::Upload => Self::Upload,
            Direction::Download => Self::Download,
        }
    }
}

/// One line of a panel.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct ChartLine {
    pub(crate) label: String,
    /// Name of its metric in the catalogue; absent if it is not a metric.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) metric: Option<&'static str>,
    pub(crate) style: LineStyle,
    /// What it shows, if that has a colour on every page; otherwise its place in the panel gives the colour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hue: Option<Hue>,
    /// Ascending.
    pub(crate) x: Vec<Rounded>,
    /// Absent if not measured.
    pub(crate) y: Vec<Option<Rounded>>,
    /// Ends of the intervals; empty without intervals.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) low: Vec<Option<Rounded>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) high: Vec<Option<Rounded>>,
    /// Number of values before thinning to the smallest and largest of each part; absent if all are included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) thinned_from: Option<usize>,
}

impl ChartLine {
    /// A line without intervals. Values that are not finite count as absent.
    pub(crate) fn of(
        label: impl Into<String>,
        style: LineStyle,
        points: impl IntoIterator<Item = (f64, Option<f64>)>,
    ) -> Self {
        let mut points: Vec<(f64, Option<f64>)> = points.into_iter().filter(|(x, _)| x.is_finite()).collect();
        points.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        Self {
            label: label.into(),
            metric: None,
            style,
            hue: None,
            x: points.iter().map(|(x, _)| Rounded(*x)).collect(),
            y: points.iter().map(|(_, y)| y.filter(|y| y.is_finite()).map(Rounded)).collect(),
            low: Vec::new(),
            high: Vec::new(),
            thinned_from: None,
        }
    }
}

/// A horizontal line in a panel.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Level {
    pub(crate) label: String,
    pub(crate) value: Rounded,
}

/// A range of the common axis.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Band {
    /// Absent: from the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<Rounded>,
    /// Absent: to the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<Rounded>,
    pub(crate) text: String,
    /// Whether it is a caveat.
    pub(crate) caveat: bool,
}

/// A number with the digits that a drawing can show.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub(crate) struct Rounded(pub(crate) f64);

impl Serialize for Rounded {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.fract() == 0.0 && self.0.abs() < 9e15 {
            return serializer.serialize_i64(self.0 as i64);
        }
        // Seven digits: a microsecond in ten seconds, and less than a pixel of any value.
        serializer.serialize_f64(format!("{:.6e}", self.0).parse().unwrap_or(self.0))
    }
}

/// Data for the script: every chart of the page, in order, and the catalogue entries of their metrics.
#[derive(Debug, Serialize)]
pub(crate) struct Charts<'a> {
    pub(crate) schema: &'static str,
    pub(crate) catalogue: Vec<&'a MetricEntry>,
    pub(crate) charts: Vec<Chart>,
}
