//! Communicators: owned handles and the collective calls of the benchmarks. A single rank needs no call, so [`Comm::comm_self`] works before
//! MPI_Init.

use std::ffi::{c_int, c_void};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use mpi_sys::MPI_Comm;

use crate::error::{c_integer, check, Result};
use crate::ranks::{f64_to_bytes, from_bytes, reduce_f64, reduce_u64, to_bytes, RankGroup};
use crate::{collective_timeout, shim};

/// A communicator. Predefined ones are borrowed from MPI, others are freed on drop.
#[derive(Debug)]
pub struct Comm {
    handle: MPI_Comm,
    owned: bool,
    rank: u64,
    size: u64,
    /// None for ranks of MPI.
    ranks: Option<Box<dyn RankGroup>>,
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

    /// MPI_COMM_SELF. Rank and size are known, so this works before MPI_Init.
    #[must_use]
    pub fn comm_self() -> Self {
        let handle = constant!(mpi_sys::RSMPI_COMM_SELF);
        Self { handle, owned: false, rank: 0, size: 1, ranks: None }
    }

    /// A communicator of ranks that are not MPI's, for unit tests. Calls no MPI function.
    #[must_use]
    pub fn from_ranks(ranks: Box<dyn RankGroup>) -> Self {
        let handle = constant!(mpi_sys::RSMPI_COMM_SELF);
        Self { handle, owned: false, rank: ranks.rank(), size: ranks.size(), ranks: Some(ranks) }
    }

    pub(crate) fn custom_ranks(&self) -> Option<&dyn RankGroup> {
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

    /// Communicator of ranks 0 .. `ranks`-1, None on the others. Collective.
    pub fn prefix(&self, ranks: u64) -> Result<Option<Self>> {
        self.blocks(ranks, 1)
    }

    /// Communicator of this rank among `blocks` of `ranks` consecutive ranks each, from rank 0 on; None beyond. Collective.
    pub fn blocks(&self, ranks: u64, blocks: u64) -> Result<Option<Self>> {
        if let Some(own) = self.custom_ranks() {
            let block = self.rank / ranks.max(1);
            return Ok(own.split((block < blocks).then_some(block)).map(Self::from_ranks));
        }
        let block = self.rank / ranks.max(1);
        let none = constant!(shim::beff_undefined);
        // Ranks are C integers by definition, so block numbers and key fit.
        let color = if block < blocks { c_int::try_from(block).unwrap_or(c_int::MAX) } else { none };
        let key = c_int::try_from(self.rank).unwrap_or(c_int::MAX);
        let mut handle = constant!(shim::beff_comm_null);
        // SAFETY: collective call on a valid communicator; the new handle is written.
        check(unsafe { mpi_sys::MPI_Comm_split(self.handle, color, key, &raw mut handle) })?;
        Self::from_nullable_handle(handle)
    }

    /// The ranks that share this rank's node. Collective.
    ///
    /// MPI_Comm_split_type spins for some hundred milliseconds if ranks outnumber cores, so if all are on one host, the communicator is
    /// duplicated.
    pub fn node(&self) -> Result<Option<Self>> {
        if let Some(ranks) = self.custom_ranks() {
            return Ok(ranks.split(Some(0)).map(Self::from_ranks));
        }
        if self.is_on_one_host()? {
            return self.duplicate_yielding().map(Some);
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
        Self::from_nullable_handle(handle)
    }

    /// MPI_Comm_dup: the same ranks with a separate communication context. Collective.
    pub fn duplicate(&self) -> Result<Self> {
        let mut handle = constant!(shim::beff_comm_null);
        // SAFETY: collective call on a valid communicator; the new handle is written.
        check(unsafe { mpi_sys::MPI_Comm_dup(self.handle, &raw mut handle) })?;
        Self::from_new_handle(handle)
    }

    /// True if all ranks read the same host name and boot id; false if they are unknown. Collective.
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

    /// As [`Comm::duplicate`] without spinning (MPI_Comm_idup, then MPI_Test). Collective.
    fn duplicate_yielding(&self) -> Result<Self> {
        let mut handle = constant!(shim::beff_comm_null);
        // SAFETY: collective call on a valid communicator; the new handle is written before completion and used afterwards (MPI-3.1,
        // 6.4.2).
        self.post_and_wait(|request| unsafe { mpi_sys::MPI_Comm_idup(self.handle, &raw mut handle, request) })?;
        Self::from_new_handle(handle)
    }

    /// Wraps a new communicator.
    fn from_new_handle(handle: MPI_Comm) -> Result<Self> {
        let comm = Self::from_handle(handle, true);
        comm.return_errors()?;
        Ok(comm)
    }

    /// As `from_new_handle`; None for MPI_COMM_NULL.
    pub(crate) fn from_nullable_handle(handle: MPI_Comm) -> Result<Option<Self>> {
        if handle == constant!(shim::beff_comm_null) {
            return Ok(None);
        }
        Self::from_new_handle(handle).map(Some)
    }

    /// MPI_Barrier itself, which spins: for timed regions defined to start after it. Else [`Comm::barrier`].
    ///
    /// # Errors
    /// Any MPI error.
    pub fn bare_barrier(&self) -> Result<()> {
        if let Some(ranks) = self.custom_ranks() {
            ranks.allgather("bare barrier", &[]);
            return Ok(());
        }
        if self.size > 1 {
            // SAFETY: collective call on a valid communicator.
            check(unsafe { mpi_sys::MPI_Barrier(self.handle) })?;
        }
        collective_timeout::peers_arrived();
        Ok(())
    }

    /// MPI_Bcast itself, which spins: for decisions as in the defining program. Else [`Comm::bcast_f64`]. Does not allocate.
    ///
    /// # Errors
    /// Any MPI error.
    pub fn bare_bcast_f64(&self, values: &mut [f64], root: u64) -> Result<()> {
        if self.custom_bcast_f64("bare bcast", values, root) {
            return Ok(());
        }
        if self.size == 1 {
            return Ok(());
        }
        let (root, kind) = (c_integer(root, "MPI_ERR_ROOT")?, constant!(mpi_sys::RSMPI_DOUBLE));
        let (memory, count) = (values.as_mut_ptr().cast::<c_void>(), c_integer(values.len() as u64, "MPI_ERR_COUNT")?);
        // SAFETY: the buffer holds `count` doubles, the same number on all ranks.
        check(unsafe { mpi_sys::MPI_Bcast(memory, count, kind, root, self.handle) })
    }

    /// A barrier that sleeps while it waits, for ranks outside the measured partition.
    pub fn idle_barrier(&self) -> Result<()> {
        if let Some(ranks) = self.custom_ranks() {
            ranks.allgather("idle barrier", &[]);
            return Ok(());
        }
        let mut request = constant!(mpi_sys::RSMPI_REQUEST_NULL);
        // SAFETY: collective call on a valid communicator; the request is completed below.
        check(unsafe { mpi_sys::MPI_Ibarrier(self.handle, &raw mut request) })?;
        loop {
            let mut done: c_int = 0;
            // SAFETY: the pending request from above; the status is ignored.
            check(unsafe { mpi_sys::MPI_Test(&raw mut request, &raw mut done, mpi_sys::RSMPI_STATUS_IGNORE) })?;
            if done != 0 {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Minimum or maximum. MPICH 4.0.2 compares MPI_UINT64_T as signed (2^64 - 1 < 0); inverting the top bit makes the signed order
    /// correct in every library.
    fn extremum_u64(&self, values: &mut [u64], op: mpi_sys::MPI_Op) -> Result<()> {
        let turn_over = |values: &mut [u64]| values.iter_mut().for_each(|value| *value ^= 1 << 63);
        turn_over(values);
        let result = self.allreduce(values, constant!(mpi_sys::RSMPI_INT64_T), op);
        turn_over(values);
        result
    }

    /// Element-wise maximum over all ranks, in place. Does not allocate.
    pub fn max_f64(&self, values: &mut [f64]) -> Result<()> {
        if let Some(ranks) = self.custom_ranks() {
            reduce_f64(values, &ranks.allgather("max", &f64_to_bytes(values)), f64::max);
            return Ok(());
        }
        self.allreduce(values, constant!(mpi_sys::RSMPI_DOUBLE), constant!(mpi_sys::RSMPI_MAX))
    }

    /// Element-wise minimum over all ranks, in place. Does not allocate.
    pub fn min_f64(&self, values: &mut [f64]) -> Result<()> {
        if let Some(ranks) = self.custom_ranks() {
            reduce_f64(values, &ranks.allgather("min", &f64_to_bytes(values)), f64::min);
            return Ok(());
        }
        self.allreduce(values, constant!(mpi_sys::RSMPI_DOUBLE), constant!(mpi_sys::RSMPI_MIN))
    }

    /// Element-wise minimum over all ranks, in place.
    pub fn min_u64(&self, values: &mut [u64]) -> Result<()> {
        if let Some(ranks) = self.custom_ranks() {
            reduce_u64(values, &ranks.allgather("min", &to_bytes(values)), u64::min);
            return Ok(());
        }
        self.extremum_u64(values, constant!(mpi_sys::RSMPI_MIN))
    }

    /// Element-wise maximum over all ranks, in place.
    pub fn max_u64(&self, values: &mut [u64]) -> Result<()> {
        if let Some(ranks) = self.custom_ranks() {
            reduce_u64(values, &ranks.allgather("max", &to_bytes(values)), u64::max);
            return Ok(());
        }
        self.extremum_u64(values, constant!(mpi_sys::RSMPI_MAX))
    }

    /// Element-wise sum over all ranks, in place.
    pub fn sum_u64(&self, values: &mut [u64]) -> Result<()> {
        if let Some(ranks) = self.custom_ranks() {
            reduce_u64(values, &ranks.allgather("sum", &to_bytes(values)), u64::wrapping_add);
            return Ok(());
        }
        self.allreduce(values, constant!(mpi_sys::RSMPI_UINT64_T), constant!(mpi_sys::RSMPI_SUM))
    }

    fn bcast<T>(&self, values: &mut [T], datatype: mpi_sys::MPI_Datatype, root: u64) -> Result<()> {
        if self.size == 1 {
            return Ok(());
        }
        let root = c_integer(root, "MPI_ERR_ROOT")?;
        values.chunks_mut(MAX_ELEMENTS).try_for_each(|values| {
            let (memory, count) = (values.as_mut_ptr().cast::<c_void>(), element_count(values));
            // SAFETY: `count` elements of the type that the callers pair with the buffer, equal on all ranks, exclusively borrowed until
            // completion.
            self.post_and_wait(|request| unsafe {
                mpi_sys::MPI_Ibcast(memory, count, datatype, root, self.handle, request)
            })
        })
    }

    /// Broadcast among ranks that are not MPI's; false if they are.
    fn custom_bcast_f64(&self, call: &'static str, values: &mut [f64], root: u64) -> bool {
        let Some(ranks) = self.custom_ranks() else { return false };
        let all = ranks.allgather(call, &f64_to_bytes(values));
        let theirs = from_bytes(&all[root as usize]);
        values.iter_mut().zip(theirs).for_each(|(value, bits)| *value = f64::from_bits(bits));
        true
    }

    /// Broadcast of numbers from `root`, in place. Does not allocate.
    pub fn bcast_f64(&self, values: &mut [f64], root: u64) -> Result<()> {
        if self.custom_bcast_f64("bcast", values, root) {
            return Ok(());
        }
        self.bcast(values, constant!(mpi_sys::RSMPI_DOUBLE), root)
    }

    /// Values of all ranks in rank order, on every rank; the same number from each.
    pub fn allgather_u64(&self, mine: &[u64]) -> Result<Vec<u64>> {
        if let Some(ranks) = self.custom_ranks() {
            return Ok(ranks
                .allgather("allgather", &to_bytes(mine))
                .iter()
                .flat_map(|theirs| from_bytes(theirs))
                .collect());
        }
        let ranks = usize::try_from(self.size).unwrap_or(1);
        let mut all = vec![0_u64; mine.len() * ranks];
        let (from, into) = (mine.as_ptr().cast::<c_void>(), all.as_mut_ptr().cast::<c_void>());
        let (count, kind) = (c_integer(mine.len() as u64, "MPI_ERR_COUNT")?, constant!(mpi_sys::RSMPI_UINT64_T));
        // SAFETY: equal counts on all ranks; one slot per rank in the receive buffer. Both live until completion.
        self.post_and_wait(|request| unsafe {
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

    /// The bytes of `root`, on every rank; any length.
    pub fn bcast_bytes(&self, bytes: Vec<u8>, root: u64) -> Result<Vec<u8>> {
        if let Some(ranks) = self.custom_ranks() {
            return Ok(ranks.allgather("bcast", &bytes).swap_remove(root as usize));
        }
        if self.size == 1 {
            return Ok(bytes);
        }
        // A length is far below 2^53, so a double represents it exactly.
        let mut len = [bytes.len() as f64];
        self.bcast_f64(&mut len, root)?;
        let mut bytes = bytes;
        bytes.resize(len[0] as usize, 0);
        self.bcast(&mut bytes, constant!(mpi_sys::RSMPI_UINT8_T), root)?;
        Ok(bytes)
    }

    /// The bytes of every rank, in rank order, on rank 0; empty on the others. Any length, in rounds.
    pub fn gather_bytes(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        let ranks = usize::try_from(self.size).unwrap_or(usize::MAX);
        self.gather_in_rounds(bytes, MAX_GATHER_BYTES / ranks)
    }

    /// The same with at most `most_bytes` of each rank per round.
    pub fn gather_in_rounds(&self, bytes: &[u8], most_bytes: usize) -> Result<Vec<Vec<u8>>> {
        if let Some(ranks) = self.custom_ranks() {
            let all = ranks.allgather("gather", bytes);
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

    /// The same number of bytes from every rank, concatenated on rank 0.
    fn gather_equal(&self, mine: &[u8]) -> Result<Vec<u8>> {
        let ranks = usize::try_from(self.size).unwrap_or(1);
        let mut all = vec![0_u8; if self.is_root() { mine.len() * ranks } else { 0 }];
        let (from, into) = (mine.as_ptr().cast::<c_void>(), all.as_mut_ptr().cast::<c_void>());
        let (count, kind) = (c_integer(mine.len() as u64, "MPI_ERR_COUNT")?, constant!(mpi_sys::RSMPI_UINT8_T));
        // SAFETY: equal counts on all ranks; one slot per rank in the root's receive buffer. Both live until completion.
        self.post_and_wait(|request| unsafe {
            mpi_sys::MPI_Igather(from, count, kind, into, count, kind, 0, self.handle, request)
        })?;
        Ok(all)
    }
}

/// Maximum elements of one collective call: they and their sum over a few ranks fit a C integer.
pub(crate) const MAX_ELEMENTS: usize = 1 << 28;
/// Bytes that rank 0 receives in one round of a gather.
const MAX_GATHER_BYTES: usize = 1 << 30;

/// Number of elements as a C integer; at most [`MAX_ELEMENTS`].
pub(crate) fn element_count<T>(values: &[T]) -> c_int {
    debug_assert!(values.len() <= MAX_ELEMENTS);
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
