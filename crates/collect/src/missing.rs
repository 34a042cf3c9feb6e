//! Why something is not known. Missing data is a value with a reason, never a zero.

use std::fmt;
use thiserror::Error;

/// Why something is not known, in one sentence that names what was read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Missing {
    /// A file or directory could not be read.
    #[error("{path}: {why}")]
    File {
        /// Its path on the host.
        path: String,
        /// The cause, and what would help.
        why: String,
    },
    /// A file with unexpected content.
    #[error("{path} line {line}: invalid {wanted} `{item}`")]
    Parse {
        /// The file's path on the host.
        path: String,
        /// The line, from 1.
        line: usize,
        /// The name or the text that was found.
        item: String,
        wanted: &'static str,
    },
    /// The kernel did not answer a query.
    #[error("{what}: {why}")]
    Kernel {
        /// The netlink message or ioctl.
        what: String,
        /// The cause, and what would help.
        why: String,
    },
    /// Something else, as a whole sentence.
    #[error("{0}")]
    Because(String),
}

impl Missing {
    pub fn because(why: impl fmt::Display) -> Self {
        Self::Because(why.to_string())
    }

    /// From a file that could not be read.
    pub(crate) fn file(path: &str, error: &narrows_sys::Error) -> Self {
        Self::File { path: path.to_owned(), why: words(error.errno(), &error.source) }
    }

    /// From a netlink exchange that failed.
    pub(crate) fn netlink(what: &str, error: &narrows_sys::netlink::Error) -> Self {
        Self::Kernel { what: what.to_owned(), why: words(error.errno(), error) }
    }

    /// From an ioctl or socket option that failed.
    pub(crate) fn call(what: &str, error: &narrows_sys::Error) -> Self {
        Self::Kernel { what: what.to_owned(), why: words(error.errno(), &error.source) }
    }
}

/// The numbers of `errno` that mean the same on every architecture that narrows runs on (include/uapi/asm-generic/errno-base.h).
fn words(errno: Option<i32>, error: &dyn fmt::Display) -> String {
    match errno {
        Some(1 | 13) => "not permitted here; run as root, outside of a container".to_owned(),
        Some(2) => "this kernel, device or namespace does not have it".to_owned(),
        Some(19) => "there is no such device in this network namespace".to_owned(),
        Some(22) => "not supported by this kernel; it may be too old or lack a module".to_owned(),
        Some(95) => "not reported by driver or kernel".to_owned(),
        _ => error.to_string(),
    }
}
