//! The journal: one JSON file a change, whole and synced before the change is made, removed when it is undone.

use super::maker::{Maker, boot_id};
use super::{TuneError, same_thing};
use narrows_model::Change;
use narrows_sys::files;
use narrows_sys::network_id::NetworkId;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// A change as it stands in the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// What was changed, and what was there before.
    pub change: Change,
    /// What was read back after it was set; `None` where the process died in between.
    pub obtained: Option<String>,
    /// The inode of the network namespace that it was made in.
    pub namespace_inode: u64,
    /// The namespace's number that is never used again, where the kernel tells it.
    pub namespace_cookie: Option<u64>,
    /// The boot that it was made in.
    pub boot: Option<String>,
    /// Who made it.
    pub by: Maker,
    /// Whether it shall outlive what made it.
    #[serde(default)]
    pub kept: bool,
}

impl Entry {
    pub(super) fn new(change: Change, namespace: NetworkId, by: Maker) -> Self {
        Self {
            change,
            obtained: None,
            namespace_inode: namespace.inode,
            namespace_cookie: namespace.cookie,
            boot: boot_id(),
            by,
            kept: false,
        }
    }

    /// The network namespace that it was made in.
    #[must_use]
    pub const fn namespace(&self) -> NetworkId {
        NetworkId { inode: self.namespace_inode, cookie: self.namespace_cookie }
    }

    /// Whether it was made in an earlier boot: the kernel that it was made in is gone, and the change with it.
    pub(super) fn is_of_earlier_boot(&self) -> bool {
        matches!((&self.boot, boot_id()), (Some(then), Some(now)) if *then != now)
    }

    /// Whether `other` is a later change of the same thing in the same namespace.
    pub(super) fn is_covered_by(&self, other: &Self) -> bool {
        other.change.id != self.change.id
            && order(other) > order(self)
            && other.namespace().is(&self.namespace())
            && same_thing(&other.change.set, &self.change.set)
    }
}

/// The order in which changes were made; the serial number of the id parts those of one microsecond.
fn order(entry: &Entry) -> (u64, u32) {
    let serial = entry.change.id.rsplit('-').next().and_then(|word| u32::from_str_radix(word, 16).ok());
    (entry.change.made_unix_us, serial.unwrap_or(0))
}

#[derive(Debug)]
pub(super) struct Journal {
    directory: PathBuf,
}

/// An entry is small; a limit for what a hand may have put there.
const ENTRY_MOST_BYTES: u64 = 1 << 20;

impl Journal {
    pub(super) fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned() }
    }

    /// The file of an id; an id from outside never leaves the directory.
    fn path(&self, id: &str) -> Result<PathBuf, TuneError> {
        let sound = !id.is_empty() && id.len() <= 64 && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        if sound {
            Ok(self.directory.join(format!("{id}.json")))
        } else {
            Err(TuneError::NoSuchChange { id: id.escape_default().to_string(), journal: self.directory.clone() })
        }
    }

    pub(super) fn write(&self, entry: &Entry) -> Result<(), TuneError> {
        files::make_directory(&self.directory)?;
        let path = self.path(&entry.change.id)?;
        let bytes = serde_json::to_vec_pretty(entry)
            .map_err(|error| TuneError::BadEntry { path: path.clone(), why: error.to_string() })?;
        Ok(files::write_whole(&path, &bytes, 0o600)?)
    }

    pub(super) fn remove(&self, id: &str) -> Result<(), TuneError> {
        Ok(files::remove(&self.path(id)?)?)
    }

    pub(super) fn read(&self, id: &str) -> Result<Entry, TuneError> {
        let path = self.path(id)?;
        if !files::exists(&path) {
            return Err(TuneError::NoSuchChange { id: id.to_owned(), journal: self.directory.clone() });
        }
        let bytes = files::read(&path, ENTRY_MOST_BYTES)?;
        serde_json::from_slice(&bytes).map_err(|error| TuneError::BadEntry { path, why: error.to_string() })
    }

    /// All entries, oldest first. A file that another process removed meanwhile is no error.
    pub(super) fn entries(&self) -> Result<Vec<Entry>, TuneError> {
        if !files::exists(&self.directory) {
            return Ok(Vec::new());
        }
        let mut entries = Vec::new();
        for name in files::list(&self.directory)? {
            let Some(id) = name.strip_suffix(".json") else { continue };
            match self.read(id) {
                Ok(entry) => entries.push(entry),
                Err(TuneError::NoSuchChange { .. }) => {}
                Err(TuneError::System(error)) if error.errno() == Some(2) => {}
                Err(error) => return Err(error),
            }
        }
        entries.sort_by_key(order);
        Ok(entries)
    }
}
