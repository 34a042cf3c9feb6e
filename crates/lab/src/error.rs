//! Errors of the lab: the operation, the object, the cause and what to do.

use std::path::PathBuf;
use thiserror::Error;

#[derive(Debug, Error)]
pub enum Error {
    /// The kernel refused an operation.
    #[error(transparent)]
    System(#[from] narrows_sys::Error),
    /// The kernel refused a link, an address or a route.
    #[error(transparent)]
    Links(#[from] narrows_sys::rtnl::Error),
    /// The kernel refused a filter.
    #[error(transparent)]
    Filter(#[from] narrows_sys::nftables::Error),
    /// A lab cannot run on this machine.
    #[error("cannot start a lab on this machine: {0}")]
    CannotRun(String),
    /// An invalid lab name.
    #[error("invalid lab name `{0}`: use 1 to 32 lower-case letters, digits and hyphens, with a letter first")]
    BadName(String),
    /// No running lab has that name.
    #[error("no lab `{name}` is up{hint}; start it with `narrows lab up {name}`")]
    NotUp {
        name: String,
        /// More detail, if known, with its own punctuation.
        hint: String,
    },
    /// A lab of that name is running.
    #[error("cannot bring lab `{name}` up: it is already up{}; replace it with --replace, or take it down with `narrows lab down {name}`", running(*.processes))]
    AlreadyUp {
        name: String,
        /// Processes that run on its hosts.
        processes: usize,
    },
    /// Root of a user namespace is not enough.
    #[error("{what} needs root on the host, outside of a user namespace; run the lab as root")]
    NeedsRoot { what: &'static str },
    /// The lab's shape has no emulated path.
    #[error("lab `{name}` has no emulated path; start it with --topology pair or chain")]
    NoPath { name: String },
    /// No host has that name.
    #[error("the lab has no host `{name}`; it has {known}")]
    UnknownHost { name: String, known: String },
    /// No fault has that name.
    #[error("unknown fault `{id}`; known faults: {known}")]
    UnknownFault { id: String, known: String },
    /// The fault is not available at that place.
    #[error("cannot inject `{id}` at {place}; allowed: {places}")]
    WrongPlace {
        id: &'static str,
        place: crate::Site,
        /// Where it is available.
        places: String,
    },
    /// The fault is already active.
    #[error("`{id}` is already in force at {place}; remove it first")]
    AlreadyActive {
        id: &'static str,
        /// The place asked for.
        place: crate::Site,
    },
    /// The fault is not active.
    #[error("`{id}` is not in force{place}")]
    NotActive {
        id: String,
        /// ` at server`, or empty.
        place: String,
    },
    /// An invalid value for the fault.
    #[error("invalid value `{value}` for `{id}`, which takes {expected}: {cause}")]
    BadValue {
        id: &'static str,
        value: String,
        /// What it takes, with an example.
        expected: String,
        /// Why it is invalid.
        cause: String,
    },
    #[error("invalid path: {0}")]
    BadImpairment(String),
    /// The process that holds the lab refused or failed.
    #[error("lab `{name}`: {cause}")]
    Holder { name: String, cause: String },
    /// Unexpected data from another process.
    #[error("cannot parse {what}: {cause}")]
    Format {
        /// The file or message.
        what: String,
        cause: String,
    },
    /// Communication with the holder failed.
    #[error("cannot {operation} {path}: {source}")]
    Socket {
        /// A verb in the infinitive.
        operation: &'static str,
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
}

/// What `--replace` would end, in words.
fn running(processes: usize) -> String {
    match processes {
        0 => String::new(),
        1 => ", and 1 process runs in it".to_owned(),
        many => format!(", and {many} processes run in it"),
    }
}

pub type Result<T> = std::result::Result<T, Error>;
