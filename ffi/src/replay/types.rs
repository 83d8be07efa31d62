//! Datatypes from trees, constructed on first use and kept to the end.

use std::ffi::{c_int, CString};

use beff_trace::types::Distribution;
use beff_trace::{ArrayOrder, Datatype};
use mpi_sys::MPI_Datatype;

use crate::error::{c_integer, check, rejection, Result};
use crate::shim;

/// A datatype, valid as long as the [`TypeTable`] that returned it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TypeHandle(pub(super) MPI_Datatype);

impl TypeHandle {
    /// MPI_DATATYPE_NULL.
    #[must_use]
    pub fn null() -> Self {
        Self(constant!(shim::beff_datatype_null))
    }
}

/// Size and bounds of a type, as the library reports them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeBounds {
    /// Bytes of data.
    pub size_bytes: u64,
    /// Extent in bytes.
    pub extent_bytes: i64,
    /// True lower bound: first byte of data, relative to the address.
    pub first: i64,
    /// True upper bound: end of the data.
    pub end: i64,
}

impl TypeBounds {
    /// Byte range of `count` elements as (first, end) relative to the address, empty without data; None beyond 63 bits.
    #[must_use]
    pub fn byte_range(&self, count: u64) -> Option<(i64, i64)> {
        if count == 0 || self.size_bytes == 0 {
            return Some((0, 0));
        }
        let last = i64::try_from(count - 1).ok()?.checked_mul(self.extent_bytes)?;
        Some((self.first.checked_add(last.min(0))?, self.end.checked_add(last.max(0))?))
    }
}

#[derive(Debug)]
struct ConstructedType {
    handle: MPI_Datatype,
    /// Derived: committed if used by itself, and freed.
    derived: bool,
    bounds: Option<TypeBounds>,
}

/// Types of a dictionary.
#[derive(Debug)]
pub struct TypeTable {
    trees: Vec<Datatype>,
    constructed: Vec<Option<ConstructedType>>,
}

impl TypeTable {
    /// Constructs nothing yet.
    #[must_use]
    pub fn new(trees: Vec<Datatype>) -> Self {
        let constructed = trees.iter().map(|_| None).collect();
        Self { trees, constructed }
    }

    /// The type with this number, constructed with all its components and committed, and its bounds.
    ///
    /// # Errors
    /// Any MPI error; MPI_ERR_TYPE for an unknown number or name, a size that differs from the recording, or numbers without a
    /// constructor in this library.
    pub fn committed(&mut self, number: u32) -> Result<(TypeHandle, TypeBounds)> {
        if let Some(ConstructedType { handle, bounds: Some(span), .. }) =
            self.constructed.get(number as usize).and_then(Option::as_ref)
        {
            return Ok((TypeHandle(*handle), *span));
        }
        self.construct_with_components(number)?;
        let Some(Some(datatype)) = self.constructed.get_mut(number as usize) else { return Err(unknown_type(number)) };
        if datatype.derived {
            // SAFETY: a derived type owned here.
            check(unsafe { mpi_sys::MPI_Type_commit(&raw mut datatype.handle) })?;
        }
        let span = type_bounds(datatype.handle)?;
        datatype.bounds = Some(span);
        Ok((TypeHandle(datatype.handle), span))
    }

    /// Constructs a type after its components. Components have lower numbers, so ascending order is the construction order.
    fn construct_with_components(&mut self, number: u32) -> Result<()> {
        let (mut needed, mut next) = (vec![number], 0);
        while let Some(one) = needed.get(next).copied() {
            next += 1;
            let tree = self.trees.get(one as usize).ok_or_else(|| unknown_type(one))?;
            for part in component_numbers(tree) {
                if *part >= one {
                    return Err(rejection(
                        "MPI_ERR_TYPE",
                        format!("type {one} has the later type {part} as component"),
                    ));
                }
                if self.constructed[*part as usize].is_none() {
                    needed.push(*part);
                }
            }
        }
        needed.sort_unstable();
        needed.dedup();
        for one in needed {
            if self.constructed[one as usize].is_none() {
                let datatype = self.construct_type(one)?;
                self.constructed[one as usize] = Some(datatype);
            }
        }
        Ok(())
    }

    fn component(&self, number: u32) -> Result<MPI_Datatype> {
        let datatype = self.constructed.get(number as usize).and_then(Option::as_ref);
        datatype.map(|datatype| datatype.handle).ok_or_else(|| unknown_type(number))
    }

    /// Constructs a type whose components exist.
    fn construct_type(&self, number: u32) -> Result<ConstructedType> {
        let tree = &self.trees[number as usize];
        if self.is_bound_marker(number) {
            let handle = constant!(shim::beff_datatype_null);
            return Ok(ConstructedType { handle, derived: false, bounds: None });
        }
        if let Datatype::Named { name, size_bytes, extent_bytes } = tree {
            let handle = predefined_type(name)?;
            let span = type_bounds(handle)?;
            if (span.size_bytes, span.extent_bytes) != (*size_bytes, *extent_bytes) {
                let text = format!(
                    "MPI_{name} has size {} and extent {} here, but {size_bytes} and {extent_bytes} in the recording",
                    span.size_bytes, span.extent_bytes
                );
                return Err(rejection("MPI_ERR_TYPE", text));
            }
            return Ok(ConstructedType { handle, derived: false, bounds: None });
        }
        let mut handle = constant!(shim::beff_datatype_null);
        let code = self.call_constructor(tree, &mut handle)?;
        if code < 0 {
            let text = format!("type {number} needs large counts, which this MPI library lacks (MPI-4.0)");
            return Err(rejection("MPI_ERR_TYPE", text));
        }
        check(code)?;
        Ok(ConstructedType { handle, derived: true, bounds: None })
    }

    /// Calls the constructor of a derived type. Returns the code of MPI, or -1 without a constructor for such large numbers.
    fn call_constructor(&self, tree: &Datatype, into: *mut MPI_Datatype) -> Result<c_int> {
        let (n, ns) = (to_i64, to_i64_list);
        // SAFETY (all calls): arrays have `count` elements, checked by `common_length`; components are valid; one handle is written. The
        // shim copies the numbers.
        Ok(match tree {
            Datatype::Named { .. } => {
                return Err(rejection("MPI_ERR_TYPE", "a predefined type is not constructed".into()))
            }
            // SAFETY: as above.
            Datatype::Contiguous { count, of } => unsafe {
                shim::beff_type_contiguous(n(*count)?, self.component(*of)?, into)
            },
            // SAFETY: as above.
            Datatype::Vector { count, block, stride, of } => unsafe {
                shim::beff_type_vector(n(*count)?, n(*block)?, *stride, self.component(*of)?, into)
            },
            // SAFETY: as above.
            Datatype::Hvector { count, block, stride_bytes, of } => unsafe {
                shim::beff_type_hvector(n(*count)?, n(*block)?, *stride_bytes, self.component(*of)?, into)
            },
            Datatype::Indexed { blocks, displacements, of } => {
                let (count, blocks) = (common_length(&[blocks.len(), displacements.len()])?, ns(blocks)?);
                let of = self.component(*of)?;
                // SAFETY: as above.
                unsafe { shim::beff_type_indexed(count, blocks.as_ptr(), displacements.as_ptr(), of, into) }
            }
            Datatype::Hindexed { blocks, displacements_bytes: places, of } => {
                let (count, blocks) = (common_length(&[blocks.len(), places.len()])?, ns(blocks)?);
                let of = self.component(*of)?;
                // SAFETY: as above.
                unsafe { shim::beff_type_hindexed(count, blocks.as_ptr(), places.as_ptr(), of, into) }
            }
            Datatype::IndexedBlock { block, displacements, of } => {
                let (count, of) = (common_length(&[displacements.len()])?, self.component(*of)?);
                // SAFETY: as above.
                unsafe { shim::beff_type_indexed_block(count, n(*block)?, displacements.as_ptr(), of, into) }
            }
            Datatype::HindexedBlock { block, displacements_bytes: places, of } => {
                let (count, of) = (common_length(&[places.len()])?, self.component(*of)?);
                // SAFETY: as above.
                unsafe { shim::beff_type_hindexed_block(count, n(*block)?, places.as_ptr(), of, into) }
            }
            Datatype::Struct { blocks, displacements_bytes: places, of } => {
                common_length(&[blocks.len(), places.len(), of.len()])?;
                return self.call_struct_constructor(&ns(blocks)?, places, of, into);
            }
            Datatype::Resized { lower_bound_bytes, extent_bytes, of } => {
                let (low, extent) = (*lower_bound_bytes as mpi_sys::MPI_Aint, *extent_bytes as mpi_sys::MPI_Aint);
                // SAFETY: as above.
                unsafe { mpi_sys::MPI_Type_create_resized(self.component(*of)?, low, extent, into) }
            }
            Datatype::Subarray { .. } | Datatype::Darray { .. } => return self.call_array_constructor(tree, into),
        })
    }

    /// True for MPI_LB and MPI_UB, which the MPI library may not have.
    fn is_bound_marker(&self, number: u32) -> bool {
        matches!(self.trees.get(number as usize), Some(Datatype::Named { name, .. }) if name == "LB" || name == "UB")
    }

    /// A struct. MPI_LB and MPI_UB among its components become the bounds of a resized type (MPI-3.0, section 16.1).
    fn call_struct_constructor(
        &self,
        blocks: &[i64],
        places: &[i64],
        of: &[u32],
        into: *mut MPI_Datatype,
    ) -> Result<c_int> {
        let (markers, parts): (Vec<usize>, Vec<usize>) = (0..of.len()).partition(|n| self.is_bound_marker(of[*n]));
        let handles: Vec<_> = parts.iter().map(|n| self.component(of[*n])).collect::<Result<_>>()?;
        let of_parts = |all: &[i64]| -> Vec<i64> { parts.iter().map(|n| all[*n]).collect() };
        let (count, lengths, at) = (to_i64(parts.len() as u64)?, of_parts(blocks), of_parts(places));
        // SAFETY: three arrays of `count` elements; components are valid; one handle is written.
        let code = unsafe { shim::beff_type_struct(count, lengths.as_ptr(), at.as_ptr(), handles.as_ptr(), into) };
        let marked = |name: &str| {
            let is_it =
                |n: &&usize| matches!(&self.trees[of[**n] as usize], Datatype::Named { name: own, .. } if own == name);
            markers.iter().filter(is_it).filter(|n| blocks[**n] > 0).map(|n| places[*n]).collect::<Vec<_>>()
        };
        let (lower, upper) = (marked("LB").into_iter().min(), marked("UB").into_iter().max());
        if code != 0 || lower.or(upper).is_none() {
            return Ok(code);
        }
        let (mut low, mut extent) = (0, 0);
        // SAFETY: the struct was just constructed and is freed once, after the resized type that replaces it.
        unsafe {
            let mut inner = *into;
            check(mpi_sys::MPI_Type_get_extent_x(inner, &raw mut low, &raw mut extent))?;
            let begin = lower.unwrap_or(low);
            let extent = upper.unwrap_or(low + extent) - begin;
            let code =
                mpi_sys::MPI_Type_create_resized(inner, begin as mpi_sys::MPI_Aint, extent as mpi_sys::MPI_Aint, into);
            mpi_sys::MPI_Type_free(&raw mut inner);
            Ok(code)
        }
    }

    fn call_array_constructor(&self, tree: &Datatype, into: *mut MPI_Datatype) -> Result<c_int> {
        match tree {
            Datatype::Subarray { sizes, subsizes, starts, order, of } => {
                let dimensions = dimensions(&[sizes.len(), subsizes.len(), starts.len()])?;
                let (sizes, subsizes, starts) = (to_i64_list(sizes)?, to_i64_list(subsizes)?, to_i64_list(starts)?);
                let (a, b, c, of) = (sizes.as_ptr(), subsizes.as_ptr(), starts.as_ptr(), self.component(*of)?);
                // SAFETY: three arrays of `dimensions` numbers; the component is valid; one handle is written.
                Ok(unsafe { shim::beff_type_subarray(dimensions, a, b, c, mpi_order(*order), of, into) })
            }
            Datatype::Darray { ranks, rank, sizes, distributions, arguments, grid, order, of } => {
                let dimensions = dimensions(&[sizes.len(), distributions.len(), arguments.len(), grid.len()])?;
                let (ranks, rank) = (c_integer(*ranks, "MPI_ERR_ARG")?, c_integer(*rank, "MPI_ERR_ARG")?);
                let sizes = to_i64_list(sizes)?;
                let how: Vec<_> = distributions.iter().map(|one| mpi_distribution(*one)).collect();
                let default = constant!(shim::beff_distribute_dflt_darg);
                let argument = |one: &Option<u64>| one.map_or(Ok(default), |one| c_integer(one, "MPI_ERR_ARG"));
                let arguments: Vec<_> = arguments.iter().map(argument).collect::<Result<_>>()?;
                let grid: Vec<_> = grid.iter().map(|one| c_integer(*one, "MPI_ERR_ARG")).collect::<Result<_>>()?;
                let (order, of) = (mpi_order(*order), self.component(*of)?);
                // SAFETY: four arrays of `dimensions` numbers; the component is valid; one handle is written.
                Ok(unsafe {
                    shim::beff_type_darray(
                        ranks,
                        rank,
                        dimensions,
                        sizes.as_ptr(),
                        how.as_ptr(),
                        arguments.as_ptr(),
                        grid.as_ptr(),
                        order,
                        of,
                        into,
                    )
                })
            }
            _ => Err(rejection("MPI_ERR_TYPE", "not an array type".into())),
        }
    }
}

impl Drop for TypeTable {
    fn drop(&mut self) {
        for datatype in self.constructed.iter_mut().flatten().filter(|datatype| datatype.derived) {
            // SAFETY: a derived type owned here, freed once; MPI keeps what pending operations need.
            unsafe { mpi_sys::MPI_Type_free(&raw mut datatype.handle) };
        }
    }
}

fn unknown_type(number: u32) -> crate::MpiError {
    rejection("MPI_ERR_TYPE", format!("type {number} does not exist"))
}

fn component_numbers(tree: &Datatype) -> &[u32] {
    match tree {
        Datatype::Named { .. } => &[],
        Datatype::Struct { of, .. } => of,
        Datatype::Contiguous { of, .. }
        | Datatype::Vector { of, .. }
        | Datatype::Hvector { of, .. }
        | Datatype::Indexed { of, .. }
        | Datatype::Hindexed { of, .. }
        | Datatype::IndexedBlock { of, .. }
        | Datatype::HindexedBlock { of, .. }
        | Datatype::Subarray { of, .. }
        | Datatype::Darray { of, .. }
        | Datatype::Resized { of, .. } => std::slice::from_ref(of),
    }
}

fn to_i64(value: u64) -> Result<i64> {
    i64::try_from(value).map_err(|_| rejection("MPI_ERR_COUNT", format!("{value} exceeds 63 bits")))
}

fn to_i64_list(values: &[u64]) -> Result<Vec<i64>> {
    values.iter().map(|value| to_i64(*value)).collect()
}

/// The common length of the arrays.
fn common_length(lengths: &[usize]) -> Result<i64> {
    match lengths {
        [first, others @ ..] if others.iter().all(|other| other == first) => to_i64(*first as u64),
        _ => Err(rejection("MPI_ERR_ARG", format!("the arrays of a type have different lengths: {lengths:?}"))),
    }
}

fn dimensions(lengths: &[usize]) -> Result<c_int> {
    c_integer(common_length(lengths)?.unsigned_abs(), "MPI_ERR_ARG")
}

fn mpi_order(order: ArrayOrder) -> c_int {
    match order {
        ArrayOrder::C => constant!(shim::beff_order_c),
        ArrayOrder::Fortran => constant!(shim::beff_order_fortran),
    }
}

fn mpi_distribution(how: Distribution) -> c_int {
    match how {
        Distribution::None => constant!(shim::beff_distribute_none),
        Distribution::Block => constant!(shim::beff_distribute_block),
        Distribution::Cyclic => constant!(shim::beff_distribute_cyclic),
    }
}

/// A predefined type by its name without `MPI_`, including `F90_REAL(p,r)` etc.
fn predefined_type(name: &str) -> Result<MPI_Datatype> {
    let none = || rejection("MPI_ERR_TYPE", format!("this MPI library has no type MPI_{name}"));
    let null = constant!(shim::beff_datatype_null);
    let handle = match name.strip_prefix("F90_") {
        Some(fortran) => fortran_type(fortran).ok_or_else(none)??,
        None => {
            let text = CString::new(name).map_err(|_| none())?;
            // SAFETY: a C string; the shim compares it with known names.
            unsafe { shim::beff_named_type(text.as_ptr()) }
        }
    };
    if handle == null {
        return Err(none());
    }
    Ok(handle)
}

/// Type for `REAL(p,r)`, `COMPLEX(p,r)`, `INTEGER(r)`; None for other names.
fn fortran_type(name: &str) -> Option<Result<MPI_Datatype>> {
    let (kind, arguments) = name.strip_suffix(')')?.split_once('(')?;
    let arguments: Vec<c_int> = arguments.split(',').map(|one| one.trim().parse().ok()).collect::<Option<_>>()?;
    let mut datatype = constant!(shim::beff_datatype_null);
    // SAFETY: integers; one handle is written. The type is predefined and never freed.
    let code = unsafe {
        match (kind, arguments.as_slice()) {
            ("REAL", [p, r]) => mpi_sys::MPI_Type_create_f90_real(*p, *r, &raw mut datatype),
            ("COMPLEX", [p, r]) => mpi_sys::MPI_Type_create_f90_complex(*p, *r, &raw mut datatype),
            ("INTEGER", [r]) => mpi_sys::MPI_Type_create_f90_integer(*r, &raw mut datatype),
            _ => return None,
        }
    };
    Some(check(code).map(|()| datatype))
}

fn type_bounds(handle: MPI_Datatype) -> Result<TypeBounds> {
    let (mut size, mut low, mut extent, mut first, mut true_extent) = (0, 0, 0, 0, 0);
    // SAFETY: a valid type; numbers are written.
    unsafe {
        check(mpi_sys::MPI_Type_size_x(handle, &raw mut size))?;
        check(mpi_sys::MPI_Type_get_extent_x(handle, &raw mut low, &raw mut extent))?;
        check(mpi_sys::MPI_Type_get_true_extent_x(handle, &raw mut first, &raw mut true_extent))?;
    }
    let size_bytes = u64::try_from(size)
        .map_err(|_| rejection("MPI_ERR_TYPE", "the library cannot represent the size of a type".into()))?;
    let end = i64::checked_add(first, true_extent)
        .ok_or_else(|| rejection("MPI_ERR_TYPE", "the bounds of a type exceed 63 bits".into()))?;
    Ok(TypeBounds { size_bytes, extent_bytes: extent, first, end })
}

/// Frees a type returned by the library unless it is predefined.
pub(super) fn free_returned_type(mut handle: MPI_Datatype) {
    if handle == constant!(shim::beff_datatype_null) {
        return;
    }
    let (mut integers, mut addresses, mut types, mut combiner) = (0, 0, 0, 0);
    // SAFETY: a valid type; four integers are written.
    let code = unsafe {
        mpi_sys::MPI_Type_get_envelope(handle, &raw mut integers, &raw mut addresses, &raw mut types, &raw mut combiner)
    };
    // Fortran types by precision have combiners of their own and no components, and cannot be freed.
    if code == 0 && combiner != constant!(shim::beff_combiner_named) && types > 0 {
        // SAFETY: a reference to a derived type owned here, released once.
        unsafe { mpi_sys::MPI_Type_free(&raw mut handle) };
    }
}
