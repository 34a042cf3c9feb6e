//! What is sent: bytes without a pattern, so that nothing on the way compresses them.

use narrows_sys::pages::Pages;
use std::io;
use std::os::fd::BorrowedFd;

const PAGE: usize = 4096;

/// The bytes of one message, shared by all sending streams, in the two forms that a sender can hand over.
#[derive(Debug)]
pub(crate) enum Payload {
    /// For `send`: begins at a page.
    Buffer {
        /// One page longer than the message.
        bytes: Vec<u8>,
        /// Where in it the first page begins.
        from: usize,
    },
    /// For `sendfile`: longer than a message, so that messages follow each other in memory and share fragments.
    Pages(Pages),
}

impl Payload {
    /// A buffer for messages of this size.
    pub(crate) fn buffer(message: usize) -> Self {
        let mut bytes = vec![0; message + PAGE];
        fill(&mut bytes);
        let from = bytes.as_ptr().align_offset(PAGE).min(PAGE);
        Self::Buffer { bytes, from }
    }

    /// Pages for messages of this size.
    pub(crate) fn pages(message: usize) -> narrows_sys::Result<Self> {
        Pages::new(message.max(4 << 20), fill).map(Self::Pages)
    }

    /// The word for the record.
    pub(crate) const fn method(&self) -> &'static str {
        match self {
            Self::Buffer { .. } => "send",
            Self::Pages(_) => "sendfile",
        }
    }

    /// Whether an error means that this form cannot be sent here at all.
    pub(crate) fn is_impossible(&self, error: &io::Error) -> bool {
        matches!(self, Self::Pages(_))
            && matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported)
    }

    /// Where a message may begin at the latest, plus one message: positions wrap before it.
    pub(crate) fn room(&self, message: usize) -> usize {
        match self {
            Self::Buffer { .. } => message,
            Self::Pages(pages) => pages.bytes().len(),
        }
    }

    /// Hands `count` bytes from `at` on to the socket.
    #[inline]
    pub(crate) fn send(&self, socket: BorrowedFd<'_>, at: usize, count: usize) -> io::Result<usize> {
        match self {
            Self::Buffer { bytes, from } => narrows_sys::tcp::send(socket, &bytes[from + at..from + at + count]),
            Self::Pages(pages) => pages.send(socket, at, count),
        }
    }
}

/// Fills memory with the output of a xorshift generator (Marsaglia 2003): no pattern that a compressor finds.
fn fill(bytes: &mut [u8]) {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    for chunk in bytes.chunks_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        chunk.copy_from_slice(&state.to_ne_bytes()[..chunk.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_have_no_pattern() {
        let mut bytes = vec![0; 1 << 16];
        fill(&mut bytes);
        let mut counts = [0u32; 256];
        for &byte in &bytes {
            counts[usize::from(byte)] += 1;
        }
        // 256 expected of each value; a fair generator stays within 6 standard deviations of 16.
        assert!(counts.iter().all(|count| (160..352).contains(count)), "{counts:?}");
    }

    #[test]
    fn the_buffer_begins_at_a_page_and_holds_a_message() {
        let Payload::Buffer { bytes, from } = Payload::buffer(1460) else { panic!("a buffer was asked for") };
        assert_eq!((bytes.as_ptr() as usize + from) % PAGE, 0);
        assert!(bytes.len() - from >= 1460);
    }
}
