//! Records into the store, each with what it is listed with.

use super::{Begun, Error, MADE_BY, Store, local, server, store, why};
use narrows_model::forwarding::ForwardingRecord;
use narrows_model::forwarding::ab::AbRecord;
use narrows_model::load::frames_report::FramesReport;
use narrows_model::load::responsiveness::ResponsivenessRecord;
use narrows_model::load::stamp::StampReport;
use narrows_model::run::command::CommandRecord;
use narrows_model::run::history::StoredRun;
use narrows_model::{Run, TraceRecord};
use narrows_store::Kind;
use narrows_views::history;
use ring::digest::{SHA256, digest};
use serde::Serialize;

/// Puts a run into the store, or replaces it there, with tags; all or nothing. Call it after every step of a run.
pub fn keep(run: &Run, tags: &[String]) -> Result<(), Error> {
    let entry = StoredRun { who: who(), tags: tags.to_vec(), ..listed(run) };
    put_new(&entry, Kind::Run, run)
}

/// Puts a run into this store.
pub(super) fn put_run(store: &mut Store, run: &Run) -> Result<(), Error> {
    put(store, &StoredRun { who: who(), ..listed(run) }, Kind::Run, run)
}

/// What a run is listed with, without its user.
pub(crate) fn listed(run: &Run) -> StoredRun {
    StoredRun { plan: plan_hash(&run.plan), ..history::of_run(run, crate::books::headline) }
}

/// Puts a run of another program into the store, with tags. Runs of the same command have the same plan.
pub fn keep_command(record: &CommandRecord, tags: &[String]) -> Result<(), Error> {
    let plan = plan_hash(&(&record.command, &record.pattern));
    let entry = StoredRun { who: who(), tags: tags.to_vec(), plan, ..history::of_command(record) };
    put_new(&entry, Kind::Command, record)
}

/// Puts a forwarding benchmark into the store.
pub fn keep_forwarding(record: &ForwardingRecord, begun: &Begun) -> Result<(), Error> {
    let entry = made(history::of_forwarding(record), begun, plan_hash(&record.plan));
    put_new(&entry, Kind::Forwarding, record)
}

/// As [`keep_forwarding`], of two configurations.
pub fn keep_pair(record: &AbRecord, begun: &Begun) -> Result<(), Error> {
    let entry = made(history::of_pair(record), begun, plan_hash(&record.ab));
    put_new(&entry, Kind::ForwardingPair, record)
}

/// Puts a report of raw frames into the store. Runs with the same device, frames and load have the same plan.
pub fn keep_frames(report: &FramesReport, begun: &Begun) -> Result<(), Error> {
    let plan = plan_hash(&report.sent.as_ref().map(|it| (&it.device, &it.format, &it.load)));
    put_new(&made(history::of_frames(report), begun, plan), Kind::Frames, report)
}

/// Puts a test of responsiveness into the store.
pub fn keep_responsiveness(record: &ResponsivenessRecord, begun: &Begun) -> Result<(), Error> {
    let entry = made(history::of_responsiveness(record), begun, plan_hash(&record.plan));
    put_new(&entry, Kind::Responsiveness, record)
}

/// Puts the report of a STAMP session into the store.
pub fn keep_stamp(report: &StampReport, begun: &Begun) -> Result<(), Error> {
    put_new(&made(history::of_stamp(report), begun, plan_hash(&report.plan)), Kind::Stamp, report)
}

/// Puts a trace into the store.
pub fn keep_trace(record: &TraceRecord, begun: &Begun) -> Result<(), Error> {
    put_new(&made(history::of_trace(record), begun, plan_hash(&record.plan)), Kind::Trace, record)
}

fn made(entry: StoredRun, begun: &Begun, plan: String) -> StoredRun {
    StoredRun {
        id: begun.id.clone(),
        started_unix_us: begun.unix_us,
        who: who(),
        plan,
        tags: begun.tags.clone(),
        made_by: MADE_BY.to_owned(),
        ..entry
    }
}

fn put(store: &mut Store, entry: &StoredRun, kind: Kind, record: &impl Serialize) -> Result<(), Error> {
    store.put(entry, kind, &json(entry, record)?)
}

fn json(entry: &StoredRun, record: &impl Serialize) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(record).map_err(|error| Error::Encode(entry.id.clone(), error.to_string()))
}

/// Puts what was just measured. If a server does not take it, it waits in the local store, as what follows from this process does: a
/// measurement does not wait for the server again and again.
fn put_new(entry: &StoredRun, kind: Kind, record: &impl Serialize) -> Result<(), Error> {
    let json = json(entry, record)?;
    let Some(server) = server() else { return store()?.put(entry, kind, &json) };
    if why().is_none() {
        match store().and_then(|mut store| store.put(entry, kind, &json)) {
            Err(error) => *why() = Some(error.to_string()),
            done => return done,
        }
    }
    local()?.put_waiting(entry, kind, &json, &server)
}

/// The user, by the environment.
fn who() -> String {
    let named = ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok().filter(|word| !word.is_empty()));
    named.unwrap_or_else(|| if narrows_sys::process::is_root() { "root".to_owned() } else { String::new() })
}

/// 12 hexadecimal digits of the SHA-256 of a plan's JSON.
pub(crate) fn plan_hash(plan: &impl Serialize) -> String {
    let json = serde_json::to_vec(plan).unwrap_or_default();
    digest(&SHA256, &json).as_ref().iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}
