//! The payload: bytes without a pattern, so that nothing on the path compresses them.

use crate::common::fill::fill;
use narrows_sys::pages::{Pages, Passing};
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
    /// Sent by reference.
    Pages(Pages),
}

impl Payload {
    /// A buffer for messages of at most this size.
    pub(super) fn buffer(message: usize) -> Self {
        let mut bytes = vec![0; message + PAGE];
        fill(&mut bytes);
        let from = bytes.as_ptr().align_offset(PAGE).min(PAGE);
        Self::Buffer { bytes, from }
    }

    /// Pages for messages of any size.
    pub(super) fn pages() -> narrows_sys::Result<Self> {
        Pages::new(1, fill).map(Self::Pages)
    }

    /// The method, for the record.
    pub(super) const fn method(&self) -> &'static str {
        match self {
            Self::Buffer { .. } => "send",
            Self::Pages(_) => "splice",
        }
    }

    /// What one stream sends. Errors: no pipes for pages.
    pub(super) fn source(&self) -> io::Result<Source<'_>> {
        Ok(match self {
            Self::Buffer { bytes, from } => Source::Copied(&bytes[*from..]),
            Self::Pages(pages) => Source::Passed(Box::new(pages.passing()?)),
        })
    }
}

/// See [`Payload::source`].
pub(super) enum Source<'a> {
    Copied(&'a [u8]),
    Passed(Box<Passing>),
}

impl Source<'_> {
    /// Hands on what is left of a message: `count` bytes, of which the first is byte `at` of it.
    #[inline]
    pub(super) fn send(&mut self, socket: BorrowedFd<'_>, at: usize, count: usize) -> io::Result<usize> {
        match self {
            Self::Copied(bytes) => narrows_sys::tcp::send(socket, &bytes[at..at + count]),
            Self::Passed(pages) => pages.send(socket, count),
        }
    }

    /// Whether an error means that this form cannot be sent here at all.
    pub(super) fn is_impossible(&self, error: &io::Error) -> bool {
        matches!(self, Self::Passed(_))
            && matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported)
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
