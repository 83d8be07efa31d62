//! Message memory of one rank: stamps to send, poison to receive into, and the position of the walk.

use beff_backends::TransferBuffer;

use crate::b_eff::plan::walk::BufferWalk;
use crate::b_eff::plan::BufferMode;
use beff_stamp::POISON_BYTE;

use super::layout::BufferLayout;

/// Message memory of one rank.
#[derive(Debug)]
pub struct MessageBuffers {
    send: BufferAllocation,
    receive: BufferAllocation,
    /// Position of the next loop with cyclic buffers.
    pub walk: BufferWalk,
}

#[derive(Debug)]
enum BufferAllocation {
    /// Ordinary heap memory.
    Plain(Vec<u8>),
    /// Memory in huge pages, if available.
    Huge(TransferBuffer),
}

impl BufferAllocation {
    fn new(layout: BufferLayout) -> std::io::Result<Self> {
        let bytes = layout.mapped_bytes();
        if layout.buffers == BufferMode::Reused {
            return Ok(Self::Huge(TransferBuffer::new(bytes, 8)?));
        }
        let length = usize::try_from(bytes).map_err(std::io::Error::other)?;
        // Zeroed pages of the kernel, which `vec!` takes but cannot refuse with an error.
        Vec::<u8>::new().try_reserve_exact(length).map_err(std::io::Error::other)?;
        Ok(Self::Plain(vec![0; length]))
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

impl MessageBuffers {
    /// Maps and fills both memories.
    ///
    /// # Errors
    /// Memory that cannot be allocated or mapped.
    pub fn new(layout: BufferLayout, rank: u64) -> std::io::Result<Self> {
        let (mut send, mut receive) = (BufferAllocation::new(layout)?, BufferAllocation::new(layout)?);
        layout.stream(rank).fill(send.bytes_mut());
        receive.bytes_mut().fill(POISON_BYTE);
        Ok(Self { send, receive, walk: BufferWalk::new(layout.memory_bytes()) })
    }

    /// Poisons the receive memory, so that later undelivered messages are detected.
    pub fn poison(&mut self) {
        self.receive.bytes_mut().fill(POISON_BYTE);
    }

    /// Send and receive memory.
    pub fn split(&mut self) -> (&[u8], &mut [u8]) {
        (self.send.bytes(), self.receive.bytes_mut())
    }

    /// The receive memory.
    #[must_use]
    pub fn received(&self) -> &[u8] {
        self.receive.bytes()
    }

    /// Both memories, shared.
    #[must_use]
    pub fn both(&self) -> [&[u8]; 2] {
        [self.send.bytes(), self.receive.bytes()]
    }
}
