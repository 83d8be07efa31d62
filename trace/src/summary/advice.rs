//! What to call in each library.

use super::layer::Layer;

/// Fill values.
pub(super) fn fill_values(layer: Layer) -> &'static str {
    match layer {
        Layer::NetCdf => "nc_def_var_fill(ncid, varid, NC_NOFILL, NULL) for variables that the program writes completely (HDF5: H5Pset_fill_time(dcpl, H5D_FILL_TIME_NEVER)); beff-raw replay FILE --what-if fill-never measures the gain",
        Layer::Pnetcdf => "ncmpi_set_fill(ncid, NC_NOFILL, &old) for variables that the program writes completely; beff-raw replay FILE --what-if fill-never measures the gain",
        _ => "H5Pset_fill_time(dcpl, H5D_FILL_TIME_NEVER) for datasets that the program writes completely avoids it (NetCDF-4: nc_def_var_fill with NC_NOFILL); beff-raw replay FILE --what-if fill-never measures the gain",
    }
}

/// Bytes overwritten before anything read them.
pub(super) fn overwritten(layer: Layer) -> &'static str {
    match layer {
        Layer::Hdf5 => "write each selection once; if it is metadata, flush less often (H5Fflush) and keep more in the cache (H5Pset_mdc_config)",
        Layer::NetCdf => "write each part of a variable once; define all before the data (one nc_enddef), and call nc_sync less often",
        Layer::Pnetcdf => "write each part of a variable once; define all before the data (one ncmpi_enddef), and call ncmpi_sync less often",
        Layer::Adios2 => "Put each variable once in a step",
        Layer::Direct => "only the last version matters: collect changes in memory, and write each byte once",
    }
}

/// Bytes lost before anything read them.
pub(super) fn discarded() -> &'static str {
    "if nobody else reads them before, they need not be written; scratch data may stay in memory or on a local disk"
}

/// A rank reads what it then writes.
pub(super) fn read_then_written(layer: Layer) -> &'static str {
    match layer {
        Layer::Hdf5 | Layer::NetCdf => "write whole chunks, or choose chunks that fit the selections of a rank; a chunk cache that holds them (H5Pset_chunk_cache, nc_set_var_chunk_cache) avoids repetition",
        Layer::Pnetcdf => "write whole blocks of a variable (ncmpi_put_vara_all), or combine requests (ncmpi_iput_vara, ncmpi_wait_all)",
        Layer::Adios2 => "write whole blocks of a variable",
        Layer::Direct => "write whole blocks, or keep them in memory in between",
    }
}

/// The same bytes are read more than once.
pub(super) fn read_again(layer: Layer) -> &'static str {
    match layer {
        Layer::Hdf5 => "read them once: on one rank with MPI_Bcast, or collectively (H5FD_MPIO_COLLECTIVE); for metadata H5Pset_all_coll_metadata_ops(fapl, 1)",
        Layer::NetCdf => "read them once: on one rank with MPI_Bcast, or collectively (nc_var_par_access with NC_COLLECTIVE)",
        Layer::Pnetcdf => "read them once: on one rank with MPI_Bcast, or collectively (ncmpi_get_vara_all)",
        Layer::Adios2 => "read them once: on one rank with MPI_Bcast",
        Layer::Direct => "read them once: on one rank with MPI_Bcast, or collectively (MPI_File_read_at_all), or keep them in memory",
    }
}

/// Small accesses at the begin of a file.
pub(super) fn metadata(layer: Layer) -> &'static str {
    match layer {
        Layer::Hdf5 => "H5Pset_coll_metadata_write(fapl, 1) and H5Pset_all_coll_metadata_ops(fapl, 1), a larger H5Pset_meta_block_size, fewer attributes and small datasets",
        Layer::NetCdf => "define all dimensions, variables and attributes before one nc_enddef, with space for later ones (nc__enddef)",
        Layer::Pnetcdf => "define all dimensions, variables and attributes before one ncmpi_enddef; hint nc_header_read_chunk_size for reads",
        Layer::Adios2 => "fewer steps and variables, or aggregate them (StatsLevel=0, larger buffers)",
        Layer::Direct => "collect the header in memory and write it in one call; to read it, read once and MPI_Bcast",
    }
}

/// Accesses that cross stripes.
pub(super) fn crossing(layer: Layer, stripe: &str) -> String {
    match layer {
        Layer::Hdf5 => format!("H5Pset_alignment(fapl, {stripe}, {stripe}), and chunks whose size divides the stripe or is a multiple of it"),
        Layer::NetCdf => format!("nc_set_alignment({stripe}, {stripe}) before the file is created, and chunks whose size fits"),
        Layer::Pnetcdf => format!("hints nc_var_align_size={stripe} and nc_header_align_size={stripe} when the file is created"),
        Layer::Adios2 => format!("StripeSize of the engine, or blocks of {stripe}"),
        Layer::Direct => format!("blocks that begin at multiples of {stripe}, or collective accesses, which ROMIO aligns with stripes; hint striping_unit when the file is created"),
    }
}

/// One rank moves the data.
pub(super) fn one_rank(layer: Layer) -> &'static str {
    match layer {
        Layer::Hdf5 => {
            "let each rank select its part (H5Sselect_hyperslab) and transfer collectively (H5FD_MPIO_COLLECTIVE)"
        }
        Layer::NetCdf => {
            "let each rank write its part (start, count) with nc_var_par_access(ncid, varid, NC_COLLECTIVE)"
        }
        Layer::Pnetcdf => "let each rank write its part with ncmpi_put_vara_all",
        Layer::Adios2 => "more aggregators (NumAggregators)",
        Layer::Direct => "let each rank access its part, collectively (MPI_File_write_at_all, MPI_File_read_at_all)",
    }
}

/// Independent accesses of several ranks to a common file.
pub(super) fn independent(layer: Layer) -> &'static str {
    match layer {
        Layer::Hdf5 => {
            "H5Pset_dxpl_mpio(dxpl, H5FD_MPIO_COLLECTIVE) for H5Dwrite and H5Dread, which all ranks must then call"
        }
        Layer::NetCdf => "nc_var_par_access(ncid, varid, NC_COLLECTIVE)",
        Layer::Pnetcdf => "the functions in _all (ncmpi_put_vara_all), or ncmpi_iput_vara and ncmpi_wait_all",
        Layer::Adios2 => "an engine that aggregates (BP4, BP5) with more data per step",
        Layer::Direct => "collective calls (MPI_File_write_at_all, MPI_File_read_at_all), if all ranks can take part; beff-raw replay FILE --what-if collective measures the gain",
    }
}

/// Setting views.
pub(super) fn set_view(layer: Layer) -> &'static str {
    match layer {
        Layer::Hdf5 => "setting views, which HDF5 does for each collective transfer; fewer and larger ones would help (whole datasets, H5Dwrite_multi)",
        Layer::NetCdf => "setting views, which the library does for each collective transfer; fewer and larger ones would help",
        Layer::Pnetcdf => "setting views, which PnetCDF does for each collective transfer; one ncmpi_wait_all for many requests (ncmpi_iput_vara) would help",
        Layer::Adios2 => "setting views; larger steps would help",
        Layer::Direct => "setting views; a view that is set once, or one type for all steps, would help",
    }
}

/// Opening files.
pub(super) fn open(files: u64, layer: Layer) -> &'static str {
    match (files, layer) {
        (0 | 1, _) => "opening and creating a file; the first call also starts the I/O of the library, and includes waiting for the last rank",
        (_, Layer::Direct) => "opening files; fewer files, or one file that stays open, would help, as would a smaller communicator for small files",
        _ => "opening files; fewer files, or one file that stays open and has several datasets or steps, would help",
    }
}

/// Ranks wait for the last one.
pub(super) fn waiting(layer: Layer) -> &'static str {
    match layer {
        Layer::Direct => "see what the late rank does before: its own I/O, or more computation; nonblocking collective calls (MPI_File_iwrite_at_all) would let the others go on",
        Layer::Pnetcdf => "see what the late rank does before: its own I/O, or more computation; one ncmpi_wait_all for many requests waits less often",
        _ => "see what the late rank does before: its own I/O, metadata, or more computation; fewer and larger transfers wait less often",
    }
}
