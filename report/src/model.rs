//! A result as data: what the screen, the full text and the page for a browser are made of. A benchmark returns a [`Model`]; only
//! [`super::render`] and [`super::html`] know how it looks. Texts are plain: they are escaped where they are written.

use crate::criterion::Criterion;
use crate::picture::Picture;
pub use crate::sheet::Tone;
use crate::table::Table;

/// A name and its text.
pub type Pair = (String, String);

/// A result.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// The benchmark: the beginning of names of files.
    pub benchmark: &'static str,
    /// What was measured, where and when.
    pub head: Head,
    /// What must be known before any number: how it ended, that data was wrong.
    pub alarms: Vec<String>,
    /// True if an error cut the run short: what would make a finished run better is no help then.
    pub has_failed: bool,
    /// Errors.
    pub errors: Vec<Trouble>,
    /// Wrong data.
    pub corruption: Option<Corruption>,
    /// The values.
    pub values: Vec<Value>,
    /// What keeps the values from being all that was asked for, beside criteria; on the screen of a failed run too.
    pub because: Vec<String>,
    /// What must be known of all values, a line each on the screen.
    pub notes: Vec<String>,
    /// Criteria of validity.
    pub judged: Vec<Judged>,
    /// The same by other definitions, with their names: told as far as they ask for something else.
    pub judged_otherwise: Vec<(String, Vec<Judged>)>,
    /// What stands out, the most important first.
    pub findings: Vec<String>,
    /// Facts about how far the numbers can be trusted, with their labels.
    pub trust: Vec<Pair>,
    /// How much of the data was compared; not said where data was wrong.
    pub checked: Option<String>,
    /// What the reader of the numbers must know.
    pub caveats: Vec<Caveat>,
    /// True if backends have to be told apart.
    pub has_several: bool,
    /// Tables of the screen.
    pub summary: Vec<Block>,
    /// Results in full.
    pub sections: Vec<Section>,
    /// What measuring cost, and how it was set up.
    pub method: Vec<Section>,
    /// Said of a run that has its end.
    pub complete: String,
    /// What to type for a better value, and what it is good for.
    pub again: Option<(String, &'static str)>,
}

/// What was measured, where and when.
#[derive(Clone, Debug, Default)]
pub struct Head {
    /// The program and its version.
    pub program: String,
    /// The source it was built from.
    pub revision: String,
    /// The benchmark in a word.
    pub name: String,
    /// The benchmark in full.
    pub subject: String,
    /// What the units mean.
    pub units: String,
    /// When it began.
    pub started_utc: String,
    /// Ranks, hosts.
    pub ranks: String,
    /// The MPI library.
    pub library: String,
    /// The first host, and how many more.
    pub hosts: String,
    /// Where the files are, and on which file system.
    pub storage: Option<[String; 2]>,
    /// What is measured, in a few lines of the screen.
    pub about: Vec<String>,
    /// Time asked for.
    pub asked: String,
    /// Time taken.
    pub took: String,
    /// What was chosen otherwise than by default and changes the meaning of the numbers.
    pub settings: Option<String>,
    /// The head of the full text, a line each.
    pub facts: Vec<Pair>,
}

/// A value and whether it counts.
#[derive(Clone, Debug)]
pub struct Value {
    /// Of what.
    pub label: String,
    /// The number, or words in its place.
    pub value: String,
    /// Its unit; empty: none.
    pub unit: &'static str,
    /// Whether it counts, in words.
    pub verdict: (Tone, String),
    /// What it is made of.
    pub numbers: Vec<Pair>,
    /// The line of the screen, for grep; empty: none.
    pub line: Vec<(Tone, String)>,
    /// The line at the end of the full text, for grep.
    pub closing: String,
}

/// Something that was judged by criteria.
#[derive(Clone, Debug)]
pub struct Judged {
    /// What it is called.
    pub name: String,
    /// The criteria.
    pub criteria: Vec<Criterion>,
    /// True if what is missing of it belongs beside the values.
    pub is_main: bool,
}

/// What happened, and what to do about it.
#[derive(Clone, Debug)]
pub struct Trouble {
    /// What happened, with figures.
    pub cause: String,
    /// What to do about it.
    pub next_step: String,
}

/// What the reader of the numbers must know.
#[derive(Clone, Debug)]
pub struct Caveat {
    /// What kind of thing it is.
    pub kind: String,
    /// Place of its kind among others: the smaller, the more important.
    pub rank: u8,
    /// The backend that it is about, if there are several.
    pub backend: Option<String>,
    /// In a few words.
    pub summary: String,
    /// In full.
    pub trouble: Trouble,
    /// False if the screen says it elsewhere.
    pub is_on_screen: bool,
}

/// Wrong data.
#[derive(Clone, Debug)]
pub struct Corruption {
    /// Heading.
    pub title: &'static str,
    /// How much of what was compared is wrong.
    pub amount: String,
    /// The places that were recorded, the first ones.
    pub places: Vec<String>,
    /// Further places.
    pub more: usize,
    /// What to do.
    pub next_step: String,
}

/// Places of wrong data that are shown; all are in the JSON document.
const PLACES: usize = 20;

impl Corruption {
    /// Of these places.
    pub fn of<C>(title: &'static str, amount: String, all: &[C], place: fn(&C) -> String, next_step: &str) -> Self {
        let places = all.iter().take(PLACES).map(place).collect();
        Self { title, amount, places, more: all.len().saturating_sub(PLACES), next_step: next_step.to_owned() }
    }
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
    /// A section; None without blocks.
    pub fn of(
        name: &'static str,
        title: impl Into<String>,
        note: impl Into<String>,
        blocks: Vec<Block>,
    ) -> Option<Self> {
        let has_content = !blocks.is_empty();
        has_content.then(|| Self { name, title: title.into(), note: note.into(), blocks })
    }

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
    Pairs(Vec<Pair>),
    /// Sentences.
    List(Vec<String>),
    /// A paragraph.
    Text(String),
    /// Sentences that explain what stands above.
    Notes(Vec<String>),
    /// Several pieces that a page opens when asked for.
    Folded(String, Vec<Block>),
}

/// Pairs from labels and texts; None is left out.
pub fn pairs<'a>(all: impl IntoIterator<Item = (&'a str, Option<String>)>) -> Vec<Pair> {
    all.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text?))).collect()
}
