//! Changes of a host, each with its way back: the old value is on disk before the new one is set, so that every change
//! can be undone by `narrows tune undo` from the journal alone, after any crash.
//!
//! One file a kind of setting ([`sysctl`], [`offload`], [`mtu`], [`qdisc`], [`neighbour`], [`bridge`], [`flow_control`],
//! [`rings`]), each a [`Knob`]. Nothing outside of their tables is ever set, and for a client over the network only what a
//! path needs ([`check_for_client`]).

mod bridge;
mod error;
mod flow_control;
mod journal;
mod maker;
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

use journal::Journal;
use maker::Maker;
use narrows_model::{Change, Place, Setting};
use narrows_sys::clock;
use narrows_sys::network_id::NetworkId;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

/// One thing on this host that can be read, set and set back.
trait Knob {
    /// Whether the wanted value makes sense and may be set at all; before anything is read or written.
    fn check(&self) -> Result<(), TuneError>;
    /// What is there now, exactly enough for [`Knob::set_back`].
    fn current(&self) -> Result<String, TuneError>;
    /// Whether the wanted value is there already.
    fn holds(&self) -> Result<bool, TuneError>;
    /// Sets the wanted value.
    fn set(&self) -> Result<(), TuneError>;
    /// Sets what [`Knob::current`] once told.
    fn set_back(&self, before: &str) -> Result<(), TuneError>;
}

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

/// Whether a client over the network may ask for a setting: only what changes how this host sends and receives by itself, never
/// what it forwards or whom it believes.
///
/// # Errors
/// It may not.
pub fn check_for_client(setting: &Setting) -> Result<(), TuneError> {
    let path = match setting {
        Setting::Sysctl { key, .. } => !sysctl::is_for_bench(key),
        Setting::Offload { .. } | Setting::Mtu { .. } | Setting::RootQdisc { .. } => true,
        Setting::Neighbour { .. } | Setting::Bridge { .. } | Setting::FlowControl { .. } | Setting::Rings { .. } => {
            false
        }
    };
    if path { Ok(()) } else { Err(TuneError::NotForClients { what: setting.to_string() }) }
}

/// Where a setting stands on this host: what is there now, and whether that is what is wanted. Sets nothing.
///
/// # Errors
/// Why it cannot be set here, as far as that can be told before.
pub fn look(setting: &Setting) -> Result<(String, bool), TuneError> {
    let knob = knob(setting);
    knob.check()?;
    Ok((knob.current()?, knob.holds()?))
}

/// Whether two settings are of one and the same thing.
fn same_thing(a: &Setting, b: &Setting) -> bool {
    match (a, b) {
        (Setting::Sysctl { key: a, .. }, Setting::Sysctl { key: b, .. }) => a == b,
        (Setting::Offload { device: a, feature: f, .. }, Setting::Offload { device: b, feature: g, .. }) => {
            a == b && f == g
        }
        (Setting::Mtu { device: a, .. }, Setting::Mtu { device: b, .. })
        | (Setting::RootQdisc { device: a, .. }, Setting::RootQdisc { device: b, .. })
        | (Setting::FlowControl { device: a, .. }, Setting::FlowControl { device: b, .. })
        | (Setting::Rings { device: a, .. }, Setting::Rings { device: b, .. }) => a == b,
        (Setting::Neighbour { device: a, address: x, .. }, Setting::Neighbour { device: b, address: y, .. }) => {
            a == b && x == y
        }
        (Setting::Bridge { bridge: a, option: o, .. }, Setting::Bridge { bridge: b, option: p, .. }) => {
            a == b && o == p
        }
        _ => false,
    }
}

/// Makes changes and undoes them. All that it does acts in the network namespace of the calling thread.
#[derive(Debug)]
pub struct Tuner {
    journal: Journal,
    role: &'static str,
}

static SERIAL: AtomicU32 = AtomicU32::new(0);

impl Tuner {
    /// With the journal in `changes/` of a state directory. `role` is who makes the changes, such as `serve` or `diagnose`.
    #[must_use]
    pub fn new(state: &Path, role: &'static str) -> Self {
        Self { journal: Journal::new(&state.join("changes")), role }
    }

    /// Sets something, having written down what was there before. A value that is already there changes nothing, but is
    /// written down all the same, so that every change has its undoing.
    ///
    /// # Errors
    /// Why it cannot be set; then nothing is left behind, neither on the host nor in the journal.
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
            // It may have worked in part: back to what was there, and only then forget it.
            if knob.set_back(&entry.change.before).is_ok() {
                self.journal.remove(&entry.change.id)?;
            }
            return Err(error);
        }
        // As the kernel made of it: the undoing looks whether it is still there.
        entry.obtained = Some(knob.current()?);
        self.journal.write(&entry)?;
        Ok(entry.change)
    }

    /// All changes of the journal, oldest first; also those of other namespaces, which only these can undo.
    ///
    /// # Errors
    /// Where the journal cannot be read.
    pub fn list(&self) -> Result<Vec<Entry>, TuneError> {
        self.journal.entries()
    }

    /// Marks a change as meant to stay beyond the end of what made it; it can still be undone by its id.
    ///
    /// # Errors
    /// No such change.
    pub fn keep(&self, id: &str) -> Result<Change, TuneError> {
        let mut entry = self.journal.read(id)?;
        entry.kept = true;
        self.journal.write(&entry)?;
        Ok(entry.change)
    }
}

#[cfg(test)]
mod tests;
