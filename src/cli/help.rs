//! What stands below the options in `--help`.

/// Units and exit codes, the same under every command.
macro_rules! common {
    () => {
        "\
Units:
  Sizes are bytes, or a number with K, M, G or T in powers of two: 64K = 65536.
  Times are seconds, or a number with s, m or h: 90s, 15m, 2h.
  Bandwidths are shown in MB/s = 1000000 bytes per second, as in the papers.

Exit codes:
    0  done
    1  an I/O or MPI operation failed; what was measured before is kept
    2  the command line, the hints file or the launcher does not fit; nothing was measured
    3  data read was not the data written
  130  interrupted; what was measured before is kept"
    };
}

pub(super) const MAIN: &str = concat!(
    "Examples:
  One minute through MPI-IO, files in /scratch:
      mpirun -n 4 beff-raw --path /scratch
  The ladder from device to MPI-IO, results kept in ladder.json:
      mpirun -n 4 beff-raw --backend mpiio,posix,uring,mmap -T 15m --path /scratch --out ladder
  What a run on 1024 ranks would write, without running it:
      beff-raw plan --ranks 1024 --rate 20G -T 15m

  `beff-raw COMMAND --help` has more for each command.

",
    common!()
);

pub(super) const IO: &str = concat!(
    "Examples:
  A value that may be compared with other systems (release 1: 15 minutes):
      mpirun -n 16 beff-raw io -T 15m --path /scratch --out scratch
  MPI-IO beside the kernel's interfaces, past the page cache where possible:
      mpirun -n 4 beff-raw io --backend mpiio,posix,uring --direct auto --depth 64 --path /scratch
  As release 2.1 did it, half an hour for each of its three partitions, with hints:
      mpirun -n 64 beff-raw io --release 2.1 -T 90m --hints hints.txt --path /scratch

",
    common!()
);

pub(super) const COMM: &str = concat!(
    "Examples:
  The effective bandwidth of all ranks, kept in comm.json:
      mpirun -n 64 beff-raw comm --out comm
  A first look, with the balance factor of a system of 3.2 Tflop/s:
      mpirun -n 64 beff-raw comm --quick --rmax 3200
  Only ping-pong and rings, with the curves of every method:
      mpirun -n 4 beff-raw comm --families ping-pong,ring --details
  Which rings 1000 ranks would form:
      beff-raw comm --plan 1000

Patterns, sizes, loops and the value are those of the paper on b_eff: 21 message sizes from 1 byte to Lmax, three
methods, three repetitions; the value is the geometric mean of rings and random rings.

",
    common!()
);

pub(super) const IMB: &str = concat!(
    "Examples:
  The 37 benchmarks of the release on 1, 2, 4, ... and all ranks, kept in imb.json:
      mpirun -n 8 beff-raw imb --path /scratch --out imb
  A command line of the release, as it is behind the name of the program:
      mpirun -n 4 beff-raw imb -npmin 4 -msglog 16:22 -iter 100,40 -time 3 P_Write_Indv C_Write_Indv
  One benchmark through MPI-IO and beneath it:
      mpirun -n 4 beff-raw imb P_Write_Expl --backend mpiio,posix,uring --path /scratch
  The columns of the release, for a script that reads them:
      mpirun -n 4 beff-raw imb S_Read_Indv --imb-format > s_read.txt

Options of the release may be spelled with one dash. What differs from it:
  - The count of every transfer is checked and data is compared. A row with a short transfer is an
    error and has no time; the release counts reads behind the end of the file as fast ones.
  - Reads do not come from the pages that the preparation left in the cache; --cache keep lets them.
  - Each repetition has a place of its own in the file, each pending request memory of its own.
  - Bandwidths of P_*_Priv are those of the bytes that were moved, and their ranks begin together.
  - The files lie in a directory of the run under --path and are removed; --keep-files leaves them.
  - Names of --include and --exclude are joined by commas.

",
    common!()
);

pub(super) const PLAN: &str = concat!(
    "Examples:
  Schedule and sizes of the default run on 4 ranks:
      beff-raw plan --ranks 4
  Would a comparable run on 1024 ranks at 20 GiB/s fit into 100 TiB?
      beff-raw plan --ranks 1024 --rate 20G -T 15m --space 100T
  The partitions of release 2.1 on 142 ranks, for a script:
      beff-raw plan --ranks 142 --release 2.1 -T 90m --json

",
    common!()
);

pub(super) const REPORT: &str = concat!(
    "Examples:
  The table of a run, with every pattern:
      beff-raw report scratch.json --details
  What a run that was killed had measured so far:
      beff-raw report scratch.jsonl
  Several runs as one tidy table for a spreadsheet or a data frame:
      beff-raw report monday.json tuesday.json --format csv > week.csv

",
    common!()
);

pub(super) const INFO: &str = concat!(
    "Examples:
  What can be measured here:
      beff-raw info
  The same for the storage under /scratch:
      beff-raw info --path /scratch
  What the program sees on a compute node, under the batch system's launcher:
      srun -N 1 -n 1 beff-raw info --path /scratch

",
    common!()
);
