//! Communicators: owned handles and the few collective calls that the benchmarks need. A rank that is alone agrees with itself
//! without a call, so [`Comm::own`] works before MPI is started.

use std::ffi::{c_int, c_void};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use mpi_sys::MPI_Comm;

use crate::error::{c_integer, check, Result};
use crate::ranks::{bytes, bytes_f64, fold, fold_f64, words, Ranks};
use crate::{shim, stranded};

/// A communicator. The predefined ones are borrowed from MPI, the others are freed on drop.
#[derive(Debug)]
pub struct Comm {
    handle: MPI_Comm,
    owned: bool,
    rank: u64,
    size: u64,
    /// None: those of MPI.
    ranks: Option<Box<dyn Ranks>>,
}

impl Comm {
    fn from_handle(handle: MPI_Comm, owned: bool) -> Self {
        let (mut rank, mut size): (c_int, c_int) = (0, 1);
        // SAFETY: the handle is a valid communicator; two integers are written.
        unsafe {
            mpi_sys::MPI_Comm_rank(handle, &raw mut rank);
            mpi_sys::MPI_Comm_size(handle, &raw mut size);
        }
        // Ranks and sizes are never negative (MPI-3.1 section 6.4.1).
        let (rank, size) = (u64::try_from(rank).unwrap_or(0), u64::try_from(size).unwrap_or(1));
        Self { handle, owned, rank, size, ranks: None }
    }

    pub(crate) fn world() -> Self {
        Self::from_handle(constant!(mpi_sys::RSMPI_COMM_WORLD), false)
    }

    /// MPI_COMM_SELF: this rank alone. Its rank and size are known, so this works before MPI is started too.
    #[must_use]
    pub fn own() -> Self {
        let handle = constant!(mpi_sys::RSMPI_COMM_SELF);
        Self { handle, owned: false, rank: 0, size: 1, ranks: None }
    }

    /// Ranks that are not MPI's, as unit tests have them. No call of MPI is made.
    #[must_use]
    pub fn of(ranks: Box<dyn Ranks>) -> Self {
        let handle = constant!(mpi_sys::RSMPI_COMM_SELF);
        Self { handle, owned: false, rank: ranks.rank(), size: ranks.size(), ranks: Some(ranks) }
    }

    pub(crate) fn ranks(&self) -> Option<&dyn Ranks> {
        self.ranks.as_deref()
    }

    pub(crate) fn handle(&self) -> MPI_Comm {
        self.handle
    }

    /// This process's rank.
    #[must_use]
    pub fn rank(&self) -> u64 {
        self.rank
    }

    /// Number of ranks.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// True on rank 0.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.rank == 0
    }

    pub(crate) fn return_errors(&self) -> Result<()> {
        // SAFETY: valid communicator, predefined error handler.
        check(unsafe { mpi_sys::MPI_Comm_set_errhandler(self.handle, mpi_sys::RSMPI_ERRORS_RETURN) })
    }

    /// The ranks 0 .. `ranks`-1 as a communicator of their own, None on the others. Collective.
    pub fn prefix(&self, ranks: u64) -> Result<Option<Self>> {
        self.blocks(ranks, 1)
    }

    /// `blocks` communicators of `ranks` neighbouring ranks each, from rank 0 on: the one this rank is in, None on the ranks
    /// behind the last block. Collective.
    pub fn blocks(&self, ranks: u64, blocks: u64) -> Result<Option<Self>> {
        if let Some(own) = self.ranks() {
            let block = self.rank / ranks.max(1);
            return Ok(own.split((block < blocks).then_some(block)).map(Self::of));
        }
        let block = self.rank / ranks.max(1);
        let none = constant!(shim::beff_undefined);
        // Ranks are C integers by definition, so numbers of blocks and the key fit.
        let color = if block < blocks { c_int::try_from(block).unwrap_or(c_int::MAX) } else { none };
        let key = c_int::try_from(self.rank).unwrap_or(c_int::MAX);
        let mut handle = constant!(shim::beff_comm_null);
        // SAFETY: collective call on a valid communicator; the new handle is written.
        check(unsafe { mpi_sys::MPI_Comm_split(self.handle, color, key, &raw mut handle) })?;
        Self::adopt(handle)
    }

    /// The ranks that share this rank's node. Collective.
    ///
    /// MPI_Comm_split_type spins for some hundred milliseconds where ranks outnumber cores. Ranks that all find themselves on one
    /// host need no split: they get a copy.
    pub fn node(&self) -> Result<Option<Self>> {
        if let Some(ranks) = self.ranks() {
            return Ok(ranks.split(Some(0)).map(Self::of));
        }
        if self.is_on_one_host()? {
            return self.copy().map(Some);
        }
        let mut handle = constant!(shim::beff_comm_null);
        // SAFETY: predefined constants; collective call on a valid communicator.
        check(unsafe {
            mpi_sys::MPI_Comm_split_type(
                self.handle,
                shim::beff_comm_type_shared,
                0,
                mpi_sys::RSMPI_INFO_NULL,
                &raw mut handle,
            )
        })?;
        Self::adopt(handle)
    }

    /// The same ranks with messages and collective calls of their own (MPI_Comm_dup). Collective.
    pub fn duplicate(&self) -> Result<Self> {
        let mut handle = constant!(shim::beff_comm_null);
        // SAFETY: collective call on a valid communicator; the new handle is written.
        check(unsafe { mpi_sys::MPI_Comm_dup(self.handle, &raw mut handle) })?;
        Self::made(handle)
    }

    /// True if all ranks read the same host name in the same boot of a kernel. False as well where one cannot tell. Collective.
    fn is_on_one_host(&self) -> Result<bool> {
        let (mut hasher, mut is_known) = (DefaultHasher::new(), true);
        for of_host in ["/proc/sys/kernel/hostname", "/proc/sys/kernel/random/boot_id"] {
            let text = std::fs::read(of_host).unwrap_or_default();
            is_known &= !text.is_empty();
            text.hash(&mut hasher);
        }
        let host = hasher.finish();
        let mut largest = [host, !host, u64::from(!is_known)];
        self.max_u64(&mut largest)?;
        Ok(largest == [host, !host, 0])
    }

    /// As [`Comm::duplicate`], without spinning (MPI_Comm_idup, then MPI_Test). Collective.
    fn copy(&self) -> Result<Self> {
        let mut handle = constant!(shim::beff_comm_null);
        // SAFETY: collective call on a valid communicator; the new handle is written until the request is complete, and used
        // only then (MPI-3.1, 6.4.2).
        self.patiently(|request| unsafe { mpi_sys::MPI_Comm_idup(self.handle, &raw mut handle, request) })?;
        Self::made(handle)
    }

    /// A communicator that was just made.
    fn made(handle: MPI_Comm) -> Result<Self> {
        let comm = Self::from_handle(handle, true);
        comm.return_errors()?;
        Ok(comm)
    }

    /// The same, for ranks that may be in none.
    pub(crate) fn adopt(handle: MPI_Comm) -> Result<Option<Self>> {
        if handle == constant!(shim::beff_comm_null) {
            return Ok(None);
        }
        Self::made(handle).map(Some)
    }

    /// MPI_Barrier itself, which spins: for clocks that begin behind it by definition. Elsewhere [`Comm::barrier`].
    ///
    /// # Errors
    /// What MPI reports.
    pub fn bare_barrier(&self) -> Result<()> {
        if let Some(ranks) = self.ranks() {
            ranks.meet("bare barrier", &[]);
            return Ok(());
        }
        if self.size > 1 {
            // SAFETY: collective call on a valid communicator.
            check(unsafe { mpi_sys::MPI_Barrier(self.handle) })?;
        }
        stranded::others_came();
        Ok(())
    }

    /// MPI_Bcast itself, which spins: for decisions as the program of the definition makes them. Elsewhere [`Comm::bcast_f64`]. Does not
    /// allocate.
    ///
    /// # Errors
    /// What MPI reports.
    pub fn bare_bcast_f64(&self, values: &mut [f64], root: u64) -> Result<()> {
        if self.of_root_f64("bare bcast", values, root) {
            return Ok(());
        }
        if self.size == 1 {
            return Ok(());
        }
        let (root, kind) = (c_integer(root, "MPI_ERR_ROOT")?, constant!(mpi_sys::RSMPI_DOUBLE));
        let (memory, count) = (values.as_mut_ptr().cast::<c_void>(), c_integer(values.len() as u64, "MPI_ERR_COUNT")?);
        // SAFETY: the buffer holds `count` doubles, equally many on all ranks.
        check(unsafe { mpi_sys::MPI_Bcast(memory, count, kind, root, self.handle) })
    }

    /// A barrier that does not burn a core while it waits: for ranks outside the partition that is measured.
    pub fn idle_barrier(&self) -> Result<()> {
        if let Some(ranks) = self.ranks() {
            ranks.meet("idle barrier", &[]);
            return Ok(());
        }
        let mut request = constant!(mpi_sys::RSMPI_REQUEST_NULL);
        // SAFETY: collective call on a valid communicator; the request is completed below.
        check(unsafe { mpi_sys::MPI_Ibarrier(self.handle, &raw mut request) })?;
        loop {
            let mut done: c_int = 0;
            // SAFETY: the request is the pending one from above; the status is not wanted.
            check(unsafe { mpi_sys::MPI_Test(&raw mut request, &raw mut done, mpi_sys::RSMPI_STATUS_IGNORE) })?;
            if done != 0 {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Minimum or maximum. MPICH 4.0.2 compares MPI_UINT64_T as if it were signed (2^64 - 1 < 0): with the top bit turned
    /// over, signed numbers have the order of the unsigned ones everywhere.
    fn extreme_u64(&self, values: &mut [u64], op: mpi_sys::MPI_Op) -> Result<()> {
        let turn_over = |values: &mut [u64]| values.iter_mut().for_each(|value| *value ^= 1 << 63);
        turn_over(values);
        let result = self.allreduce(values, constant!(mpi_sys::RSMPI_INT64_T), op);
        turn_over(values);
        result
    }

    /// Element-wise maximum over all ranks, in place. Does not allocate.
    pub fn max_f64(&self, values: &mut [f64]) -> Result<()> {
        if let Some(ranks) = self.ranks() {
            fold_f64(values, &ranks.meet("max", &bytes_f64(values)), f64::max);
            return Ok(());
        }
        self.allreduce(values, constant!(mpi_sys::RSMPI_DOUBLE), constant!(mpi_sys::RSMPI_MAX))
    }

    /// Element-wise minimum over all ranks, in place. Does not allocate.
    pub fn min_f64(&self, values: &mut [f64]) -> Result<()> {
        if let Some(ranks) = self.ranks() {
            fold_f64(values, &ranks.meet("min", &bytes_f64(values)), f64::min);
            return Ok(());
        }
        self.allreduce(values, constant!(mpi_sys::RSMPI_DOUBLE), constant!(mpi_sys::RSMPI_MIN))
    }

    /// Element-wise minimum over all ranks, in place.
    pub fn min_u64(&self, values: &mut [u64]) -> Result<()> {
        if let Some(ranks) = self.ranks() {
            fold(values, &ranks.meet("min", &bytes(values)), u64::min);
            return Ok(());
        }
        self.extreme_u64(values, constant!(mpi_sys::RSMPI_MIN))
    }

    /// Element-wise maximum over all ranks, in place.
    pub fn max_u64(&self, values: &mut [u64]) -> Result<()> {
        if let Some(ranks) = self.ranks() {
            fold(values, &ranks.meet("max", &bytes(values)), u64::max);
            return Ok(());
        }
        self.extreme_u64(values, constant!(mpi_sys::RSMPI_MAX))
    }

    /// Element-wise sum over all ranks, in place.
    pub fn sum_u64(&self, values: &mut [u64]) -> Result<()> {
        if let Some(ranks) = self.ranks() {
            fold(values, &ranks.meet("sum", &bytes(values)), u64::wrapping_add);
            return Ok(());
        }
        self.allreduce(values, constant!(mpi_sys::RSMPI_UINT64_T), constant!(mpi_sys::RSMPI_SUM))
    }

    fn bcast<T>(&self, values: &mut [T], datatype: mpi_sys::MPI_Datatype, root: u64) -> Result<()> {
        if self.size == 1 {
            return Ok(());
        }
        let root = c_integer(root, "MPI_ERR_ROOT")?;
        values.chunks_mut(MOST_ELEMENTS).try_for_each(|values| {
            let (memory, count) = (values.as_mut_ptr().cast::<c_void>(), count(values));
            // SAFETY: the buffer holds `count` elements of the type the callers below pair with it, equally many on all ranks, and is
            // borrowed alone until the request is complete, which is before this goes on.
            self.patiently(|request| unsafe {
                mpi_sys::MPI_Ibcast(memory, count, datatype, root, self.handle, request)
            })
        })
    }

    /// The numbers of `root` among ranks that are not MPI's; false: they are.
    fn of_root_f64(&self, call: &'static str, values: &mut [f64], root: u64) -> bool {
        let Some(ranks) = self.ranks() else { return false };
        let all = ranks.meet(call, &bytes_f64(values));
        let theirs = words(&all[root as usize]);
        values.iter_mut().zip(theirs).for_each(|(value, bits)| *value = f64::from_bits(bits));
        true
    }

    /// Broadcast of numbers from `root`, in place. Does not allocate.
    pub fn bcast_f64(&self, values: &mut [f64], root: u64) -> Result<()> {
        if self.of_root_f64("bcast", values, root) {
            return Ok(());
        }
        self.bcast(values, constant!(mpi_sys::RSMPI_DOUBLE), root)
    }

    /// The numbers of every rank, in rank order, on every rank; each gives equally many.
    pub fn allgather_u64(&self, mine: &[u64]) -> Result<Vec<u64>> {
        if let Some(ranks) = self.ranks() {
            return Ok(ranks.meet("allgather", &bytes(mine)).iter().flat_map(|theirs| words(theirs)).collect());
        }
        let ranks = usize::try_from(self.size).unwrap_or(1);
        let mut all = vec![0_u64; mine.len() * ranks];
        let (from, into) = (mine.as_ptr().cast::<c_void>(), all.as_mut_ptr().cast::<c_void>());
        let (count, kind) = (c_integer(mine.len() as u64, "MPI_ERR_COUNT")?, constant!(mpi_sys::RSMPI_UINT64_T));
        // SAFETY: equal counts on all ranks; the receive buffer holds one slot per rank. Both are there until the request is complete.
        self.patiently(|request| unsafe {
            mpi_sys::MPI_Iallgather(from, count, kind, into, count, kind, self.handle, request)
        })?;
        Ok(all)
    }

    /// The value of rank 0, on every rank.
    pub fn bcast_flag(&self, root_value: bool) -> Result<bool> {
        let mut value = [f64::from(u8::from(root_value))];
        self.bcast_f64(&mut value, 0)?;
        Ok(value[0] > 0.5)
    }

    /// The bytes of `root`, on every rank; of any length.
    pub fn bcast_bytes(&self, bytes: Vec<u8>, root: u64) -> Result<Vec<u8>> {
        if let Some(ranks) = self.ranks() {
            return Ok(ranks.meet("bcast", &bytes).swap_remove(root as usize));
        }
        if self.size == 1 {
            return Ok(bytes);
        }
        // A length is far below 2^53, so the double carries it exactly.
        let mut len = [bytes.len() as f64];
        self.bcast_f64(&mut len, root)?;
        let mut bytes = bytes;
        bytes.resize(len[0] as usize, 0);
        self.bcast(&mut bytes, constant!(mpi_sys::RSMPI_UINT8_T), root)?;
        Ok(bytes)
    }

    /// The bytes of every rank, in rank order, on rank 0; empty on the others. Of any length: they go in as many rounds as it
    /// takes.
    pub fn gather_bytes(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        let ranks = usize::try_from(self.size).unwrap_or(usize::MAX);
        self.gather_in_rounds(bytes, GATHERED_BYTES / ranks)
    }

    /// The same with at most `most_bytes` of each rank in one round.
    pub fn gather_in_rounds(&self, bytes: &[u8], most_bytes: usize) -> Result<Vec<Vec<u8>>> {
        if let Some(ranks) = self.ranks() {
            let all = ranks.meet("gather", bytes);
            return Ok(if self.is_root() { all } else { Vec::new() });
        }
        if self.size == 1 {
            return Ok(vec![bytes.to_vec()]);
        }
        let mut longest = [bytes.len() as u64];
        self.max_u64(&mut longest)?;
        let longest = usize::try_from(longest[0]).unwrap_or(usize::MAX);
        let lengths = self.gather_equal(&(bytes.len() as u64).to_le_bytes())?;
        let length = |b: &[u8]| b.iter().rev().fold(0_usize, |n, byte| (n << 8) | usize::from(*byte));
        let lengths: Vec<usize> = lengths.chunks_exact(8).map(length).collect();
        let mut all: Vec<Vec<u8>> = lengths.iter().map(|length| Vec::with_capacity(*length)).collect();
        let mut mine = vec![0_u8; most_bytes.clamp(1, longest.max(1))];
        let mut done = 0;
        while done < longest {
            let round = mine.len().min(longest - done);
            let rest = bytes.get(done..).unwrap_or_default();
            let own = rest.len().min(round);
            mine[..own].copy_from_slice(&rest[..own]);
            let parts = self.gather_equal(&mine[..round])?;
            for ((whole, length), part) in all.iter_mut().zip(&lengths).zip(parts.chunks_exact(round)) {
                whole.extend_from_slice(&part[..round.min(length - whole.len())]);
            }
            done += round;
        }
        Ok(all)
    }

    /// Equally many bytes of every rank, behind each other on rank 0; none on the others.
    fn gather_equal(&self, mine: &[u8]) -> Result<Vec<u8>> {
        let ranks = usize::try_from(self.size).unwrap_or(1);
        let mut all = vec![0_u8; if self.is_root() { mine.len() * ranks } else { 0 }];
        let (from, into) = (mine.as_ptr().cast::<c_void>(), all.as_mut_ptr().cast::<c_void>());
        let (count, kind) = (c_integer(mine.len() as u64, "MPI_ERR_COUNT")?, constant!(mpi_sys::RSMPI_UINT8_T));
        // SAFETY: equal counts on all ranks; the receive buffer of the root holds one slot per rank. Both are there until the request is
        // complete.
        self.patiently(|request| unsafe {
            mpi_sys::MPI_Igather(from, count, kind, into, count, kind, 0, self.handle, request)
        })?;
        Ok(all)
    }
}

/// Elements of one collective call at most: they and their sum over a few ranks fit a C integer.
pub(crate) const MOST_ELEMENTS: usize = 1 << 28;
/// Bytes that rank 0 takes in by one round of a gather.
const GATHERED_BYTES: usize = 1 << 30;

/// Elements as MPI counts them, of at most [`MOST_ELEMENTS`].
pub(crate) fn count<T>(values: &[T]) -> c_int {
    debug_assert!(values.len() <= MOST_ELEMENTS);
    values.len() as c_int
}

impl Drop for Comm {
    fn drop(&mut self) {
        if self.owned {
            // SAFETY: an owned handle is freed once, while MPI still runs (the Universe outlives its communicators).
            unsafe { mpi_sys::MPI_Comm_free(&raw mut self.handle) };
        }
    }
}
