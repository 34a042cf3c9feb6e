//! What can go wrong with a change, in the sentences that users read.

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
    /// It may be set here, but not for somebody over the network.
    #[error("`{what}` is not set for a client; it is made on that host itself, by `narrows rfc2544 advise --apply`")]
    NotForClients {
        /// The setting.
        what: String,
    },
    /// The value makes no sense.
    #[error("`{value}` is no value for {what}: it must be {wanted}")]
    BadValue {
        /// What was to be set.
        what: String,
        /// The value.
        value: String,
        /// What would be one.
        wanted: String,
    },
    /// It could be set, but not set back, so it is not touched.
    #[error("{what} stays as it is, since it could not be restored exactly: {why}")]
    NotRestorable {
        /// What was to be set.
        what: String,
        /// What stands in the way.
        why: String,
    },
    /// The kernel took it without an error, but something else came out.
    #[error("{what} was set to `{wanted}`, but the kernel made `{got}` of it")]
    NotObtained {
        /// What was set.
        what: String,
        /// To what.
        wanted: String,
        /// What was read back.
        got: String,
    },
    /// Another change of the same thing was made later.
    #[error("the later change {later} is of the same thing; undo it first")]
    LaterChange {
        /// Its id.
        later: String,
    },
    /// The change belongs to another network namespace, which lives.
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
    /// The kernel's or the disk's refusal.
    #[error(transparent)]
    System(#[from] narrows_sys::Error),
    /// Netlink's refusal.
    #[error("cannot {operation} {device}: {source}")]
    Netlink {
        /// A verb in the infinitive and what it is about.
        operation: &'static str,
        /// The device.
        device: String,
        /// What the kernel said.
        source: narrows_sys::netlink::Error,
    },
}
