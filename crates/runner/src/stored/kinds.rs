//! The kinds of records that the store keeps: each is a line of a table, and what it is listed with.

use super::foreign;
use super::record::{Kind, Record, of, plan_hash};
use crate::{responsiveness, trace};
use narrows_model::load::frames_report::FramesReport;
use narrows_model::load::responsiveness::ResponsivenessRecord;
use narrows_model::load::stamp::StampReport;
use narrows_model::run::command::CommandRecord;
use narrows_model::run::history::StoredRun;
use narrows_model::run::mesh::MeshRecord;
use narrows_model::{Run, TraceRecord};
use narrows_render::AnyDocument;
use narrows_store::{Error, compat};
use narrows_views::{history, mesh};
use std::path::Path;

/// The kinds that a program knows: [`KINDS`], and those of the crates above this one.
pub type Kinds = &'static [&'static [Kind]];

/// Those of this crate alone.
pub const OWN: Kinds = &[&KINDS];

/// The kinds of this crate; those of other programs are in [`foreign`].
pub static KINDS: [Kind; 7] = [
    of::<_, Run>(),
    of::<_, FramesReport>(),
    of::<_, ResponsivenessRecord>(),
    of::<_, StampReport>(),
    of::<_, TraceRecord>(),
    of::<_, CommandRecord>(),
    of::<_, MeshRecord>(),
];

/// The kind of this name.
/// Errors: a later version knows it.
pub(super) fn named(kinds: Kinds, word: &str, id: &str) -> Result<&'static Kind, Error> {
    let unknown = || Error::Damaged(id.to_owned(), format!("it is of the unknown kind `{word}`; upgrade narrows"));
    kinds.iter().copied().chain([&foreign::KINDS[..]]).flatten().find(|it| it.word == word).ok_or_else(unknown)
}

impl Record for Run {
    const KIND: &'static str = narrows_store::KIND_OF_RUNS;
    const COMMAND: &'static str = "diagnose";

    fn listed(&self) -> StoredRun {
        listed(self)
    }

    fn report(self: Box<Self>) -> Option<Box<dyn AnyDocument>> {
        crate::books::document(&self)
    }

    fn read(json: &[u8], id: &str) -> Result<Self, Error> {
        compat::read(json, Path::new(id))
    }
}

/// Runs with the same device, frames and load have the same plan.
impl Record for FramesReport {
    const KIND: &'static str = "frames";
    const COMMAND: &'static str = "generate";

    fn listed(&self) -> StoredRun {
        let plan = plan_hash(&self.sent.as_ref().map(|it| (&it.device, &it.format, &it.load)));
        StoredRun { plan, ..history::of_frames(self) }
    }

    fn report(self: Box<Self>) -> Option<Box<dyn AnyDocument>> {
        Some(self)
    }
}

impl Record for ResponsivenessRecord {
    const KIND: &'static str = "responsiveness";
    const COMMAND: &'static str = "measure responsiveness";

    fn listed(&self) -> StoredRun {
        StoredRun { plan: plan_hash(&self.plan), ..history::of_responsiveness(self) }
    }

    fn report(self: Box<Self>) -> Option<Box<dyn AnyDocument>> {
        Some(Box::new(responsiveness::report(&self)))
    }
}

impl Record for StampReport {
    const KIND: &'static str = "stamp";
    const COMMAND: &'static str = "measure stamp";

    fn listed(&self) -> StoredRun {
        StoredRun { plan: plan_hash(&self.plan), ..history::of_stamp(self) }
    }

    fn report(self: Box<Self>) -> Option<Box<dyn AnyDocument>> {
        Some(self)
    }
}

impl Record for TraceRecord {
    const KIND: &'static str = "trace";
    const COMMAND: &'static str = "trace";

    fn listed(&self) -> StoredRun {
        StoredRun { plan: plan_hash(&self.plan), ..history::of_trace(self) }
    }

    fn report(self: Box<Self>) -> Option<Box<dyn AnyDocument>> {
        Some(Box::new(trace::report(&self)))
    }
}

/// A run of another program. Runs of the same command have the same plan.
impl Record for CommandRecord {
    const KIND: &'static str = "command";
    const COMMAND: &'static str = "campaign";

    fn listed(&self) -> StoredRun {
        StoredRun { plan: plan_hash(&(&self.command, &self.pattern)), ..history::of_command(self) }
    }

    fn report(self: Box<Self>) -> Option<Box<dyn AnyDocument>> {
        Some(self)
    }
}

/// Meshes of the same hosts and loads have the same plan.
impl Record for MeshRecord {
    const KIND: &'static str = "mesh";
    const COMMAND: &'static str = "mesh";

    fn listed(&self) -> StoredRun {
        let names: Vec<&str> = self.members.iter().map(|member| member.name.as_str()).collect();
        StoredRun { plan: plan_hash(&(&self.plan, names)), ..mesh::stored(self) }
    }

    fn report(self: Box<Self>) -> Option<Box<dyn AnyDocument>> {
        Some(Box::new(mesh::report(&self)))
    }
}

/// What a run is listed with, without its user.
pub(crate) fn listed(run: &Run) -> StoredRun {
    StoredRun { plan: plan_hash(&run.plan), ..history::of_run(run, crate::books::headline) }
}
