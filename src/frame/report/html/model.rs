//! What a page shows, without a word about how it looks. Texts are plain: they are escaped where the page is written.

use super::table::Table;

/// How something is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// All is well.
    Good,
    /// It is not.
    Bad,
    /// Neither.
    Plain,
}

/// The part of a page that is about one run.
#[derive(Clone, Debug)]
pub struct Run {
    /// The benchmark: the beginning of names of files.
    pub benchmark: &'static str,
    /// What was measured and where.
    pub title: String,
    /// In a line: when, with how many ranks, through which library.
    pub facts: Vec<String>,
    /// What must be known first: it failed, data was wrong.
    pub alarms: Vec<String>,
    /// The values.
    pub headlines: Vec<Headline>,
    /// What keeps the value from being compared, what stands out, what to trust.
    pub findings: Vec<Finding>,
    /// The rest.
    pub sections: Vec<Section>,
}

/// A value and whether it counts.
#[derive(Clone, Debug)]
pub struct Headline {
    /// Of what.
    pub label: String,
    /// The number, or words in its place.
    pub value: String,
    /// Its unit; empty: none.
    pub unit: &'static str,
    /// Whether it counts, in words.
    pub verdict: Option<(Tone, String)>,
    /// What it is made of.
    pub numbers: Vec<(String, String)>,
}

/// A few sentences under a heading.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The heading.
    pub title: &'static str,
    /// The sentences.
    pub texts: Vec<String>,
}

/// Something with a heading of its own.
#[derive(Clone, Debug)]
pub struct Section {
    /// Its name in addresses.
    pub name: &'static str,
    /// The heading.
    pub title: String,
    /// What one sees, in a sentence or two; empty: nothing needs saying.
    pub note: String,
    /// What is in it.
    pub blocks: Vec<Block>,
}

impl Section {
    /// Its pictures, folded ones too.
    #[must_use]
    pub fn pictures(&self) -> Vec<&Picture> {
        pictures(&self.blocks)
    }
}

fn pictures(blocks: &[Block]) -> Vec<&Picture> {
    let mut all = Vec::new();
    for block in blocks {
        match block {
            Block::Picture(picture) => all.push(picture),
            Block::Folded(_, inside) => all.extend(pictures(inside)),
            _ => {}
        }
    }
    all
}

/// A piece of a section.
#[derive(Clone, Debug)]
pub enum Block {
    /// A picture with the table behind it.
    Picture(Picture),
    /// A table.
    Table(Table),
    /// Names and values.
    Pairs(Vec<(String, String)>),
    /// Sentences.
    List(Vec<String>),
    /// Several pieces that open when asked for.
    Folded(String, Vec<Block>),
}

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
