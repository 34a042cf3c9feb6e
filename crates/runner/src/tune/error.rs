//! Errors of changes.

use std::path::PathBuf;
use thiserror::Error;

/// Why a setting was not made or not undone.
#[derive(Debug, Error)]
pub enum TuneError {
    /// Not in the table of what narrows may set.
    #[error("narrows does not set {kind} `{word}`; {}", hint(word, allowed))]
    NotInTable {
        /// What it should be one of, such as `the kernel parameter`.
        kind: String,
        /// What was asked for.
        word: String,
        allowed: Vec<String>,
    },
    /// A setting that clients over the network may not make.
    #[error("`{0}` is not set for a client; it is made on that host itself, by `narrows rfc2544 advise --apply`")]
    NotForClients(String),
    #[error("`{value}` is no value for {what}: it must be {wanted}")]
    BadValue {
        /// What was to be set.
        what: String,
        value: String,
        wanted: String,
    },
    /// It could not be rolled back, so it is not changed: the setting, and why.
    #[error("{0} stays as it is, since it could not be restored exactly: {1}")]
    NotRestorable(String, String),
    /// The kernel reported no error, but has another value.
    #[error("{what} was set to `{wanted}`, but the kernel made `{got}` of it")]
    NotObtained {
        what: String,
        wanted: String,
        /// What was read back.
        got: String,
    },
    /// The change of this id was made in another network namespace, which still exists: its inode.
    #[error("the change {0} was made in another network namespace (net:[{1}]); undo it from there")]
    OtherNamespace(String, u64),
    /// No change of this id in this journal.
    #[error("there is no change {0} in the journal {journal}; see `narrows tune list`", journal = .1.display())]
    NoSuchChange(String, PathBuf),
    /// An entry of the journal cannot be read: the file, and why.
    #[error("cannot read the journal entry {path}: {1}; its change stays", path = .0.display())]
    BadEntry(PathBuf, String),
    /// The journal is full.
    #[error("the journal {} has too many changes; undo some on this host with `narrows tune undo`", .0.display())]
    TooMany(PathBuf),
    /// The helper that makes changes does not allow it, in its words.
    #[error("{0}")]
    Refused(String),
    /// The helper that makes changes failed, in its words.
    #[error("{0}")]
    Helper(String),
    /// A system call failed.
    #[error(transparent)]
    System(#[from] narrows_sys::Error),
    /// A netlink request failed.
    #[error("cannot {operation} {device}: {source}")]
    Netlink {
        /// A verb in the infinitive and what it is about.
        operation: &'static str,
        device: String,
        source: narrows_sys::netlink::Error,
    },
}

/// A table of this many names is shown whole.
const FEW: usize = 10;
/// The nearest names of a longer table that are shown.
const NEAREST: usize = 3;
/// Names that are less alike are no slip of the keyboard.
const ALIKE: f64 = 0.75;

/// What may be set instead: a short table, or the nearest names of a long one.
fn hint(word: &str, allowed: &[String]) -> String {
    if allowed.len() <= FEW {
        return format!("it sets only {}", allowed.join(", "));
    }
    let alike = |name: &String| strsim::normalized_damerau_levenshtein(word, name);
    let mut near: Vec<(f64, &String)> = allowed.iter().map(|name| (alike(name), name)).collect();
    near.retain(|(alike, _)| *alike >= ALIKE);
    near.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let near: Vec<&str> = near.iter().take(NEAREST).map(|(_, name)| name.as_str()).collect();
    let list = "`narrows list parameters` shows all that it sets";
    if near.is_empty() { list.to_owned() } else { format!("the nearest is {}; {list}", near.join(" or ")) }
}
