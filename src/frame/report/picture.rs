//! What a picture of several results is made of: a grid of panels, in each of them curves with points.

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
