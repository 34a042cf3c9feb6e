//! The payload: bytes without a pattern, so that nothing on the path compresses them.

use crate::common::fill::fill;
use narrows_sys::pages::Pages;
use std::io;
use std::os::fd::BorrowedFd;

const PAGE: usize = 4096;

/// The bytes of one message, shared by all sending streams, in the two forms that a sender can hand over.
#[derive(Debug)]
pub(super) enum Payload {
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
    pub(super) fn buffer(message: usize) -> Self {
        let mut bytes = vec![0; message + PAGE];
        fill(&mut bytes);
        let from = bytes.as_ptr().align_offset(PAGE).min(PAGE);
        Self::Buffer { bytes, from }
    }

    /// Pages for messages of this size.
    pub(super) fn pages(message: usize) -> narrows_sys::Result<Self> {
        Pages::new(message.max(4 << 20), fill).map(Self::Pages)
    }

    /// The method, for the record.
    pub(super) const fn method(&self) -> &'static str {
        match self {
            Self::Buffer { .. } => "send",
            Self::Pages(_) => "sendfile",
        }
    }

    /// Whether an error means that this form cannot be sent here at all.
    pub(super) fn is_impossible(&self, error: &io::Error) -> bool {
        matches!(self, Self::Pages(_))
            && matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported)
    }

    /// Where a message may begin at the latest, plus one message: positions wrap before it.
    pub(super) fn room(&self, message: usize) -> usize {
        match self {
            Self::Buffer { .. } => message,
            Self::Pages(pages) => pages.bytes().len(),
        }
    }

    /// Hands `count` bytes from `at` on to the socket.
    #[inline]
    pub(super) fn send(&self, socket: BorrowedFd<'_>, at: usize, count: usize) -> io::Result<usize> {
        match self {
            Self::Buffer { bytes, from } => narrows_sys::tcp::send(socket, &bytes[from + at..from + at + count]),
            Self::Pages(pages) => pages.send(socket, at, count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_buffer_begins_at_a_page_and_holds_a_message() {
        let Payload::Buffer { bytes, from } = Payload::buffer(1460) else { panic!("a buffer was asked for") };
        assert_eq!((bytes.as_ptr() as usize + from) % PAGE, 0);
        assert!(bytes.len() - from >= 1460);
    }
}
