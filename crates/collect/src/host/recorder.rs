//! Writes a capture: every file and answer that the collectors read, without what identifies a person's machines.

use super::recorded::{CaptureError, FORMAT, Meta, inside};
use super::scrub::Scrub;
use super::{Host, Recorded};
use crate::kernel::{Answer, Question};
use crate::{Missing, counters, inventory};
use narrows_model::Snapshot;
use narrows_sys::files;
use serde::Serialize;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;

const HOST_NAME: &str = "/proc/sys/kernel/hostname";

/// Identifying data that a capture keeps. By default none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Keep {
    /// IP addresses; otherwise each is replaced by a documentation address (RFC 5737, RFC 3849), consistently.
    pub addresses: bool,
    /// The host's name; otherwise `host`.
    pub host_name: bool,
}

/// A new capture, and the facts that the collectors read while it was made.
#[derive(Debug, Clone)]
pub struct Recording {
    pub capture: Recorded,
    /// The host's inventory, with the names and addresses that the capture may lack.
    pub inventory: Snapshot,
    pub counters: Snapshot,
}

/// A host that records every query, and always gives the same answer to the same query.
struct Recorder<'a> {
    host: &'a dyn Host,
    taken_unix_us: u64,
    files: RefCell<BTreeMap<String, Result<String, Missing>>>,
    directories: RefCell<BTreeMap<String, Result<Vec<String>, Missing>>>,
    links: RefCell<BTreeMap<String, Result<String, Missing>>>,
    answers: RefCell<BTreeMap<String, Result<Answer, Missing>>>,
}

fn once<T: Clone>(
    memory: &RefCell<BTreeMap<String, Result<T, Missing>>>,
    key: String,
    ask: impl FnOnce() -> Result<T, Missing>,
) -> Result<T, Missing> {
    if let Some(known) = memory.borrow().get(&key) {
        return known.clone();
    }
    let answer = ask();
    memory.borrow_mut().insert(key, answer.clone());
    answer
}

impl Host for Recorder<'_> {
    fn read(&self, path: &str) -> Result<String, Missing> {
        once(&self.files, path.to_owned(), || self.host.read(path))
    }

    fn list(&self, path: &str) -> Result<Vec<String>, Missing> {
        once(&self.directories, path.to_owned(), || self.host.list(path))
    }

    fn target(&self, path: &str) -> Result<String, Missing> {
        once(&self.links, path.to_owned(), || self.host.target(path))
    }

    fn ask(&self, question: &Question) -> Result<Answer, Missing> {
        once(&self.answers, question.file(), || self.host.ask(question))
    }

    fn taken_unix_us(&self) -> u64 {
        self.taken_unix_us
    }

    fn peer(&self) -> Option<IpAddr> {
        self.host.peer()
    }
}

/// Captures `host` towards `peer` into a new directory and opens it.
///
/// It holds each file and answer that a collector read, and the reason for each failure. It holds no hardware address
/// beyond the vendor's part, no serial number and no container name; `keep` decides about IP addresses and the host's
/// name.
pub fn record(host: &dyn Host, peer: Option<IpAddr>, directory: &Path, keep: Keep) -> Result<Recording, CaptureError> {
    let recorder = Recorder {
        host,
        taken_unix_us: host.taken_unix_us(),
        files: RefCell::default(),
        directories: RefCell::default(),
        links: RefCell::default(),
        answers: RefCell::default(),
    };
    let (inventory, counters) = (inventory(&recorder, peer), counters(&recorder, peer));
    Writer { directory, keep, scrub: Scrub::new(keep.addresses) }.write(recorder, peer)?;
    Ok(Recording { capture: Recorded::open(directory)?, inventory, counters })
}

struct Writer<'a> {
    directory: &'a Path,
    keep: Keep,
    scrub: Scrub,
}

impl Writer<'_> {
    fn write(mut self, recorder: Recorder<'_>, peer: Option<IpAddr>) -> Result<(), CaptureError> {
        let mut meta = Meta {
            format: FORMAT.to_owned(),
            taken_unix_us: recorder.taken_unix_us,
            peer: peer.or(recorder.peer()).map(|peer| self.scrub.address(peer)),
            missing: BTreeMap::new(),
            directories: BTreeMap::new(),
            links: BTreeMap::new(),
        };
        for (name, answer) in recorder.answers.into_inner() {
            match answer {
                Ok(answer) => self.answer(&name, &answer)?,
                Err(why) => self.missing(&mut meta, &format!("kernel/{name}"), &why),
            }
        }
        for (path, text) in recorder.files.into_inner() {
            match text {
                Ok(text) => self.file(&path, &text)?,
                Err(why) => self.missing(&mut meta, &path, &why),
            }
        }
        for (path, names) in recorder.directories.into_inner() {
            match names {
                Ok(names) => {
                    let names = names.iter().map(|name| self.scrub.text(name)).collect();
                    meta.directories.insert(self.scrub.text(&path), names);
                }
                Err(why) => self.missing(&mut meta, &path, &why),
            }
        }
        for (path, target) in recorder.links.into_inner() {
            match target {
                Ok(target) => {
                    meta.links.insert(self.scrub.text(&path), self.scrub.text(&target));
                }
                Err(why) => self.missing(&mut meta, &path, &why),
            }
        }
        // Last: a directory without it is not a capture.
        write(self.directory, "meta.json", &json("meta.json", &meta)?)
    }

    fn missing(&mut self, meta: &mut Meta, what: &str, why: &Missing) {
        let why = self.scrub.sentence(&why.to_string());
        meta.missing.insert(self.scrub.text(what), why);
    }

    fn file(&self, path: &str, text: &str) -> Result<(), CaptureError> {
        let text = if path == HOST_NAME && !self.keep.host_name { "host\n".to_owned() } else { self.scrub.text(text) };
        write(&self.directory.join("files"), &self.scrub.text(path), text.as_bytes())
    }

    fn answer(&mut self, name: &str, answer: &Answer) -> Result<(), CaptureError> {
        let shown = format!("kernel/{name}");
        let mut value =
            serde_json::to_value(answer).map_err(|source| CaptureError::Json { path: shown.clone(), source })?;
        self.scrub.json(&mut value);
        write(&self.directory.join("kernel"), &self.scrub.text(name), &json(&shown, &value)?)
    }
}

fn json(name: &str, value: &impl Serialize) -> Result<Vec<u8>, CaptureError> {
    let mut text =
        serde_json::to_vec_pretty(value).map_err(|source| CaptureError::Json { path: name.to_owned(), source })?;
    text.push(b'\n');
    Ok(text)
}

fn write(below: &Path, path: &str, bytes: &[u8]) -> Result<(), CaptureError> {
    let file = inside(below, path).ok_or_else(|| CaptureError::Name { name: path.to_owned() })?;
    if let Some(parent) = file.parent() {
        files::make_directory(parent)?;
    }
    Ok(files::write_whole(&file, bytes, 0o600)?)
}
