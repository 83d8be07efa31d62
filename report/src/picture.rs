//! Pictures as data, without a word about how a page looks; and the points that several results put into one.

use crate::table::Table;

/// A picture: frames beside each other, as many as there is room for.
#[derive(Clone, Debug)]
pub struct Picture {
    /// Its name in names of files, of the letters of [`super::slug`].
    pub name: String,
    /// The heading.
    pub title: String,
    /// What its colours, dashes and marks mean.
    pub keys: Vec<Key>,
    /// The frames.
    pub frames: Vec<Frame>,
    /// The same as numbers.
    pub table: Table,
}

/// One entry of a legend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// What is drawn, as the inside of an SVG of 26 by 12.
    pub sample: String,
    /// What it means.
    pub text: String,
    /// The style of curves that it names; None: it is about something else.
    pub style: Option<usize>,
}

/// An SVG of its own, in units of about a pixel.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    /// Above it.
    pub title: String,
    /// For those who do not see it.
    pub said: String,
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
    /// The markup inside, with all text escaped.
    pub body: String,
    /// What is drawn, if these are curves: for other programs that draw.
    pub plot: Option<Plot>,
}

/// Curves as numbers.
#[derive(Clone, Debug)]
pub struct Plot {
    /// Unit of the values.
    pub unit: String,
    /// Names of the places 0, 1, 2, ... below; empty: the abscissa is logarithmic.
    pub names: Vec<String>,
    /// Labels of a logarithmic abscissa.
    pub labels: Vec<(f64, String)>,
    /// The curves.
    pub curves: Vec<PlotCurve>,
}

/// One of them.
#[derive(Clone, Debug)]
pub struct PlotCurve {
    /// The style of its [`Key`].
    pub style: usize,
    /// Its points that have a value.
    pub points: Vec<PlotPoint>,
}

/// One of its points.
#[derive(Clone, Copy, Debug)]
pub struct PlotPoint {
    /// Place on the abscissa.
    pub x: f64,
    /// Value.
    pub y: f64,
    /// What it is to be taken for: 0 what it says, 1 read from a cache, 2 from few calls, 3 compared with others.
    pub look: u8,
}

/// One measured value in a picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Row of panels, for example a file system.
    pub row: String,
    /// Panel in the row, for example a class of functions.
    pub column: String,
    /// Curve in the panel.
    pub curve: String,
    /// A value to be compared with: its mark is filled.
    pub is_reference: bool,
    /// Place on the abscissa.
    pub x: u64,
    /// Place on the ordinate.
    pub y: f64,
}

/// What stands at the picture.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// Above it.
    pub title: &'static str,
    /// At each abscissa.
    pub x: &'static str,
    /// At each ordinate.
    pub y: &'static str,
}
