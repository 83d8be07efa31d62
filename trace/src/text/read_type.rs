//! Parses a line into a datatype.

use super::error::{quoted, TextError};
use super::fields::{index, list, signed, text, unsigned, LineField, LineFields};
use super::predefined;
use crate::types::Distribution;
use crate::{ArrayOrder, Datatype};

type Result<T> = std::result::Result<T, TextError>;

const CONSTRUCTORS: [(&str, &[&str]); 12] = [
    ("named", &["name", "size", "extent"]),
    ("contiguous", &["count", "of"]),
    ("vector", &["count", "block", "stride", "of"]),
    ("hvector", &["count", "block", "stride_bytes", "of"]),
    ("indexed", &["blocks", "displacements", "of"]),
    ("hindexed", &["blocks", "displacements_bytes", "of"]),
    ("indexed_block", &["block", "displacements", "of"]),
    ("hindexed_block", &["block", "displacements_bytes", "of"]),
    ("struct", &["blocks", "displacements_bytes", "of"]),
    ("subarray", &["sizes", "subsizes", "starts", "order", "of"]),
    ("darray", &["ranks", "rank", "sizes", "distributions", "arguments", "grid", "order", "of"]),
    ("resized", &["lower_bound", "extent", "of"]),
];

/// Keys of a line, each with its field.
struct TypeFields<'a> {
    constructor: &'static str,
    pairs: Vec<(Vec<u8>, Vec<u8>, LineField<'a>)>,
    /// Number of types before this one.
    known_types: usize,
}

/// Parses a type from the fields after its number; `known` types precede it.
pub(super) fn read_type(fields: &mut LineFields<'_>, known: usize) -> Result<Datatype> {
    let word = fields.required("constructor", "write a constructor or a predefined type, as in type,0,INT")?;
    let name = word.text()?;
    let bare = predefined::is_name(&name);
    let row = CONSTRUCTORS.iter().find(|row| row.0 == if bare { "named" } else { &name });
    let Some((constructor, keys)) = row else {
        let all: Vec<&str> = CONSTRUCTORS.iter().map(|row| row.0).collect();
        let next = format!("write a predefined type without MPI_ in capitals, or one of {}", all.join(", "));
        return Err(TextError::new(format!("{} is not a type constructor", quoted(name.as_bytes())), next)
            .with_field(word.number, "constructor"));
    };
    let mut have = TypeFields { constructor, pairs: Vec::new(), known_types: known };
    while let Some(field) = fields.next() {
        let field = field?;
        let (key, value) = field.required_pair()?;
        let shown_key = String::from_utf8_lossy(&key).into_owned();
        if !keys.iter().any(|k| k.as_bytes() == &*key) || (bare && &*key == b"name") {
            return Err(TextError::new(
                format!("{constructor} has no key {}", quoted(&key)),
                format!("it has {}", keys.join(", ")),
            )
            .with_field(field.number, ""));
        }
        if have.pairs.iter().any(|pair| pair.0 == *key) {
            return Err(TextError::new("duplicate key", "remove one of them").with_field(field.number, shown_key));
        }
        have.pairs.push((key.into_owned(), value.into_owned(), field));
    }
    if bare {
        return build_named(name, &have, word.number);
    }
    build(&have)
}

fn build_named(name: String, keys: &TypeFields<'_>, field: usize) -> Result<Datatype> {
    let usual = predefined::lookup(&name);
    let size_bytes = match (keys.has("size"), usual) {
        (true, _) => keys.number("size")?,
        (false, Some((size, _))) => size,
        (false, None) => {
            let next = "specify it, as in type,0,NAME,size=8, or correct the name";
            return Err(TextError::new(format!("the size of {} is unknown", quoted(name.as_bytes())), next)
                .with_field(field, "constructor"));
        }
    };
    let extent_bytes = match (keys.has("extent"), usual) {
        (true, _) => keys.signed("extent")?,
        // An explicit size that is not the usual one implies nothing about gaps.
        (false, Some((size, extent))) if size == size_bytes && !keys.has("size") => extent,
        (false, _) => i64::try_from(size_bytes).unwrap_or(i64::MAX),
    };
    Ok(Datatype::Named { name, size_bytes, extent_bytes })
}

fn build(keys: &TypeFields<'_>) -> Result<Datatype> {
    Ok(match keys.constructor {
        "named" => {
            let name = keys
                .get("name")
                .and_then(|(value, field)| text(value.into()).map_err(|e| e.with_field(field, "name")))?;
            return build_named(name, keys, 3);
        }
        "contiguous" => Datatype::Contiguous { count: keys.number("count")?, of: keys.of()? },
        "vector" => Datatype::Vector {
            count: keys.number("count")?,
            block: keys.number("block")?,
            stride: keys.signed("stride")?,
            of: keys.of()?,
        },
        "hvector" => Datatype::Hvector {
            count: keys.number("count")?,
            block: keys.number("block")?,
            stride_bytes: keys.signed("stride_bytes")?,
            of: keys.of()?,
        },
        "indexed" => {
            let (blocks, displacements) = (keys.numbers("blocks")?, keys.list("displacements", signed)?);
            keys.check_same_length("displacements", displacements.len(), "blocks", blocks.len())?;
            Datatype::Indexed { blocks, displacements, of: keys.of()? }
        }
        "hindexed" => {
            let (blocks, displacements_bytes) = keys.blocks()?;
            Datatype::Hindexed { blocks, displacements_bytes, of: keys.of()? }
        }
        "indexed_block" => Datatype::IndexedBlock {
            block: keys.number("block")?,
            displacements: keys.list("displacements", signed)?,
            of: keys.of()?,
        },
        "hindexed_block" => Datatype::HindexedBlock {
            block: keys.number("block")?,
            displacements_bytes: keys.list("displacements_bytes", signed)?,
            of: keys.of()?,
        },
        "struct" => {
            let (blocks, displacements_bytes) = keys.blocks()?;
            let of = keys.list("of", |value| index(value, keys.known_types, "type"))?;
            keys.check_same_length("of", of.len(), "blocks", blocks.len())?;
            Datatype::Struct { blocks, displacements_bytes, of }
        }
        "subarray" => subarray(keys)?,
        "darray" => darray(keys)?,
        _ => Datatype::Resized {
            lower_bound_bytes: keys.signed("lower_bound")?,
            extent_bytes: keys.signed("extent")?,
            of: keys.of()?,
        },
    })
}

fn subarray(keys: &TypeFields<'_>) -> Result<Datatype> {
    let (sizes, subsizes, starts) = (keys.numbers("sizes")?, keys.numbers("subsizes")?, keys.numbers("starts")?);
    keys.check_same_length("subsizes", subsizes.len(), "sizes", sizes.len())?;
    keys.check_same_length("starts", starts.len(), "sizes", sizes.len())?;
    let inside = |n: usize| starts[n].checked_add(subsizes[n]).is_some_and(|end| end <= sizes[n]);
    if let Some(n) = (0..sizes.len()).find(|n| !inside(*n)) {
        let what =
            format!("dimension {n} exceeds its array: {} + {} is more than {}", starts[n], subsizes[n], sizes[n]);
        return Err(keys.error("starts", what, "starts + subsizes must not exceed sizes"));
    }
    Ok(Datatype::Subarray { sizes, subsizes, starts, order: keys.order()?, of: keys.of()? })
}

fn darray(keys: &TypeFields<'_>) -> Result<Datatype> {
    let (ranks, rank, sizes, grid) =
        (keys.number("ranks")?, keys.number("rank")?, keys.numbers("sizes")?, keys.numbers("grid")?);
    let distributions = keys.list("distributions", |value| match value {
        b"none" => Ok(Distribution::None),
        b"block" => Ok(Distribution::Block),
        b"cyclic" => Ok(Distribution::Cyclic),
        other => Err(TextError::new(format!("{} is not a distribution", quoted(other)), "write none, block or cyclic")),
    })?;
    let arguments = keys.list("arguments", |value| if value == b"-" { Ok(None) } else { unsigned(value).map(Some) })?;
    keys.check_same_length("distributions", distributions.len(), "sizes", sizes.len())?;
    keys.check_same_length("arguments", arguments.len(), "sizes", sizes.len())?;
    keys.check_same_length("grid", grid.len(), "sizes", sizes.len())?;
    if grid.iter().try_fold(1_u64, |product, n| product.checked_mul(*n)) != Some(ranks) {
        return Err(keys.error(
            "grid",
            format!("the product of the grid is not {ranks}"),
            "it must be the number of ranks",
        ));
    }
    if rank >= ranks {
        return Err(keys.error("rank", format!("rank {rank} of {ranks} does not exist"), "count from 0"));
    }
    Ok(Datatype::Darray { ranks, rank, sizes, distributions, arguments, grid, order: keys.order()?, of: keys.of()? })
}

impl TypeFields<'_> {
    fn has(&self, key: &str) -> bool {
        self.pairs.iter().any(|pair| pair.0 == key.as_bytes())
    }

    fn get(&self, key: &str) -> Result<(&[u8], usize)> {
        let pair = self.pairs.iter().find(|pair| pair.0 == key.as_bytes());
        pair.map(|pair| (&*pair.1, pair.2.number))
            .ok_or_else(|| TextError::new(format!("{key}= is missing"), format!("{} requires it", self.constructor)))
    }

    fn read<T>(&self, key: &str, how: impl Fn(&[u8]) -> Result<T>) -> Result<T> {
        let (value, field) = self.get(key)?;
        how(value).map_err(|e| e.with_field(field, key))
    }

    fn number(&self, key: &str) -> Result<u64> {
        self.read(key, unsigned)
    }

    fn signed(&self, key: &str) -> Result<i64> {
        self.read(key, signed)
    }

    fn list<T>(&self, key: &str, how: impl Fn(&[u8]) -> Result<T>) -> Result<Vec<T>> {
        self.read(key, |value| list(value).map(&how).collect())
    }

    fn numbers(&self, key: &str) -> Result<Vec<u64>> {
        self.list(key, unsigned)
    }

    fn of(&self) -> Result<u32> {
        self.read("of", |value| index(value, self.known_types, "type"))
    }

    fn order(&self) -> Result<ArrayOrder> {
        if !self.has("order") {
            return Ok(ArrayOrder::C);
        }
        self.read("order", |value| match value {
            b"c" => Ok(ArrayOrder::C),
            b"fortran" => Ok(ArrayOrder::Fortran),
            other => Err(TextError::new(format!("{} is not an order", quoted(other)), "write c or fortran")),
        })
    }

    fn blocks(&self) -> Result<(Vec<u64>, Vec<i64>)> {
        let (blocks, displacements) = (self.numbers("blocks")?, self.list("displacements_bytes", signed)?);
        self.check_same_length("displacements_bytes", displacements.len(), "blocks", blocks.len())?;
        Ok((blocks, displacements))
    }

    fn check_same_length(&self, key: &str, length: usize, other: &str, expected: usize) -> Result<()> {
        if length == expected {
            return Ok(());
        }
        Err(self.error(
            key,
            format!("{length} numbers, but {other} has {expected}"),
            "the lists must have the same length",
        ))
    }

    fn error(&self, key: &str, what: String, next: &str) -> TextError {
        let field = self.get(key).map_or(0, |(_, field)| field);
        TextError::new(what, next).with_field(field, key)
    }
}

/// Number of values of a type that take memory, including inner types.
pub(super) fn stored_numbers(datatype: &Datatype) -> usize {
    match datatype {
        Datatype::Indexed { blocks, displacements, .. } => blocks.len() + displacements.len(),
        Datatype::Hindexed { blocks, displacements_bytes, .. } => blocks.len() + displacements_bytes.len(),
        Datatype::IndexedBlock { displacements, .. } => displacements.len(),
        Datatype::HindexedBlock { displacements_bytes, .. } => displacements_bytes.len(),
        Datatype::Struct { blocks, of, .. } => blocks.len() * 2 + of.len(),
        Datatype::Subarray { sizes, .. } => sizes.len() * 3,
        Datatype::Darray { sizes, .. } => sizes.len() * 4,
        _ => 1,
    }
}

/// Nesting depth, from the depths of the types before it.
pub(super) fn nesting_depth(datatype: &Datatype, before: &[u16]) -> u16 {
    let of = |n: &u32| before.get(*n as usize).copied().unwrap_or(0).saturating_add(1);
    match datatype {
        Datatype::Named { .. } => 0,
        Datatype::Struct { of: all, .. } => all.iter().map(of).max().unwrap_or(1),
        Datatype::Contiguous { of: n, .. }
        | Datatype::Vector { of: n, .. }
        | Datatype::Hvector { of: n, .. }
        | Datatype::Indexed { of: n, .. }
        | Datatype::Hindexed { of: n, .. }
        | Datatype::IndexedBlock { of: n, .. }
        | Datatype::HindexedBlock { of: n, .. }
        | Datatype::Subarray { of: n, .. }
        | Datatype::Darray { of: n, .. }
        | Datatype::Resized { of: n, .. } => of(n),
    }
}
