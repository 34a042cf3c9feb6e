//! Changes of a host, each with its roll-back: the old value is on disk before the new one is set, so that every change
//! can be undone by `narrows tune undo` from the journal alone, after any crash.
//!
//! One file per kind of setting ([`sysctl`], [`offload`], [`mtu`], [`qdisc`], [`neighbour`], [`bridge`], [`flow_control`],
//! [`rings`], [`table`]), each a [`Knob`]. Nothing outside of their tables is ever set, and for a client over the network only what a
//! path needs ([`check_for_client`]).

mod bridge;
mod error;
mod flow_control;
mod host;
mod journal;
mod knob;
mod mtu;
mod neighbour;
mod note;
mod offload;
mod qdisc;
mod rings;
mod sysctl;
pub mod table;
mod together;
mod undo;

pub use error::TuneError;
pub use journal::Entry;
pub use note::before;
pub use together::NotTogether;
pub use undo::{Undoing, Undone};

pub(crate) use sysctl::parameters;

use host::{Host, ThisHost};
use journal::Journal;
use knob::Knob;
use narrows_model::{Change, Place, Setting};
use narrows_sys::clock;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

fn knob(setting: &Setting) -> Box<dyn Knob + '_> {
    match setting {
        Setting::Sysctl { key, value } => Box::new(sysctl::Sysctl { key, value }),
        Setting::Offload { device, feature, on } => Box::new(offload::Offload { device, feature, on: *on }),
        Setting::Mtu { device, mtu } => Box::new(mtu::Mtu { device, mtu: *mtu }),
        Setting::RootQdisc { device, kind } => Box::new(qdisc::RootQdisc { device, kind }),
        Setting::Neighbour { device, address, mac } => {
            Box::new(neighbour::Neighbour { device, address: *address, mac: *mac })
        }
        Setting::Bridge { bridge, option, value } => Box::new(bridge::Bridge { bridge, option, value: *value }),
        Setting::FlowControl { device, on } => Box::new(flow_control::FlowControl { device, on: *on }),
        Setting::Rings { device, rx, tx } => Box::new(rings::Rings { device, rx: *rx, tx: *tx }),
        Setting::Table { fill, device, gateway, mac } => {
            Box::new(table::Table { fill: *fill, device, gateway: *gateway, mac: *mac })
        }
    }
}

/// Refuses what a client over the network may not set: it may change how this host sends and receives by itself, never what it
/// forwards or whom it believes.
pub fn check_for_client(setting: &Setting) -> Result<(), TuneError> {
    match setting {
        Setting::Sysctl { key, .. } if !sysctl::is_for_bench(key) => Ok(()),
        Setting::Offload { .. } | Setting::Mtu { .. } | Setting::RootQdisc { .. } => Ok(()),
        other => Err(TuneError::NotForClients(other.to_string())),
    }
}

/// What is wrong with a setting, as far as the tables know it, without a look at this host.
pub(crate) fn check(setting: &Setting) -> Result<(), TuneError> {
    match setting {
        Setting::Sysctl { .. } | Setting::Offload { .. } => knob(setting).check(),
        _ => Ok(()),
    }
}

/// The current value on this host, and whether it is the setting's. Sets nothing; fails where the setting cannot be made here, as
/// far as that is known before.
pub fn look(setting: &Setting) -> Result<(String, bool), TuneError> {
    let knob = knob(setting);
    knob.check()?;
    Ok((knob.current()?, knob.holds()?))
}

/// Makes changes and undoes them. All that it does acts in the network namespace of the calling thread.
pub struct Tuner {
    host: Box<dyn Host>,
    role: &'static str,
}

impl fmt::Debug for Tuner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tuner({} in {})", self.role, self.host.directory().display())
    }
}

/// Changes in the journal with which a client makes no more: each is a file, and is read whenever one is undone.
const MAX_OF_CLIENTS: usize = 500;

static SERIAL: AtomicU32 = AtomicU32::new(0);

impl Tuner {
    /// With the journal in `changes/` of a state directory. `role` is the command that makes the changes: `serve`, `diagnose`.
    pub fn new(state: &Path, role: &'static str) -> Self {
        Self { host: Box::new(ThisHost(Journal::new(&state.join("changes")))), role }
    }

    /// Makes a setting after it has noted the old value. A value that is already set is noted as well, so that every change can be
    /// undone. A change that fails leaves nothing behind, neither on the host nor in the journal.
    pub fn apply(&self, setting: &Setting, at: Place) -> Result<Change, TuneError> {
        let knob = self.host.knob(setting);
        knob.check()?;
        let _lock = self.host.lock()?;
        let maker = self.host.maker(self.role);
        let made_unix_us = clock::unix_us();
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let change = Change {
            id: format!("{made_unix_us:x}-{:x}-{serial:x}", maker.pid),
            at,
            set: setting.clone(),
            before: knob.current()?,
            made_unix_us,
            in_force: true,
        };
        let mut entry = Entry::new(change, self.host.network()?, maker);
        self.host.write(&entry)?;
        let mut set = || {
            knob.set()?;
            // Compared before it is undone: somebody else may have changed it since.
            entry.obtained = Some(knob.current()?);
            self.host.write(&entry)
        };
        if let Err(error) = set() {
            // It may have worked in part: the entry goes only after the old value is back.
            // What was refused from the start is refused again, and has changed nothing.
            let untouched = || knob.current().is_ok_and(|now| now == entry.change.before);
            if knob.write(&entry.change.before).is_ok() || untouched() {
                self.host.remove(&entry.change.id)?;
            }
            return Err(error);
        }
        Ok(entry.change)
    }

    /// The same for a client over the network.
    pub(crate) fn apply_for_client(&self, setting: &Setting) -> Result<Change, TuneError> {
        check_for_client(setting)?;
        let (entries, unreadable) = self.host.entries()?;
        if entries.len() + unreadable.len() >= MAX_OF_CLIENTS {
            return Err(TuneError::TooMany(self.host.directory()));
        }
        self.apply(setting, Place::Server)
    }

    pub(crate) fn no_such_change(&self, id: &str) -> TuneError {
        TuneError::NoSuchChange(id.to_owned(), self.host.directory())
    }

    /// All changes of the journal, oldest first; also those of other namespaces, which can be undone there only.
    pub fn list(&self) -> Result<Vec<Entry>, TuneError> {
        Ok(self.host.entries()?.0)
    }

    /// Why entries of the journal cannot be read: they are skipped, and their changes stay.
    pub fn unreadable(&self) -> Result<Vec<TuneError>, TuneError> {
        Ok(self.host.entries()?.1)
    }

    /// Lets a change outlive the process that made it; it can still be undone by its id.
    pub fn keep(&self, id: &str) -> Result<Change, TuneError> {
        let _lock = self.host.lock()?;
        let mut entry = self.host.read(id)?;
        entry.kept = true;
        self.host.write(&entry)?;
        Ok(entry.change)
    }
}

#[cfg(test)]
mod schedules;
#[cfg(test)]
mod tests;
