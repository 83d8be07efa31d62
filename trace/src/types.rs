//! Datatypes as trees (MPI-4.0 chapter 5). A type refers to its inner types by their dictionary number and comes after them, so that no
//! type contains itself. Duplicates (MPI_Type_dup) are replaced by the original.

/// Order of the dimensions of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ArrayOrder {
    /// MPI_ORDER_C: the last dimension is contiguous.
    C,
    /// MPI_ORDER_FORTRAN.
    Fortran,
}

/// Distribution of a dimension of MPI_Type_create_darray.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Distribution {
    /// MPI_DISTRIBUTE_NONE.
    None,
    /// MPI_DISTRIBUTE_BLOCK.
    Block,
    /// MPI_DISTRIBUTE_CYCLIC.
    Cyclic,
}

/// A datatype. Lengths are in elements of the inner type unless they are `_bytes`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the fields are the arguments of the constructors in the standard
pub enum Datatype {
    /// A predefined type, without `MPI_`, with size and extent (they differ for MPI_DOUBLE_INT and similar). Types of MPI_Type_create_f90_*
    /// are predefined too: `F90_REAL(p,r)`, `F90_COMPLEX(p,r)`, `F90_INTEGER(r)`.
    Named { name: String, size_bytes: u64, extent_bytes: i64 },
    /// MPI_Type_contiguous.
    Contiguous { count: u64, of: u32 },
    /// MPI_Type_vector; stride in extents of the inner type.
    Vector { count: u64, block: u64, stride: i64, of: u32 },
    /// MPI_Type_create_hvector.
    Hvector { count: u64, block: u64, stride_bytes: i64, of: u32 },
    /// MPI_Type_indexed.
    Indexed { blocks: Vec<u64>, displacements: Vec<i64>, of: u32 },
    /// MPI_Type_create_hindexed.
    Hindexed { blocks: Vec<u64>, displacements_bytes: Vec<i64>, of: u32 },
    /// MPI_Type_create_indexed_block.
    IndexedBlock { block: u64, displacements: Vec<i64>, of: u32 },
    /// MPI_Type_create_hindexed_block.
    HindexedBlock { block: u64, displacements_bytes: Vec<i64>, of: u32 },
    /// MPI_Type_create_struct.
    Struct { blocks: Vec<u64>, displacements_bytes: Vec<i64>, of: Vec<u32> },
    /// MPI_Type_create_subarray.
    Subarray { sizes: Vec<u64>, subsizes: Vec<u64>, starts: Vec<u64>, order: ArrayOrder, of: u32 },
    /// MPI_Type_create_darray; a None argument is MPI_DISTRIBUTE_DFLT_DARG.
    Darray {
        ranks: u64,
        rank: u64,
        sizes: Vec<u64>,
        distributions: Vec<Distribution>,
        arguments: Vec<Option<u64>>,
        grid: Vec<u64>,
        order: ArrayOrder,
        of: u32,
    },
    /// MPI_Type_create_resized.
    Resized { lower_bound_bytes: i64, extent_bytes: i64, of: u32 },
}
