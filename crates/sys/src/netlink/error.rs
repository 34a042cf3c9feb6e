//! Errors of netlink requests.

use std::io;
use std::time::Duration;
use thiserror::Error;

/// A failed netlink request.
#[derive(Debug, Error)]
pub enum Error {
    /// A system call on the socket failed.
    #[error(transparent)]
    Socket(#[from] crate::Error),
    /// The kernel refused the request (`NLMSG_ERROR`).
    #[error("the kernel refuses {family} message {kind}: {}{}", io::Error::from_raw_os_error(*errno),
            text.as_ref().map(|text| format!(" ({text})")).unwrap_or_default())]
    Refused {
        family: &'static str,
        /// The type of the message that was refused.
        kind: u16,
        /// The kernel's error number.
        errno: i32,
        /// The kernel's message (`NLMSGERR_ATTR_MSG`), if there is one.
        text: Option<String>,
    },
    /// No complete answer within the time limit.
    #[error("no answer to {family} message {kind} within {limit:?}")]
    TimedOut {
        family: &'static str,
        /// The type of the request.
        kind: u16,
        limit: Duration,
    },
    /// The answer is longer than the size limit.
    #[error("the answer to {family} message {kind} is longer than {limit} bytes")]
    TooLarge {
        family: &'static str,
        /// The type of the request.
        kind: u16,
        /// The limit in bytes.
        limit: usize,
    },
    /// The table changed during each of several dumps (`NLM_F_DUMP_INTR`).
    #[error("the answer to {family} message {kind} changed while it was read, {attempts} times in a row; try again")]
    Unsteady {
        family: &'static str,
        /// The type of the request.
        kind: u16,
        /// The number of attempts.
        attempts: u32,
    },
    /// A request that does not fit into netlink's 16-bit lengths.
    #[error("a netlink attribute of type {kind} is longer than 65531 bytes")]
    AttributeTooLong { kind: u16 },
}

impl Error {
    /// The kernel's error number, if there is one.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Refused { errno, .. } => Some(*errno),
            Self::Socket(error) => error.errno(),
            _ => None,
        }
    }
}

/// A result of a netlink exchange.
pub type Result<T> = std::result::Result<T, Error>;
