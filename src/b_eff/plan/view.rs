//! Serialized form of a pattern: rings as lists of ranks, grids as extents and directions.

use serde::{Serialize, Serializer};

use super::{CommPattern, PatternFamily};

#[derive(Serialize)]
struct PatternView<'a> {
    name: &'a str,
    family: PatternFamily,
    shape: &'a str,
    messages: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    rings: Option<Vec<Vec<u64>>>,
    #[serde(flatten)]
    grid: Option<GridView<'a>>,
}

#[derive(Serialize)]
struct GridView<'a> {
    dims: &'a [u64],
    /// From 1, as in the names of the patterns.
    directions: Vec<usize>,
    cyclic: bool,
}

impl Serialize for CommPattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let grid = self.grid().map(|grid| GridView {
            dims: &grid.dims,
            directions: grid.directions.iter().map(|d| d + 1).collect(),
            cyclic: grid.cyclic,
        });
        let view = PatternView {
            name: &self.name,
            family: self.family,
            shape: &self.shape,
            messages: self.messages,
            rings: self.rings(),
            grid,
        };
        view.serialize(serializer)
    }
}
