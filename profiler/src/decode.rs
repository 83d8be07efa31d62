//! Decodes handles: types to trees, communicators to ranks, infos to hints. Handles obtained from MPI for this are freed.

use std::ffi::{c_char, c_int, CStr};
use std::sync::atomic::{AtomicUsize, Ordering};

use beff_trace::types::Distribution;
use beff_trace::{ArrayOrder, Datatype};

use crate::dictionary::HandleDictionary;
use crate::message::report;
use crate::mpi::{
    beff_combiners, beff_default_argument, beff_distributions, beff_info_key_bytes, beff_name_bytes,
    beff_order_fortran, beff_undefined, constant, handle_at, pmpi, predefined_handles, Word,
};
use crate::original::Symbol;
use crate::thread_buffer::ThreadBuffer;

/// Maximum nesting of decoded types: each level uses the stack of the program.
const MAX_DEPTH: u32 = 512;

/// Maximum number of examined components of a type. Open MPI returns a new handle for each, so equal ones cannot be recognized.
const MAX_COMPONENTS: usize = 1 << 18;

/// MPI_Type_get_envelope: integers, addresses, large counts, types.
struct TypeEnvelope {
    counts: [i64; 4],
    combiner: c_int,
}

/// Indices in the shim's list of combiners.
mod combiner {
    pub const NAMED: usize = 0;
    pub const DUP: usize = 1;
    pub const F90: std::ops::RangeInclusive<usize> = 13..=15;
}

fn get_envelope(handle: Word) -> Option<TypeEnvelope> {
    let mut combiner: c_int = 0;
    let mut large = [0_i64; 4];
    let [integers, addresses, counts, types] = &mut large;
    let code = pmpi!(Type_get_envelope_c(
        handle,
        &raw mut *integers,
        &raw mut *addresses,
        &raw mut *counts,
        &raw mut *types,
        &raw mut combiner
    ));
    if code == 0 {
        return Some(TypeEnvelope { counts: large, combiner });
    }
    let mut small: [c_int; 3] = [0; 3];
    let [integers, addresses, types] = &mut small;
    let code =
        pmpi!(Type_get_envelope(handle, &raw mut *integers, &raw mut *addresses, &raw mut *types, &raw mut combiner));
    let counts = [i64::from(small[0]), i64::from(small[1]), 0, i64::from(small[2])];
    (code == 0).then_some(TypeEnvelope { counts, combiner })
}

/// Arguments of a constructor, and its component types.
struct TypeContents {
    integers: Vec<c_int>,
    addresses: Vec<isize>,
    counts: Vec<i64>,
    types: Vec<Word>,
}

fn get_contents(handle: Word, envelope: &TypeEnvelope) -> Option<TypeContents> {
    let [integers, addresses, counts, types] = envelope.counts;
    let length = |n: i64| usize::try_from(n).ok();
    let mut integer = vec![0 as c_int; length(integers)?];
    let mut address = vec![0_isize; length(addresses)?];
    let mut count = vec![0_i64; length(counts)?];
    let mut raw: Vec<Word> = vec![0; length(types)?];
    let code = if counts > 0 {
        pmpi!(Type_get_contents_c(
            handle,
            integers,
            addresses,
            counts,
            types,
            integer.as_mut_ptr(),
            address.as_mut_ptr(),
            count.as_mut_ptr(),
            raw.as_mut_ptr()
        ))
    } else {
        pmpi!(Type_get_contents(
            handle,
            integers,
            addresses,
            types,
            integer.as_mut_ptr(),
            address.as_mut_ptr(),
            raw.as_mut_ptr()
        ))
    };
    // SAFETY: the library has written that many handles of its size.
    let types = (0..raw.len()).map(|index| unsafe { handle_at(raw.as_ptr() as Word, index) }).collect();
    (code == 0).then_some(TypeContents { integers: integer, addresses: address, counts: count, types })
}

/// The number of a type, recorded with its components. None if the library does not report it.
///
/// # Safety
/// The handle is that of a type.
pub unsafe fn decode_datatype(
    shared: &mut HandleDictionary,
    lane: &mut ThreadBuffer,
    handle: Word,
    tick: u64,
    depth: u32,
) -> Option<u32> {
    if let Some(id) = shared.by_handle(handle, tick) {
        return Some(id);
    }
    if depth == 0 {
        shared.component_count = 0;
    }
    shared.component_count += 1;
    if shared.component_count > MAX_COMPONENTS {
        static ONCE: std::sync::Once = std::sync::Once::new();
        ONCE.call_once(|| {
            report(&format!(
                "a datatype has more than {MAX_COMPONENTS} components: calls with it are recorded without it"
            ))
        });
        return None;
    }
    let envelope = get_envelope(handle)?;
    let combiner = constant!(beff_combiners).iter().position(|value| *value == envelope.combiner)?;
    if combiner == combiner::NAMED {
        let id = shared.type_number(&named_type(handle)?, tick, lane);
        shared.remember_type(handle, id, tick);
        return Some(id);
    }
    if depth == MAX_DEPTH {
        return None;
    }
    let contents = get_contents(handle, &envelope)?;
    // Successive equal components are decoded once: over all levels, this is the difference between a sum and a product.
    let mut last = (0, None);
    let mut part = |one: &Word| {
        if last.0 != *one {
            // SAFETY: MPI has just returned these types.
            last = (*one, unsafe { decode_datatype(shared, lane, *one, tick, depth + 1) });
        }
        last.1
    };
    let inner: Vec<Option<u32>> = contents.types.iter().map(&mut part).collect();
    contents.types.iter().for_each(|one| free_component(*one));
    let inner: Option<Vec<u32>> = inner.into_iter().collect();
    let inner = inner?;
    let id = if combiner == combiner::DUP {
        *inner.first()?
    } else if combiner::F90.contains(&combiner) {
        shared.type_number(&fortran_type(handle, combiner, &contents.integers)?, tick, lane)
    } else {
        let arguments = ConstructorArguments { contents: &contents, next: [0; 3] };
        shared.type_number(&arguments.datatype(combiner, &inner)?, tick, lane)
    };
    // Handles of components are freed and may be reused.
    if depth == 0 {
        shared.remember_type(handle, id, tick);
    }
    Some(id)
}

/// Frees a handle from MPI_Type_get_contents, unless it is predefined.
fn free_component(mut handle: Word) {
    let keep = |e: &TypeEnvelope| {
        let combiner = constant!(beff_combiners).iter().position(|value| *value == e.combiner);
        combiner.is_none_or(|combiner| combiner == combiner::NAMED || combiner::F90.contains(&combiner))
    };
    if get_envelope(handle).is_some_and(|envelope| !keep(&envelope)) {
        pmpi!(Type_free(&raw mut handle));
    }
}

fn size_and_extent(handle: Word) -> Option<(u64, i64)> {
    let mut size: c_int = 0;
    let (mut bound, mut extent) = (0_isize, 0_isize);
    let fine = pmpi!(Type_size(handle, &raw mut size)) == 0
        && pmpi!(Type_get_extent(handle, &raw mut bound, &raw mut extent)) == 0;
    fine.then_some((u64::try_from(size).ok()?, extent as i64))
}

fn named_type(handle: Word) -> Option<Datatype> {
    let (size_bytes, extent_bytes) = size_and_extent(handle)?;
    let mut text = vec![0_u8; constant!(beff_name_bytes).max(256) as usize];
    let mut length: c_int = 0;
    if pmpi!(Type_get_name(handle, text.as_mut_ptr(), &raw mut length)) != 0 {
        return None;
    }
    text.truncate(usize::try_from(length).ok()?);
    let name = String::from_utf8(text).ok()?;
    Some(Datatype::Named { name: name.trim_start_matches("MPI_").to_owned(), size_bytes, extent_bytes })
}

fn fortran_type(handle: Word, combiner: usize, integers: &[c_int]) -> Option<Datatype> {
    let (size_bytes, extent_bytes) = size_and_extent(handle)?;
    let list: Vec<String> = integers.iter().map(c_int::to_string).collect();
    let kind = ["REAL", "COMPLEX", "INTEGER"][combiner - combiner::F90.start()];
    Some(Datatype::Named { name: format!("F90_{kind}({})", list.join(",")), size_bytes, extent_bytes })
}

/// Arguments in the order of the constructor; large counts are in a separate list.
struct ConstructorArguments<'a> {
    contents: &'a TypeContents,
    next: [usize; 3],
}

impl ConstructorArguments<'_> {
    /// An int in both variants of the constructor.
    fn integer(&mut self) -> Option<i64> {
        self.next[0] += 1;
        self.contents.integers.get(self.next[0] - 1).map(|value| i64::from(*value))
    }

    /// An int, or a large count in the large-count variant.
    fn count(&mut self) -> Option<i64> {
        if self.contents.counts.is_empty() {
            return self.integer();
        }
        self.next[2] += 1;
        self.contents.counts.get(self.next[2] - 1).copied()
    }

    /// An address, or a large count in the large-count variant, or an int in removed Fortran functions.
    fn address(&mut self) -> Option<i64> {
        if self.contents.addresses.is_empty() {
            return self.count();
        }
        self.next[1] += 1;
        self.contents.addresses.get(self.next[1] - 1).map(|value| *value as i64)
    }

    fn size(&mut self) -> Option<u64> {
        u64::try_from(self.count()?).ok()
    }

    fn sizes(&mut self, length: usize) -> Option<Vec<u64>> {
        (0..length).map(|_| self.size()).collect()
    }

    fn displacements(&mut self, length: usize) -> Option<Vec<i64>> {
        (0..length).map(|_| self.count()).collect()
    }

    fn addresses(&mut self, length: usize) -> Option<Vec<i64>> {
        (0..length).map(|_| self.address()).collect()
    }

    fn order(&mut self) -> Option<ArrayOrder> {
        Some(if self.integer()? == i64::from(constant!(beff_order_fortran)) {
            ArrayOrder::Fortran
        } else {
            ArrayOrder::C
        })
    }

    fn datatype(mut self, combiner: usize, inner: &[u32]) -> Option<Datatype> {
        let of = inner.first().copied();
        // Evaluated in the order of the arguments.
        Some(match combiner {
            2 => Datatype::Contiguous { count: self.size()?, of: of? },
            3 => Datatype::Vector { count: self.size()?, block: self.size()?, stride: self.count()?, of: of? },
            4 | 16 => {
                Datatype::Hvector { count: self.size()?, block: self.size()?, stride_bytes: self.address()?, of: of? }
            }
            5 | 6 | 17 => {
                let length = self.size()? as usize;
                let blocks = self.sizes(length)?;
                if combiner == 5 {
                    Datatype::Indexed { blocks, displacements: self.displacements(length)?, of: of.or(Some(0))? }
                } else {
                    Datatype::Hindexed { blocks, displacements_bytes: self.addresses(length)?, of: of? }
                }
            }
            7 | 8 => {
                let length = self.size()? as usize;
                let block = self.size()?;
                if combiner == 7 {
                    Datatype::IndexedBlock { block, displacements: self.displacements(length)?, of: of? }
                } else {
                    Datatype::HindexedBlock { block, displacements_bytes: self.addresses(length)?, of: of? }
                }
            }
            9 | 18 => {
                let length = self.size()? as usize;
                let blocks = self.sizes(length)?;
                Datatype::Struct { blocks, displacements_bytes: self.addresses(length)?, of: inner.to_vec() }
            }
            10 => {
                let n = self.integer()? as usize;
                let (sizes, subsizes, starts) = (self.sizes(n)?, self.sizes(n)?, self.sizes(n)?);
                Datatype::Subarray { sizes, subsizes, starts, order: self.order()?, of: of? }
            }
            11 => self.darray(of?)?,
            12 => Datatype::Resized { lower_bound_bytes: self.address()?, extent_bytes: self.address()?, of: of? },
            _ => return None,
        })
    }

    fn darray(&mut self, of: u32) -> Option<Datatype> {
        let (ranks, rank) = (self.integer()? as u64, self.integer()? as u64);
        let n = self.integer()? as usize;
        let sizes = self.sizes(n)?;
        let distribution = |value: i64| {
            let all = [Distribution::None, Distribution::Block, Distribution::Cyclic];
            let place = constant!(beff_distributions).iter().position(|number| i64::from(*number) == value)?;
            Some(all[place])
        };
        let distributions = (0..n).map(|_| self.integer().and_then(distribution)).collect::<Option<_>>()?;
        let default = i64::from(constant!(beff_default_argument));
        let argument = |value: i64| if value == default { Some(None) } else { u64::try_from(value).ok().map(Some) };
        let arguments = (0..n).map(|_| self.integer().and_then(argument)).collect::<Option<_>>()?;
        let grid = (0..n).map(|_| self.integer().map(|value| value as u64)).collect::<Option<_>>()?;
        Some(Datatype::Darray { ranks, rank, sizes, distributions, arguments, grid, order: self.order()?, of })
    }
}

/// Group of all processes of the session, if there is no MPI_COMM_WORLD. 0 if there is none.
pub static WORLD_GROUP: AtomicUsize = AtomicUsize::new(0);

/// World ranks of a communicator; empty if unknown. None for MPI_COMM_NULL.
pub fn comm_ranks(handle: Word) -> Option<Vec<u32>> {
    if handle == predefined_handles().comm_null || handle == 0 {
        return None;
    }
    Some(world_ranks(handle).unwrap_or_default())
}

fn world_ranks(handle: Word) -> Option<Vec<u32>> {
    let (mut group, mut world): (Word, Word) = (0, WORLD_GROUP.load(Ordering::Relaxed));
    let of_session = world != 0;
    if !of_session && pmpi!(Comm_group(predefined_handles().comm_world, &raw mut world)) != 0 {
        return None;
    }
    let mut size: c_int = 0;
    let mut list = Vec::new();
    if pmpi!(Comm_group(handle, &raw mut group)) == 0 {
        pmpi!(Group_size(group, &raw mut size));
        let own: Vec<c_int> = (0..size).collect();
        list = vec![0 as c_int; own.len()];
        if pmpi!(Group_translate_ranks(group, size, own.as_ptr(), world, list.as_mut_ptr())) != 0 {
            list.clear();
        }
        pmpi!(Group_free(&raw mut group));
    }
    if !of_session {
        pmpi!(Group_free(&raw mut world));
    }
    let known = list.iter().all(|rank| *rank != constant!(beff_undefined));
    known.then(|| list.into_iter().map(|rank| rank as u32).collect())
}

/// Pairs of an info. None for MPI_INFO_NULL.
pub fn info_pairs(handle: Word) -> Option<Vec<(String, String)>> {
    if handle == predefined_handles().info_null || handle == 0 {
        return None;
    }
    let mut keys: c_int = 0;
    if pmpi!(Info_get_nkeys(handle, &raw mut keys)) != 0 {
        return None;
    }
    let mut pairs = Vec::new();
    for index in 0..keys {
        let mut key = vec![0_u8; constant!(beff_info_key_bytes) as usize];
        let (mut length, mut found): (c_int, c_int) = (0, 0);
        if pmpi!(Info_get_nthkey(handle, index, key.as_mut_ptr())) != 0 {
            continue;
        }
        if pmpi!(Info_get_valuelen(handle, key.as_ptr(), &raw mut length, &raw mut found)) != 0 || found == 0 {
            continue;
        }
        let mut value = vec![0_u8; usize::try_from(length).unwrap_or(0) + 1];
        if pmpi!(Info_get(handle, key.as_ptr(), length, value.as_mut_ptr(), &raw mut found)) == 0 && found != 0 {
            pairs.push((text_until_nul(&key), text_until_nul(&value)));
        }
    }
    Some(pairs)
}

pub fn text_until_nul(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// Text of a C string.
///
/// # Safety
/// The address is that of a C string, or null.
pub unsafe fn text_at(address: Word) -> Option<String> {
    // SAFETY: guaranteed by the caller.
    (address != 0).then(|| unsafe { CStr::from_ptr(address as *const c_char) }.to_string_lossy().into_owned())
}
