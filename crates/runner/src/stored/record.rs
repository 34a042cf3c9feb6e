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
pub(crate) struct Kind {
    /// As in the store.
    pub(crate) word: &'static str,
    /// What makes it.
    pub(crate) command: &'static str,
    /// The record of JSON; the id is for errors.
    pub(crate) read: fn(&[u8], &str) -> Result<Content, Error>,
}

/// A record that the store keeps.
pub trait Record: Serialize + DeserializeOwned + 'static {
    /// As in the store.
    const KIND: &'static str;
    /// What makes it, after `narrows`.
    const COMMAND: &'static str;

    /// What it is listed with; its id, time, user, tags and program are set by who puts it there.
    fn listed(&self) -> StoredRun;

    /// The report of it; `None` where nothing was measured.
    fn report(self: Box<Self>) -> Option<Box<dyn AnyDocument>>;

    /// It, of its JSON.
    ///
    /// # Errors
    /// The JSON is none of it.
    fn read(json: &[u8], id: &str) -> Result<Self, Error> {
        serde_json::from_slice(json).map_err(|error| Error::Damaged(id.to_owned(), error.to_string()))
    }
}

/// A record of any kind.
pub trait AnyRecord: Any {
    /// As [`Record::report`].
    fn report(self: Box<Self>) -> Option<Box<dyn AnyDocument>>;
}

/// What a run of the store holds.
pub type Content = Box<dyn AnyRecord>;

impl<R: Record> AnyRecord for R {
    fn report(self: Box<Self>) -> Option<Box<dyn AnyDocument>> {
        Record::report(self)
    }
}

impl dyn AnyRecord {
    /// It, if it is of this type.
    pub fn get<R: Record>(&self) -> Option<&R> {
        (self as &dyn Any).downcast_ref()
    }

    /// As [`Self::get`], by value.
    pub fn take<R: Record>(self: Box<Self>) -> Option<Box<R>> {
        (self as Box<dyn Any>).downcast().ok()
    }
}

pub(super) const fn of<R: Record>() -> Kind {
    Kind { word: R::KIND, command: R::COMMAND, read: |json, id| Ok(Box::new(R::read(json, id)?)) }
}

/// 12 hexadecimal digits of the SHA-256 of a plan's JSON.
pub(crate) fn plan_hash(plan: &impl Serialize) -> String {
    let json = serde_json::to_vec(plan).unwrap_or_default();
    digest(&SHA256, &json).as_ref().iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}
