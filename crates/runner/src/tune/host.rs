//! What the tuner needs of a host: its settings, the journal, and who still runs. The tests have a model of one.

use super::error::TuneError;
use super::journal::{Entry, Journal, Maker};
use super::knob::Knob;
use narrows_model::Setting;
use narrows_sys::files::{self, Locked};
use narrows_sys::network_id::NetworkId;
use std::path::PathBuf;

pub(super) trait Host: Send + Sync {
    /// What a setting acts on.
    fn knob<'a>(&self, setting: &'a Setting) -> Box<dyn Knob + 'a>;
    /// The process that makes changes in this role.
    fn maker(&self, role: &str) -> Maker;
    /// Whether that very process still runs.
    fn lives(&self, maker: &Maker) -> bool;
    /// The network namespace of the calling thread.
    fn network(&self) -> Result<NetworkId, TuneError>;
    /// Keeps other processes from the journal until it is dropped.
    fn lock(&self) -> Result<Option<Locked>, TuneError>;
    /// Writes an entry, whole and durable.
    fn write(&self, entry: &Entry) -> Result<(), TuneError>;
    fn remove(&self, id: &str) -> Result<(), TuneError>;
    fn read(&self, id: &str) -> Result<Entry, TuneError>;
    /// All entries that can be read, oldest first, and why the others cannot.
    fn entries(&self) -> Result<(Vec<Entry>, Vec<TuneError>), TuneError>;
    /// Where the journal is.
    fn directory(&self) -> PathBuf;
}

/// The host of this process.
pub(super) struct ThisHost(pub(super) Journal);

impl Host for ThisHost {
    fn knob<'a>(&self, setting: &'a Setting) -> Box<dyn Knob + 'a> {
        super::knob(setting)
    }

    fn maker(&self, role: &str) -> Maker {
        Maker::this_process(role)
    }

    fn lives(&self, maker: &Maker) -> bool {
        maker.lives()
    }

    fn network(&self) -> Result<NetworkId, TuneError> {
        Ok(NetworkId::current()?)
    }

    fn lock(&self) -> Result<Option<Locked>, TuneError> {
        files::make_directory(self.0.directory())?;
        Ok(Some(files::lock(&self.0.directory().join("lock"))?))
    }

    fn write(&self, entry: &Entry) -> Result<(), TuneError> {
        self.0.write(entry)
    }

    fn remove(&self, id: &str) -> Result<(), TuneError> {
        self.0.remove(id)
    }

    fn read(&self, id: &str) -> Result<Entry, TuneError> {
        self.0.read(id)
    }

    fn entries(&self) -> Result<(Vec<Entry>, Vec<TuneError>), TuneError> {
        self.0.entries()
    }

    fn directory(&self) -> PathBuf {
        self.0.directory().to_owned()
    }
}
