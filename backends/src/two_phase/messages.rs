//! The exchange by messages: every rank sends its part of a piece to the aggregator, or receives it from there. Both sides
//! compute the same lengths, so none is sent.

use std::collections::VecDeque;
use std::io;

use beff_ffi::{Comm, Message, MpiError, Requests};

use super::domain::{Cut, Grid, Piece};
use super::pass::{cut_of_sub, subs, Ahead, Pass, Pending};
use super::rows::Rows;
use crate::error::Cause;
use crate::{BackendError, Batch, Ring};

/// Steps under way at once: the exchange of one beside the transfer of another.
const SETS: usize = 2;

/// Memory and requests of the exchange, made in prepare.
#[derive(Debug)]
pub(crate) struct Mail {
    sets: [Requests; SETS],
    staging: Ring,
    /// Bytes of one set's staging memory.
    bytes: usize,
    /// Place in the staging memory of each part's next byte.
    cursors: Vec<usize>,
}

/// Bytes of staging memory for pieces of `grid`.
pub(crate) fn staging_bytes(grid: Grid) -> u64 {
    (SETS as u64 * grid.most_piece_bytes()).next_multiple_of(4096)
}

/// Who is who.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Directory<'a> {
    pub(crate) comm: &'a Comm,
    /// Rank of each aggregator.
    pub(crate) owners: &'a [u64],
    /// Which part is this rank's.
    pub(crate) my_part: u64,
    /// Rank of part 0; the others follow in order, around the end.
    pub(crate) first_rank: u64,
}

impl Directory<'_> {
    fn rank_of_part(&self, part: u64) -> u64 {
        (self.first_rank + part) % self.comm.size()
    }
}

impl Mail {
    /// Room for pieces of `grid` and the messages of `ranks` ranks. `staging`: [`staging_bytes`] or more.
    pub(crate) fn new(grid: Grid, rows: &Rows, ranks: u64, staging: Ring) -> io::Result<Self> {
        let bytes = usize::try_from(grid.most_piece_bytes()).map_err(io::Error::other)?;
        assert!(staging.bytes().len() as u64 >= staging_bytes(grid), "memory for messages is too short");
        let messages = (ranks + grid.aggregators) * rows.most_stretches(grid.most_piece_bytes());
        let messages = usize::try_from(messages).map_err(io::Error::other)?;
        Ok(Self {
            sets: std::array::from_fn(|_| Requests::with_capacity(messages)),
            staging,
            bytes,
            cursors: vec![0; ranks as usize],
        })
    }

    /// The staging memory, for the next one. No message is under way behind a batch.
    pub(crate) fn into_staging(self) -> Ring {
        self.staging
    }

    fn wait(&mut self, pass: &mut Pass<'_>, set: usize) {
        note(pass, self.sets[set].wait_all());
    }

    /// First byte of a set's staging memory.
    fn staged(&mut self, set: usize) -> *mut u8 {
        self.staging.bytes_mut()[set * self.bytes..].as_mut_ptr()
    }

    /// Sets the cursors to where the part of each rank begins when they lie behind each other; this rank's is left out.
    fn lay_out(&mut self, rows: &Rows, piece: Piece, my_part: u64) {
        let mut at = 0;
        for part in 0..rows.parts {
            self.cursors[part as usize] = at;
            if part != my_part {
                at += (rows.before(part, piece.end) - rows.before(part, piece.begin)) as usize;
            }
        }
    }

    /// Begins the messages of a step of a write.
    ///
    /// # Safety
    /// The ring of this rank holds its windows and does not change until the set has been waited for.
    unsafe fn post_write(&mut self, pass: &mut Pass<'_>, who: Directory<'_>, cut: &Cut, step: u64) {
        let set = (step % SETS as u64) as usize;
        for piece in cut.step(step).map(|number| cut.piece(number)) {
            // SAFETY: the caller's promise; staging memory is not used until the set has been waited for.
            unsafe {
                if Some(piece.owner) == pass.me {
                    self.post_staged(pass, who, piece, set, Message::Receive);
                } else {
                    self.post_own(pass, who, piece, set, Message::Send);
                }
            }
        }
    }

    /// Begins the message of this rank's part of a piece that another rank moves: straight out of its ring or into it.
    ///
    /// # Safety
    /// The ring of this rank is valid for the message in the windows of the piece until the set has been waited for.
    unsafe fn post_own(&mut self, pass: &mut Pass<'_>, who: Directory<'_>, piece: Piece, set: usize, message: Message) {
        let (rows, mine) = (pass.rows, pass.bases[who.my_part as usize]);
        let owner = who.owners[piece.owner as usize];
        let (begin, end) = (rows.before(who.my_part, piece.begin), rows.before(who.my_part, piece.end));
        let mut outcome = Ok(());
        rows.stretches(begin, end, |index, len| {
            // SAFETY: a window of the ring, by the caller's promise.
            let begun = unsafe { who.comm.begin(message, mine.wrapping_add(index), len, owner, &mut self.sets[set]) };
            keep_first(&mut outcome, begun);
        });
        note(pass, outcome);
    }

    /// Begins the messages of the other ranks' parts of a piece that this rank moves, in the staging memory of a set.
    ///
    /// # Safety
    /// The staging memory of the set is not used until the set has been waited for.
    unsafe fn post_staged(
        &mut self,
        pass: &mut Pass<'_>,
        who: Directory<'_>,
        piece: Piece,
        set: usize,
        message: Message,
    ) {
        let rows = pass.rows;
        self.lay_out(&rows, piece, who.my_part);
        let staged = self.staged(set);
        let mut outcome = Ok(());
        for part in (0..rows.parts).filter(|&p| p != who.my_part) {
            let mut at = self.cursors[part as usize];
            let (begin, end) = (rows.before(part, piece.begin), rows.before(part, piece.end));
            rows.stretches(begin, end, |_, len| {
                let (memory, rank) = (staged.wrapping_add(at), who.rank_of_part(part));
                // SAFETY: the parts of a piece fit the staging memory of a set; the rest is the caller's promise.
                let begun = unsafe { who.comm.begin(message, memory, len, rank, &mut self.sets[set]) };
                keep_first(&mut outcome, begun);
                at += len;
            });
        }
        note(pass, outcome);
    }

    /// Writes a region: the messages of one step beside the transfers of the one before.
    ///
    /// # Safety
    /// The ring of this rank holds the windows of the region, and nobody writes to it meanwhile.
    pub(crate) unsafe fn write(&mut self, pass: &mut Pass<'_>, who: Directory<'_>, cut: &Cut) {
        let (steps, rows) = (cut.steps(), pass.rows);
        let mine = pass.bases[who.my_part as usize];
        let mut slot = 0;
        // SAFETY: the caller's promise, here and below: all sets are waited for before this returns.
        unsafe { self.post_write(pass, who, cut, 0) };
        for step in 0..steps {
            let set = (step % SETS as u64) as usize;
            self.wait(pass, set);
            if step + 1 < steps {
                // SAFETY: as above.
                unsafe { self.post_write(pass, who, cut, step + 1) };
            }
            let own = cut.step(step).map(|number| cut.piece(number)).find(|p| Some(p.owner) == pass.me);
            let Some(piece) = own else { continue };
            pass.finish(slot);
            if pass.error.is_some() {
                continue;
            }
            self.lay_out(&rows, piece, who.my_part);
            let (staged, cursors) = (self.staged(set), &mut self.cursors);
            let source = |part: usize, index: usize, len: usize| {
                if part as u64 == who.my_part {
                    return mine.wrapping_add(index).cast_const();
                }
                let at = cursors[part];
                cursors[part] += len;
                staged.wrapping_add(at).cast_const()
            };
            // SAFETY: what was received lies in the staging memory in the order of the fragments of each part.
            unsafe { pass.write_piece(slot, piece, source) };
            slot = (slot + 1) % pass.lane.depth();
        }
        pass.finish_all();
    }

    /// Reads a batch: transfers go ahead, and the messages of one step beside those of the next.
    ///
    /// # Safety
    /// The ring of this rank is writable in the windows of the batch and not otherwise used.
    pub(crate) unsafe fn read(
        &mut self,
        pass: &mut Pass<'_>,
        who: Directory<'_>,
        batch: Batch,
        pending: &mut VecDeque<Pending>,
    ) {
        let (rows, grid) = (pass.rows, pass.grid);
        let mut ahead = Ahead::new(rows, grid, batch, pass.me);
        let mut turn = 0;
        for sub in 0..subs(&rows, batch) {
            let cut = cut_of_sub(&rows, grid, batch, sub);
            for step in 0..cut.steps() {
                // SAFETY: pieces of several parts go through blocks, not straight into windows.
                unsafe { pass.read_ahead(&mut ahead, pending) };
                let set = turn % SETS;
                turn += 1;
                self.wait(pass, set);
                // SAFETY: the caller's promise; all sets are waited for before the next part of the batch.
                unsafe { self.post_receives(pass, who, &cut, step, set) };
                if let Some(piece) = cut.step(step).map(|n| cut.piece(n)).find(|p| Some(p.owner) == pass.me) {
                    // SAFETY: as above.
                    unsafe { self.hand_out(pass, who, piece, pending, set) };
                }
            }
            // Windows of the next part may be the same.
            (0..SETS).for_each(|set| self.wait(pass, set));
        }
        while let Some(left) = pending.pop_front() {
            pass.finish(left.slot);
        }
    }

    /// Begins to receive this rank's parts of the pieces that others read in a step.
    ///
    /// # Safety
    /// As [`Mail::read`], until the set has been waited for.
    unsafe fn post_receives(&mut self, pass: &mut Pass<'_>, who: Directory<'_>, cut: &Cut, step: u64, set: usize) {
        let me = pass.me;
        for piece in cut.step(step).map(|n| cut.piece(n)).filter(|p| Some(p.owner) != me) {
            // SAFETY: the caller's promise.
            unsafe { self.post_own(pass, who, piece, set, Message::Receive) };
        }
    }

    /// Waits for this rank's own piece of a step, and sends everyone his part. After an error what is sent is not what was
    /// asked for, but nobody waits for ever.
    ///
    /// # Safety
    /// As [`Mail::read`].
    unsafe fn hand_out(
        &mut self,
        pass: &mut Pass<'_>,
        who: Directory<'_>,
        piece: Piece,
        pending: &mut VecDeque<Pending>,
        set: usize,
    ) {
        let (rows, mine) = (pass.rows, pass.bases[who.my_part as usize]);
        self.lay_out(&rows, piece, who.my_part);
        let staged = self.staged(set);
        // Nothing is read ahead after an error.
        if let Some(next) = pending.pop_front() {
            debug_assert_eq!(next.piece, piece);
            pass.finish(next.slot);
            if pass.error.is_none() {
                let cursors = &mut self.cursors;
                let target = |part: usize, index: usize, len: usize| {
                    if part as u64 == who.my_part {
                        return mine.wrapping_add(index);
                    }
                    let at = cursors[part];
                    cursors[part] += len;
                    staged.wrapping_add(at)
                };
                // SAFETY: the parts of a piece fit the staging memory of a set, whose messages have been waited for;
                // this rank's part goes to its windows.
                unsafe { pass.deliver(next, target) };
            }
        }
        // SAFETY: staging memory that is not used again before the set has been waited for.
        unsafe { self.post_staged(pass, who, piece, set, Message::Send) };
    }
}

fn keep_first(outcome: &mut Result<(), MpiError>, next: Result<(), MpiError>) {
    if outcome.is_ok() {
        *outcome = next;
    }
}

/// Keeps an error of MPI, if it is the first.
fn note(pass: &mut Pass<'_>, outcome: Result<(), MpiError>) {
    let Err(error) = outcome else { return };
    let path = pass.path;
    pass.error.get_or_insert_with(|| {
        let text = format!("messages between the ranks failed: {error}");
        BackendError::new("two-phase exchange", path, Cause::Io, text)
    });
}
