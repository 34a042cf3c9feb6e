//! Changes of a host, each with its roll-back: the old value is on disk before the new one is set, so that every change
//! can be undone by `narrows tune undo` from the journal alone, after any crash.
//!
//! One file per kind of setting ([`sysctl`], [`offload`], [`mtu`], [`qdisc`], [`neighbour`], [`bridge`], [`flow_control`],
//! [`rings`]), each a [`Knob`]. Nothing outside of their tables is ever set, and for a client over the network only what a
//! path needs ([`check_for_client`]).

mod bridge;
mod error;
mod flow_control;
mod journal;
mod knob;
mod mtu;
mod neighbour;
mod offload;
mod qdisc;
mod rings;
mod sysctl;
mod together;
mod undo;

pub use error::TuneError;
pub use journal::Entry;
pub use together::NotTogether;
pub use undo::{Undoing, Undone};

pub(crate) use sysctl::parameters;

use journal::{Journal, Maker};
use knob::Knob;
use narrows_model::{Change, Place, Setting};
use narrows_sys::clock;
use narrows_sys::network_id::NetworkId;
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

/// The current value on this host, and whether it is the setting's. Sets nothing; fails where the setting cannot be made here, as
/// far as that is known before.
pub fn look(setting: &Setting) -> Result<(String, bool), TuneError> {
    let knob = knob(setting);
    knob.check()?;
    Ok((knob.current()?, knob.holds()?))
}

/// Makes changes and undoes them. All that it does acts in the network namespace of the calling thread.
#[derive(Debug)]
pub struct Tuner {
    journal: Journal,
    role: &'static str,
}

static SERIAL: AtomicU32 = AtomicU32::new(0);

impl Tuner {
    /// With the journal in `changes/` of a state directory. `role` is the command that makes the changes: `serve`, `diagnose`.
    #[must_use]
    pub fn new(state: &Path, role: &'static str) -> Self {
        Self { journal: Journal::new(&state.join("changes")), role }
    }

    /// Makes a setting after it has noted the old value. A value that is already set is noted as well, so that every change can be
    /// undone. A change that fails leaves nothing behind, neither on the host nor in the journal.
    pub fn apply(&self, setting: &Setting, at: Place) -> Result<Change, TuneError> {
        let knob = knob(setting);
        knob.check()?;
        let maker = Maker::this_process(self.role);
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
        let mut entry = Entry::new(change, NetworkId::current()?, maker);
        self.journal.write(&entry)?;
        if let Err(error) = knob.set() {
            // It may have worked in part: the entry goes only after the old value is back.
            if knob.write(&entry.change.before).is_ok() {
                self.journal.remove(&entry.change.id)?;
            }
            return Err(error);
        }
        // Compared before it is undone: somebody else may have changed it since.
        entry.obtained = Some(knob.current()?);
        self.journal.write(&entry)?;
        Ok(entry.change)
    }

    pub(crate) fn no_such_change(&self, id: &str) -> TuneError {
        self.journal.no_such_change(id)
    }

    /// All changes of the journal, oldest first; also those of other namespaces, which can be undone there only.
    pub fn list(&self) -> Result<Vec<Entry>, TuneError> {
        self.journal.entries()
    }

    /// Lets a change outlive the process that made it; it can still be undone by its id.
    pub fn keep(&self, id: &str) -> Result<Change, TuneError> {
        let mut entry = self.journal.read(id)?;
        entry.kept = true;
        self.journal.write(&entry)?;
        Ok(entry.change)
    }
}

#[cfg(test)]
mod tests;
