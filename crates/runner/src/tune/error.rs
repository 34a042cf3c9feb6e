//! Errors of changes.

use std::path::PathBuf;
use thiserror::Error;

/// Why a setting was not made or not undone.
#[derive(Debug, Error)]
pub enum TuneError {
    /// Not in the table of what narrows may set.
    #[error("narrows does not set {what}; it sets only {allowed}")]
    NotInTable {
        /// What was asked for.
        what: String,
        /// What is in the table.
        allowed: String,
    },
    /// A setting that clients over the network may not make.
    #[error("`{0}` is not set for a client; it is made on that host itself, by `narrows rfc2544 advise --apply`")]
    NotForClients(String),
    /// An invalid value.
    #[error("`{value}` is no value for {what}: it must be {wanted}")]
    BadValue {
        /// What was to be set.
        what: String,
        /// The value.
        value: String,
        /// The valid values.
        wanted: String,
    },
    /// It could not be rolled back, so it is not changed.
    #[error("{what} stays as it is, since it could not be restored exactly: {why}")]
    NotRestorable {
        /// What was to be set.
        what: String,
        /// The reason.
        why: String,
    },
    /// The kernel reported no error, but has another value.
    #[error("{what} was set to `{wanted}`, but the kernel made `{got}` of it")]
    NotObtained {
        /// What was set.
        what: String,
        /// To what.
        wanted: String,
        /// What was read back.
        got: String,
    },
    /// A later change of the same setting, by its id.
    #[error("the later change {0} is of the same thing; undo it first")]
    LaterChange(String),
    /// The change was made in another network namespace, which still exists.
    #[error("the change {id} was made in another network namespace (net:[{inode}]); undo it from there")]
    OtherNamespace {
        /// The change.
        id: String,
        /// Its namespace.
        inode: u64,
    },
    /// No such change.
    #[error("there is no change {id} in the journal {journal}; see `narrows tune list`", journal = journal.display())]
    NoSuchChange {
        /// What was asked for.
        id: String,
        /// Where it was looked for.
        journal: PathBuf,
    },
    /// An entry of the journal that cannot be read.
    #[error("the journal entry {path} cannot be read: {why}", path = path.display())]
    BadEntry {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A system call failed.
    #[error(transparent)]
    System(#[from] narrows_sys::Error),
    /// A netlink request failed.
    #[error("cannot {operation} {device}: {source}")]
    Netlink {
        /// A verb in the infinitive and what it is about.
        operation: &'static str,
        /// The device.
        device: String,
        /// The kernel's error.
        source: narrows_sys::netlink::Error,
    },
}
