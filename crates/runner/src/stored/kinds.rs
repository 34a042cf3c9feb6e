//! The kinds of records that the store keeps: each is a line of a table, and what it is listed with.

use super::foreign;
use super::record::{Kind, Record, of, plan_hash};
use crate::{responsiveness, trace};
use narrows_model::load::frames_report::FramesReport;
use narrows_model::load::responsiveness::ResponsivenessRecord;
use narrows_model::load::stamp::StampReport;
use narrows_model::run::campaign::CampaignReport;
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
pub static KINDS: [Kind; 8] = [
    of::<_, Run>(),
    of::<_, FramesReport>(),
    of::<_, ResponsivenessRecord>(),
    of::<_, StampReport>(),
    of::<_, TraceRecord>(),
    of::<_, CommandRecord>(),
    of::<_, CampaignReport>(),
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

/// Records: kind and command of each, what tells its plan from others, what else it is listed with, its report.
macro_rules! records {
    ($($record:ty, $kind:literal, $command:literal, |$it:ident| $plan:expr, $listed:path, $report:expr;)*) => {
        $(impl Record for $record {
            const KIND: &'static str = $kind;
            const COMMAND: &'static str = $command;

            fn listed(&self) -> StoredRun {
                let $it = self;
                StoredRun { plan: plan_hash(&$plan), ..$listed($it) }
            }

            fn report(self: Box<Self>) -> Option<Box<dyn AnyDocument>> {
                let $it = self;
                Some($report)
            }
        })*
    };
}

records! {
    FramesReport, "frames", "generate",
        |it| it.sent.as_ref().map(|sent| (&sent.device, &sent.format, &sent.load)), history::of_frames, it;
    ResponsivenessRecord, "responsiveness", "measure responsiveness",
        |it| it.plan, history::of_responsiveness, Box::new(responsiveness::report(&it));
    StampReport, "stamp", "measure stamp", |it| it.plan, history::of_stamp, it;
    TraceRecord, "trace", "trace", |it| it.plan, history::of_trace, Box::new(trace::report(&it));
    CommandRecord, "command", "campaign", |it| (&it.command, &it.pattern), history::of_command, it;
    CampaignReport, "campaign", "campaign", |it| it.tag, history::of_campaign, it;
    MeshRecord, "mesh", "mesh",
        |it| (&it.plan, it.members.iter().map(|member| member.name.as_str()).collect::<Vec<_>>()),
        mesh::stored, Box::new(mesh::report(&it));
}

/// What a run is listed with, without its user.
pub(crate) fn listed(run: &Run) -> StoredRun {
    StoredRun { plan: plan_hash(&run.plan), ..history::of_run(run, crate::books::headline) }
}
