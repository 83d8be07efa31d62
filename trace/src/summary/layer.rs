//! The library that issues the MPI-IO calls, and what a user calls in it.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Library above MPI-IO.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Layer {
    /// None: the program calls MPI-IO.
    #[default]
    Direct,
    Hdf5,
    /// NetCDF, in the format of HDF5 or in its own through PnetCDF.
    NetCdf,
    Pnetcdf,
    Adios2,
}

impl Layer {
    /// By the first bytes of the file if it is there, else by its name.
    pub fn of(path: &str) -> Self {
        let by_name = Self::by_name(path);
        // A relative name is relative to the directory of the program.
        match Some(path)
            .filter(|path| path.starts_with('/'))
            .and_then(first_bytes)
            .and_then(|begin| Self::by_content(&begin))
        {
            Some(Self::Hdf5) if by_name == Self::NetCdf => by_name,
            Some(known) => known,
            None => by_name,
        }
    }

    fn by_content(begin: &[u8; 8]) -> Option<Self> {
        match begin {
            b"\x89HDF\r\n\x1a\n" => Some(Self::Hdf5),
            [b'C', b'D', b'F', 1 | 2 | 5, ..] => Some(Self::Pnetcdf),
            _ => None,
        }
    }

    fn by_name(path: &str) -> Self {
        let is_adios = path.split('/').any(|part| part.ends_with(".bp") || part.ends_with(".bp.dir"));
        match Path::new(path).extension().and_then(|ending| ending.to_str()).unwrap_or_default() {
            "h5" | "hdf5" | "hdf" | "he5" => Self::Hdf5,
            "nc" | "nc4" | "cdf" => Self::NetCdf,
            _ if is_adios => Self::Adios2,
            _ => Self::Direct,
        }
    }

    /// Name in texts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "MPI-IO",
            Self::Hdf5 => "HDF5",
            Self::NetCdf => "NetCDF",
            Self::Pnetcdf => "PnetCDF",
            Self::Adios2 => "ADIOS2",
        }
    }
}

fn first_bytes(path: &str) -> Option<[u8; 8]> {
    // No pipe or device, whose opening may block.
    if !std::fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut begin = [0; 8];
    File::open(path).ok()?.read_exact(&mut begin).ok()?;
    Some(begin)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn the_content_says_more_than_the_name() {
        for (name, layer) in [
            ("a/out.h5", Layer::Hdf5),
            ("out.nc", Layer::NetCdf),
            ("/s/run.bp/data.0", Layer::Adios2),
            ("out.bp", Layer::Adios2),
            ("out.dat", Layer::Direct),
            ("/h5/nc", Layer::Direct),
        ] {
            assert_eq!(Layer::of(name), layer, "{name}");
        }
        let dir = tempfile::tempdir().unwrap();
        for (name, begin, layer) in [
            ("a.dat", &b"\x89HDF\r\n\x1a\n..."[..], Layer::Hdf5),
            ("a.nc", b"\x89HDF\r\n\x1a\n...", Layer::NetCdf),
            ("b.nc", b"CDF\x05\0\0\0\0\0", Layer::Pnetcdf),
            ("c.h5", b"short", Layer::Hdf5),
            ("d", b"12345678", Layer::Direct),
        ] {
            let path = dir.path().join(name);
            File::create(&path).unwrap().write_all(begin).unwrap();
            assert_eq!(Layer::of(path.to_str().unwrap()), layer, "{name}");
        }
        assert_eq!(Layer::of("/dev/zero"), Layer::Direct);
    }
}
