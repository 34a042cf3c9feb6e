//! The journal: one JSON file per change, whole and synced before the change is made, removed when it is undone.

use super::error::TuneError;
use narrows_model::{Change, Setting};
use narrows_sys::files;
use narrows_sys::network_id::NetworkId;
use narrows_sys::process::{boot_id, start_time};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// A process that made a change, distinguished from a later one of the same id by the time of its start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Maker {
    pub pid: u32,
    /// When it started, in ticks since boot (`/proc/PID/stat`, field 22).
    pub started_ticks: Option<u64>,
    /// Which command it was: `serve`, `diagnose`.
    pub role: String,
}

impl Maker {
    pub(super) fn this_process(role: &str) -> Self {
        let pid = std::process::id();
        Self { pid, started_ticks: start_time(pid), role: role.to_owned() }
    }

    /// Whether that very process still runs.
    pub fn lives(&self) -> bool {
        let now = start_time(self.pid);
        now.is_some() && now == self.started_ticks
    }
}

/// What a setting changes, whatever its value: a kind, and the names within that kind.
fn subject(setting: &Setting) -> (std::mem::Discriminant<Setting>, &str, String) {
    let (name, part) = match setting {
        Setting::Sysctl { key, .. } => (key, String::new()),
        Setting::Offload { device, feature, .. } => (device, feature.clone()),
        Setting::Neighbour { device, address, .. } => (device, address.to_string()),
        Setting::Bridge { bridge, option, .. } => (bridge, option.clone()),
        Setting::Table { fill, device, .. } => (device, format!("{} {:?}", fill.table, fill.family)),
        Setting::Mtu { device, .. }
        | Setting::RootQdisc { device, .. }
        | Setting::FlowControl { device, .. }
        | Setting::Rings { device, .. } => (device, String::new()),
    };
    (std::mem::discriminant(setting), name, part)
}

/// A change in the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The change, with the old value.
    pub change: Change,
    /// The value that was read back; `None` where the process died in between.
    pub obtained: Option<String>,
    /// The inode of its network namespace.
    pub namespace_inode: u64,
    /// The namespace's cookie, which is never used again, where the kernel has it.
    pub namespace_cookie: Option<u64>,
    /// The boot in which it was made.
    pub boot: Option<String>,
    pub by: Maker,
    /// Whether it outlives the process that made it.
    #[serde(default)]
    pub kept: bool,
    /// Whether its roll-back was begun: what is there now may be half of it.
    #[serde(default)]
    pub restoring: bool,
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
            restoring: false,
        }
    }

    /// The network namespace that it was made in.
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
            && subject(&other.change.set) == subject(&self.change.set)
    }
}

/// The order in which changes were made; the serial number in the id separates those of one microsecond.
pub(super) fn order(entry: &Entry) -> (u64, u32) {
    let serial = entry.change.id.rsplit('-').next().and_then(|word| u32::from_str_radix(word, 16).ok());
    (entry.change.made_unix_us, serial.unwrap_or(0))
}

#[derive(Debug)]
pub(super) struct Journal {
    directory: PathBuf,
}

/// An entry is small; the limit is for files that somebody else put there.
const MAX_ENTRY_BYTES: u64 = 1 << 20;

impl Journal {
    pub(super) fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned() }
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(super) fn no_such_change(&self, id: &str) -> TuneError {
        TuneError::NoSuchChange(id.to_owned(), self.directory.clone())
    }

    /// The file of an id; an id from outside never leaves the directory.
    fn path(&self, id: &str) -> Result<PathBuf, TuneError> {
        let sound = !id.is_empty() && id.len() <= 64 && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        if sound {
            Ok(self.directory.join(format!("{id}.json")))
        } else {
            Err(self.no_such_change(&id.escape_default().to_string()))
        }
    }

    pub(super) fn write(&self, entry: &Entry) -> Result<(), TuneError> {
        files::make_directory(&self.directory)?;
        let path = self.path(&entry.change.id)?;
        let bytes =
            serde_json::to_vec_pretty(entry).map_err(|error| TuneError::BadEntry(path.clone(), error.to_string()))?;
        Ok(files::write_whole(&path, &bytes, 0o600)?)
    }

    pub(super) fn remove(&self, id: &str) -> Result<(), TuneError> {
        Ok(files::remove(&self.path(id)?)?)
    }

    pub(super) fn read(&self, id: &str) -> Result<Entry, TuneError> {
        let path = self.path(id)?;
        if !files::exists(&path) {
            return Err(self.no_such_change(id));
        }
        let bytes = files::read(&path, MAX_ENTRY_BYTES)?;
        serde_json::from_slice(&bytes).map_err(|error| TuneError::BadEntry(path, error.to_string()))
    }

    /// All entries that can be read, oldest first, and why the others cannot: one damaged file must not stop the undo of the rest. A
    /// file that another process removed meanwhile is no error.
    pub(super) fn entries(&self) -> Result<(Vec<Entry>, Vec<TuneError>), TuneError> {
        let (mut entries, mut unreadable) = (Vec::new(), Vec::new());
        if !files::exists(&self.directory) {
            return Ok((entries, unreadable));
        }
        for name in files::list(&self.directory)? {
            let Some(id) = name.strip_suffix(".json") else { continue };
            match self.read(id) {
                Ok(entry) => entries.push(entry),
                Err(TuneError::NoSuchChange { .. }) => {}
                Err(TuneError::System(error)) if error.errno() == Some(2) => {}
                Err(error) => unreadable.push(error),
            }
        }
        entries.sort_by_key(order);
        Ok((entries, unreadable))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_lives_and_an_earlier_one_of_its_number_does_not() {
        let mut maker = Maker::this_process("test");
        assert!(maker.lives());
        maker.started_ticks = maker.started_ticks.map(|ticks| ticks + 1);
        assert!(!maker.lives());
    }
}
