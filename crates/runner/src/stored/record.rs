//! What a record of the store is, whatever its kind.

use narrows_model::run::history::StoredRun;
use narrows_render::AnyDocument;
use narrows_store::Error;
use ring::digest::{SHA256, digest};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::any::Any;

/// A kind of record.
#[derive(Debug)]
pub struct Kind {
    /// As in the store.
    pub(crate) word: &'static str,
    /// What makes it.
    pub(crate) command: &'static str,
    /// The record of JSON; the id is for errors.
    pub(crate) read: fn(&[u8], &str) -> Result<Content, Error>,
}

/// A record that the store keeps. `By`: a type of the crate that implements it, where the record is of another crate.
pub trait Record<By = ()>: Serialize + DeserializeOwned + 'static {
    /// As in the store.
    const KIND: &'static str;
    /// What makes it, after `narrows`.
    const COMMAND: &'static str;

    /// What it is listed with; its id, time, user, tags and program are set by who puts it there.
    fn listed(&self) -> StoredRun;

    /// The report of it; `None` where nothing was measured.
    fn report(self: Box<Self>) -> Option<Box<dyn AnyDocument>>;

    /// It, of its JSON.
    /// Errors: the JSON is none of it.
    fn read(json: &[u8], id: &str) -> Result<Self, Error> {
        serde_json::from_slice(json).map_err(|error| Error::Damaged(id.to_owned(), error.to_string()))
    }
}

/// The report of a record of the type that it was made for.
type Report = fn(Box<dyn Any>) -> Option<Box<dyn AnyDocument>>;

/// What a run of the store holds: a record of any kind.
pub struct Content {
    record: Box<dyn Any>,
    report: Report,
}

impl Content {
    /// A record, and its report.
    pub(super) fn new<R: Any>(record: R, report: Report) -> Self {
        Self { record: Box::new(record), report }
    }

    /// As [`Record::report`].
    pub fn report(self) -> Option<Box<dyn AnyDocument>> {
        (self.report)(self.record)
    }

    /// The record, if it is of this type.
    pub fn get<R: Any>(&self) -> Option<&R> {
        self.record.downcast_ref()
    }

    /// As [`Self::get`], by value.
    pub fn take<R: Any>(self) -> Option<Box<R>> {
        self.record.downcast().ok()
    }
}

/// The kind of these records.
pub const fn of<By, R: Record<By>>() -> Kind {
    let read = |json: &[u8], id: &str| Ok(Content::new(R::read(json, id)?, |it| it.downcast::<R>().ok()?.report()));
    Kind { word: R::KIND, command: R::COMMAND, read }
}

/// 12 hexadecimal digits of the SHA-256 of a plan's JSON.
pub fn plan_hash(plan: &impl Serialize) -> String {
    let json = serde_json::to_vec(plan).unwrap_or_default();
    digest(&SHA256, &json).as_ref().iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}
