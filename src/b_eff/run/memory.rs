//! Memory of the messages of one rank: stamps to send, poison to receive into, and where the walk through them is.

use beff_backends::Ring;

use crate::b_eff::plan::walk::Walk;
use crate::b_eff::plan::Buffers;
use beff_stamp::POISON_BYTE;

use super::layout::Layout;

/// The memory of one rank.
#[derive(Debug)]
pub struct Memory {
    send: Half,
    receive: Half,
    /// Where the next loop of cyclic buffers begins.
    pub walk: Walk,
}

/// To send from or to receive into.
#[derive(Debug)]
enum Half {
    /// As any program gets it.
    Plain(Vec<u8>),
    /// In huge pages, where the kernel has them.
    Huge(Ring),
}

impl Half {
    fn new(layout: Layout) -> std::io::Result<Self> {
        let bytes = layout.mapped_bytes();
        if layout.buffers == Buffers::Reused {
            return Ok(Self::Huge(Ring::new(bytes, 8)?));
        }
        let length = usize::try_from(bytes).map_err(std::io::Error::other)?;
        let mut plain = Vec::new();
        plain.try_reserve_exact(length).map_err(std::io::Error::other)?;
        plain.resize(length, 0);
        Ok(Self::Plain(plain))
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Plain(bytes) => bytes,
            Self::Huge(ring) => ring.bytes(),
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Plain(bytes) => bytes,
            Self::Huge(ring) => ring.bytes_mut(),
        }
    }
}

impl Memory {
    /// Maps and fills both halves: stamps to send, poison to receive into.
    ///
    /// # Errors
    /// The kernel's answer if the memory cannot be mapped.
    pub fn new(layout: Layout, rank: u64) -> std::io::Result<Self> {
        let (mut send, mut receive) = (Half::new(layout)?, Half::new(layout)?);
        layout.stream(rank).fill(send.bytes_mut());
        receive.bytes_mut().fill(POISON_BYTE);
        Ok(Self { send, receive, walk: Walk::new(layout.memory_bytes()) })
    }

    /// Forgets what was received: what is not delivered from now on is seen.
    pub fn poison(&mut self) {
        self.receive.bytes_mut().fill(POISON_BYTE);
    }

    /// What is sent, and what is received into.
    pub fn halves(&mut self) -> (&[u8], &mut [u8]) {
        (self.send.bytes(), self.receive.bytes_mut())
    }

    /// What was received.
    #[must_use]
    pub fn received(&self) -> &[u8] {
        self.receive.bytes()
    }

    /// Both halves.
    #[must_use]
    pub fn all(&self) -> [&[u8]; 2] {
        [self.send.bytes(), self.receive.bytes()]
    }
}
