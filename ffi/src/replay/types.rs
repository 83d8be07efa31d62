//! Datatypes from trees, made when they are first needed and kept to the end.

use std::ffi::{c_int, CString};

use beff_trace::types::Distribution;
use beff_trace::{Order, Type};
use mpi_sys::MPI_Datatype;

use crate::error::{c_integer, check, refused, Result};
use crate::shim;

/// A type of MPI. It is valid as long as the [`Types`] it comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TypeHandle(pub(super) MPI_Datatype);

impl TypeHandle {
    /// MPI_DATATYPE_NULL.
    #[must_use]
    pub fn null() -> Self {
        Self(constant!(shim::beff_datatype_null))
    }
}

/// What a type touches, as the library that will touch it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Bytes of data.
    pub size_bytes: u64,
    /// From one element to the next, in bytes.
    pub extent_bytes: i64,
    /// First byte of data, from the address (true lower bound).
    pub first: i64,
    /// Behind the last byte of data (true upper bound).
    pub end: i64,
}

impl Span {
    /// What so many elements touch, as (first, end) from the address; None beyond 63 bits. Nothing, for no data.
    #[must_use]
    pub fn of(&self, count: u64) -> Option<(i64, i64)> {
        if count == 0 || self.size_bytes == 0 {
            return Some((0, 0));
        }
        let last = i64::try_from(count - 1).ok()?.checked_mul(self.extent_bytes)?;
        Some((self.first.checked_add(last.min(0))?, self.end.checked_add(last.max(0))?))
    }
}

#[derive(Debug)]
struct Made {
    handle: MPI_Datatype,
    /// Derived: committed when used by itself, and freed.
    derived: bool,
    span: Option<Span>,
}

/// The types of a dictionary.
#[derive(Debug)]
pub struct Types {
    trees: Vec<Type>,
    made: Vec<Option<Made>>,
}

impl Types {
    /// Nothing is made yet.
    #[must_use]
    pub fn new(trees: Vec<Type>) -> Self {
        let made = trees.iter().map(|_| None).collect();
        Self { trees, made }
    }

    /// The type of this number, made with all it is made of, and committed; and what it touches.
    ///
    /// # Errors
    /// What MPI reports; MPI_ERR_TYPE for a number or a name that does not exist, for another size than was recorded, and for
    /// numbers that this library has no constructor for.
    pub fn ready(&mut self, number: u32) -> Result<(TypeHandle, Span)> {
        if let Some(Made { handle, span: Some(span), .. }) = self.made.get(number as usize).and_then(Option::as_ref) {
            return Ok((TypeHandle(*handle), *span));
        }
        self.make_with_parts(number)?;
        let Some(Some(made)) = self.made.get_mut(number as usize) else { return Err(unknown(number)) };
        if made.derived {
            // SAFETY: a derived type that is owned here.
            check(unsafe { mpi_sys::MPI_Type_commit(&raw mut made.handle) })?;
        }
        let span = span_of(made.handle)?;
        made.span = Some(span);
        Ok((TypeHandle(made.handle), span))
    }

    /// Makes a type and before it those it is made of. They stand in front of it, so ascending order is the order to make them in.
    fn make_with_parts(&mut self, number: u32) -> Result<()> {
        let (mut needed, mut next) = (vec![number], 0);
        while let Some(one) = needed.get(next).copied() {
            next += 1;
            let tree = self.trees.get(one as usize).ok_or_else(|| unknown(one))?;
            for part in parts(tree) {
                if *part >= one {
                    return Err(refused("MPI_ERR_TYPE", format!("type {one} is made of type {part} behind it")));
                }
                if self.made[*part as usize].is_none() {
                    needed.push(*part);
                }
            }
        }
        needed.sort_unstable();
        needed.dedup();
        for one in needed {
            if self.made[one as usize].is_none() {
                let made = self.make(one)?;
                self.made[one as usize] = Some(made);
            }
        }
        Ok(())
    }

    fn part(&self, number: u32) -> Result<MPI_Datatype> {
        let made = self.made.get(number as usize).and_then(Option::as_ref);
        made.map(|made| made.handle).ok_or_else(|| unknown(number))
    }

    /// Makes one whose parts are there.
    fn make(&self, number: u32) -> Result<Made> {
        let tree = &self.trees[number as usize];
        if let Type::Named { name, size_bytes, extent_bytes } = tree {
            let handle = named(name)?;
            let span = span_of(handle)?;
            if (span.size_bytes, span.extent_bytes) != (*size_bytes, *extent_bytes) {
                let text = format!(
                    "MPI_{name} has {} bytes in an extent of {} here, {size_bytes} in {extent_bytes} where it was recorded",
                    span.size_bytes, span.extent_bytes
                );
                return Err(refused("MPI_ERR_TYPE", text));
            }
            return Ok(Made { handle, derived: false, span: None });
        }
        let mut handle = constant!(shim::beff_datatype_null);
        let code = self.construct(tree, &mut handle)?;
        if code < 0 {
            let text = format!("type {number} needs large counts, which this MPI library does not have (MPI-4.0)");
            return Err(refused("MPI_ERR_TYPE", text));
        }
        check(code)?;
        Ok(Made { handle, derived: true, span: None })
    }

    /// Calls the constructor of a derived type. The code of MPI; -1 if this library has none for so large numbers.
    fn construct(&self, tree: &Type, into: *mut MPI_Datatype) -> Result<c_int> {
        let (n, ns) = (number, numbers);
        // SAFETY (all calls): arrays are as long as the count that is told, checked by `equal`; parts are alive; one handle is
        // written. The shim copies the numbers.
        Ok(match tree {
            Type::Named { .. } => return Err(refused("MPI_ERR_TYPE", "a predefined type is not constructed".into())),
            // SAFETY: as above.
            Type::Contiguous { count, of } => unsafe { shim::beff_type_contiguous(n(*count)?, self.part(*of)?, into) },
            // SAFETY: as above.
            Type::Vector { count, block, stride, of } => unsafe {
                shim::beff_type_vector(n(*count)?, n(*block)?, *stride, self.part(*of)?, into)
            },
            // SAFETY: as above.
            Type::Hvector { count, block, stride_bytes, of } => unsafe {
                shim::beff_type_hvector(n(*count)?, n(*block)?, *stride_bytes, self.part(*of)?, into)
            },
            Type::Indexed { blocks, displacements, of } => {
                let (count, blocks) = (equal(&[blocks.len(), displacements.len()])?, ns(blocks)?);
                let of = self.part(*of)?;
                // SAFETY: as above.
                unsafe { shim::beff_type_indexed(count, blocks.as_ptr(), displacements.as_ptr(), of, into) }
            }
            Type::Hindexed { blocks, displacements_bytes: places, of } => {
                let (count, blocks) = (equal(&[blocks.len(), places.len()])?, ns(blocks)?);
                let of = self.part(*of)?;
                // SAFETY: as above.
                unsafe { shim::beff_type_hindexed(count, blocks.as_ptr(), places.as_ptr(), of, into) }
            }
            Type::IndexedBlock { block, displacements, of } => {
                let (count, of) = (equal(&[displacements.len()])?, self.part(*of)?);
                // SAFETY: as above.
                unsafe { shim::beff_type_indexed_block(count, n(*block)?, displacements.as_ptr(), of, into) }
            }
            Type::HindexedBlock { block, displacements_bytes: places, of } => {
                let (count, of) = (equal(&[places.len()])?, self.part(*of)?);
                // SAFETY: as above.
                unsafe { shim::beff_type_hindexed_block(count, n(*block)?, places.as_ptr(), of, into) }
            }
            Type::Struct { blocks, displacements_bytes: places, of } => {
                let (count, blocks) = (equal(&[blocks.len(), places.len(), of.len()])?, ns(blocks)?);
                let of: Vec<_> = of.iter().map(|part| self.part(*part)).collect::<Result<_>>()?;
                // SAFETY: as above.
                unsafe { shim::beff_type_struct(count, blocks.as_ptr(), places.as_ptr(), of.as_ptr(), into) }
            }
            Type::Resized { lower_bound_bytes, extent_bytes, of } => {
                let (low, extent) = (*lower_bound_bytes as mpi_sys::MPI_Aint, *extent_bytes as mpi_sys::MPI_Aint);
                // SAFETY: as above.
                unsafe { mpi_sys::MPI_Type_create_resized(self.part(*of)?, low, extent, into) }
            }
            Type::Subarray { .. } | Type::Darray { .. } => return self.construct_array(tree, into),
        })
    }

    fn construct_array(&self, tree: &Type, into: *mut MPI_Datatype) -> Result<c_int> {
        match tree {
            Type::Subarray { sizes, subsizes, starts, order, of } => {
                let dimensions = dimensions(&[sizes.len(), subsizes.len(), starts.len()])?;
                let (sizes, subsizes, starts) = (numbers(sizes)?, numbers(subsizes)?, numbers(starts)?);
                let (a, b, c, of) = (sizes.as_ptr(), subsizes.as_ptr(), starts.as_ptr(), self.part(*of)?);
                // SAFETY: three arrays of as many numbers as there are dimensions; the part is alive; one handle is written.
                Ok(unsafe { shim::beff_type_subarray(dimensions, a, b, c, order_of(*order), of, into) })
            }
            Type::Darray { ranks, rank, sizes, distributions, arguments, grid, order, of } => {
                let dimensions = dimensions(&[sizes.len(), distributions.len(), arguments.len(), grid.len()])?;
                let (ranks, rank) = (c_integer(*ranks, "MPI_ERR_ARG")?, c_integer(*rank, "MPI_ERR_ARG")?);
                let sizes = numbers(sizes)?;
                let how: Vec<_> = distributions.iter().map(|one| distribution(*one)).collect();
                let default = constant!(shim::beff_distribute_dflt_darg);
                let argument = |one: &Option<u64>| one.map_or(Ok(default), |one| c_integer(one, "MPI_ERR_ARG"));
                let arguments: Vec<_> = arguments.iter().map(argument).collect::<Result<_>>()?;
                let grid: Vec<_> = grid.iter().map(|one| c_integer(*one, "MPI_ERR_ARG")).collect::<Result<_>>()?;
                let (order, of) = (order_of(*order), self.part(*of)?);
                // SAFETY: four arrays of as many numbers as there are dimensions; the part is alive; one handle is written.
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
            _ => Err(refused("MPI_ERR_TYPE", "no type of an array".into())),
        }
    }
}

impl Drop for Types {
    fn drop(&mut self) {
        for made in self.made.iter_mut().flatten().filter(|made| made.derived) {
            // SAFETY: a derived type that is owned here, freed once; MPI keeps what pending operations need.
            unsafe { mpi_sys::MPI_Type_free(&raw mut made.handle) };
        }
    }
}

fn unknown(number: u32) -> crate::MpiError {
    refused("MPI_ERR_TYPE", format!("there is no type {number}"))
}

fn parts(tree: &Type) -> &[u32] {
    match tree {
        Type::Named { .. } => &[],
        Type::Struct { of, .. } => of,
        Type::Contiguous { of, .. }
        | Type::Vector { of, .. }
        | Type::Hvector { of, .. }
        | Type::Indexed { of, .. }
        | Type::Hindexed { of, .. }
        | Type::IndexedBlock { of, .. }
        | Type::HindexedBlock { of, .. }
        | Type::Subarray { of, .. }
        | Type::Darray { of, .. }
        | Type::Resized { of, .. } => std::slice::from_ref(of),
    }
}

fn number(value: u64) -> Result<i64> {
    i64::try_from(value).map_err(|_| refused("MPI_ERR_COUNT", format!("{value} is beyond 63 bits")))
}

fn numbers(values: &[u64]) -> Result<Vec<i64>> {
    values.iter().map(|value| number(*value)).collect()
}

/// The length that all of the arrays have.
fn equal(lengths: &[usize]) -> Result<i64> {
    match lengths {
        [first, others @ ..] if others.iter().all(|other| other == first) => number(*first as u64),
        _ => Err(refused("MPI_ERR_ARG", format!("arrays of a type have {lengths:?} elements"))),
    }
}

fn dimensions(lengths: &[usize]) -> Result<c_int> {
    c_integer(equal(lengths)?.unsigned_abs(), "MPI_ERR_ARG")
}

fn order_of(order: Order) -> c_int {
    match order {
        Order::C => constant!(shim::beff_order_c),
        Order::Fortran => constant!(shim::beff_order_fortran),
    }
}

fn distribution(how: Distribution) -> c_int {
    match how {
        Distribution::None => constant!(shim::beff_distribute_none),
        Distribution::Block => constant!(shim::beff_distribute_block),
        Distribution::Cyclic => constant!(shim::beff_distribute_cyclic),
    }
}

/// A predefined type by its name without `MPI_`, also `F90_REAL(p,r)` and its like.
fn named(name: &str) -> Result<MPI_Datatype> {
    let none = || refused("MPI_ERR_TYPE", format!("this MPI library has no type MPI_{name}"));
    let null = constant!(shim::beff_datatype_null);
    let handle = match name.strip_prefix("F90_") {
        Some(fortran) => of_fortran(fortran).ok_or_else(none)??,
        None => {
            let text = CString::new(name).map_err(|_| none())?;
            // SAFETY: a C string; the shim compares it with those it knows.
            unsafe { shim::beff_named_type(text.as_ptr()) }
        }
    };
    if handle == null {
        return Err(none());
    }
    Ok(handle)
}

/// `REAL(p,r)`, `COMPLEX(p,r)`, `INTEGER(r)`; None if it is none of them.
fn of_fortran(name: &str) -> Option<Result<MPI_Datatype>> {
    let (kind, arguments) = name.strip_suffix(')')?.split_once('(')?;
    let arguments: Vec<c_int> = arguments.split(',').map(|one| one.trim().parse().ok()).collect::<Option<_>>()?;
    let mut made = constant!(shim::beff_datatype_null);
    // SAFETY: integers; one handle is written. What comes back is predefined and never freed.
    let code = unsafe {
        match (kind, arguments.as_slice()) {
            ("REAL", [p, r]) => mpi_sys::MPI_Type_create_f90_real(*p, *r, &raw mut made),
            ("COMPLEX", [p, r]) => mpi_sys::MPI_Type_create_f90_complex(*p, *r, &raw mut made),
            ("INTEGER", [r]) => mpi_sys::MPI_Type_create_f90_integer(*r, &raw mut made),
            _ => return None,
        }
    };
    Some(check(code).map(|()| made))
}

fn span_of(handle: MPI_Datatype) -> Result<Span> {
    let (mut size, mut low, mut extent, mut first, mut true_extent) = (0, 0, 0, 0, 0);
    // SAFETY: a valid type; numbers are written.
    unsafe {
        check(mpi_sys::MPI_Type_size_x(handle, &raw mut size))?;
        check(mpi_sys::MPI_Type_get_extent_x(handle, &raw mut low, &raw mut extent))?;
        check(mpi_sys::MPI_Type_get_true_extent_x(handle, &raw mut first, &raw mut true_extent))?;
    }
    let size_bytes = u64::try_from(size)
        .map_err(|_| refused("MPI_ERR_TYPE", "the size of a type is beyond what the library can tell".into()))?;
    let end = i64::checked_add(first, true_extent)
        .ok_or_else(|| refused("MPI_ERR_TYPE", "a type reaches beyond 63 bits".into()))?;
    Ok(Span { size_bytes, extent_bytes: extent, first, end })
}

/// Frees a type that the library handed out, if it is no predefined one.
pub(super) fn free_answer(mut handle: MPI_Datatype) {
    if handle == constant!(shim::beff_datatype_null) {
        return;
    }
    let (mut integers, mut addresses, mut types, mut combiner) = (0, 0, 0, 0);
    // SAFETY: a valid type; four integers are written.
    let code = unsafe {
        mpi_sys::MPI_Type_get_envelope(handle, &raw mut integers, &raw mut addresses, &raw mut types, &raw mut combiner)
    };
    // Types of Fortran by precision have a combiner of their own, no parts, and cannot be freed.
    if code == 0 && combiner != constant!(shim::beff_combiner_named) && types > 0 {
        // SAFETY: a reference of our own to a derived type, given back once.
        unsafe { mpi_sys::MPI_Type_free(&raw mut handle) };
    }
}
