//! Pictures as data, independent of the page's style, and points of several results in one picture.

use crate::table::Table;

/// A picture: frames in rows.
#[derive(Clone, Debug)]
pub struct Picture {
    /// Name in file names, of the characters of [`crate::html::slug`].
    pub name: String,
    /// Heading.
    pub title: String,
    /// Legend of colours, dashes and marks.
    pub keys: Vec<LegendEntry>,
    /// Frames.
    pub frames: Vec<Frame>,
    /// The same data as a table.
    pub table: Table,
}

/// One entry of a legend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegendEntry {
    /// Sample, as the content of an SVG of 26 by 12.
    pub sample: String,
    /// Meaning.
    pub text: String,
    /// Style of the named curves; None if it is not about curves.
    pub style: Option<usize>,
}

/// A single SVG, in units of about a pixel.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    /// Title above the frame.
    pub title: String,
    /// Description for screen readers.
    pub description: String,
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
    /// Markup of the content, with all text escaped.
    pub body: String,
    /// Data of the curves, if any, for other plotting programs.
    pub plot: Option<Plot>,
}

/// Data of curves.
#[derive(Clone, Debug)]
pub struct Plot {
    /// Unit of the values.
    pub unit: String,
    /// Names of the abscissae 0, 1, 2, ...; empty if the abscissa is logarithmic or a date.
    pub names: Vec<String>,
    /// Labels of a logarithmic abscissa, or of dates.
    pub labels: Vec<(f64, String)>,
    /// The abscissa is linear: seconds since 1970, UTC.
    pub is_dates: bool,
    /// Abscissae at which the circumstances change, with names.
    pub changes: Vec<(f64, String)>,
    /// The curves.
    pub curves: Vec<PlotCurve>,
}

/// Data of one curve.
#[derive(Clone, Debug)]
pub struct PlotCurve {
    /// The style of its [`LegendEntry`].
    pub style: usize,
    /// Points with a value.
    pub points: Vec<PlotPoint>,
}

/// Point of a curve.
#[derive(Clone, Copy, Debug)]
pub struct PlotPoint {
    /// Abscissa.
    pub x: f64,
    /// Value.
    pub y: f64,
    /// Interval of the value.
    pub interval: Option<[f64; 2]>,
    /// Marker: 0 normal, 1 read from a cache, 2 from few calls, 3 compared with others.
    pub marker: u8,
}

/// One measured value in a picture.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredPoint {
    /// Row of panels, for example a file system.
    pub row: String,
    /// Panel in the row, for example a class of functions.
    pub column: String,
    /// Curve in the panel.
    pub curve: String,
    /// Name of the run, for points of several runs; else empty.
    pub run: String,
    /// Reference value for comparison: its mark is filled.
    pub is_reference: bool,
    /// Abscissa.
    pub x: u64,
    /// Ordinate.
    pub y: f64,
}

/// Labels of a picture.
#[derive(Clone, Copy, Debug)]
pub struct PictureLabels {
    /// Title.
    pub title: &'static str,
    /// Label of the abscissae.
    pub x: &'static str,
    /// Label of the ordinates.
    pub y: &'static str,
}
