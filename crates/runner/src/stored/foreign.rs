//! Results of other programs as runs of the store: reports of iperf3, columns of numbers, and directories of such files, one per
//! configuration. What is not in a file stays unknown. The id is made of the content, so a file is taken in once.

use super::record::{Content, Kind, plan_hash};
use narrows_model::Unit;
use narrows_model::run::history::{Headline, StoredRun};
use narrows_model::words::figures::float;
use narrows_render::style::Style;
use narrows_render::{AnyDocument, Format};
use narrows_store::{Error, Store};
use narrows_sys::files;
use narrows_wire::columns::Columns;
use narrows_wire::iperf3_report::{self, Report, Sender, Start, Sum};
use ring::digest::{SHA256, digest};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::Path;

/// The maximum size of a file of other programs (64 MiB).
const FILE_MAX: u64 = 64 << 20;
/// The maximum number of values of a file.
const VALUES_MAX: usize = 10_000;

/// What an import did.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Runs that were taken in.
    pub new: u64,
    /// Runs that were there already.
    pub known: u64,
    /// Files and lines that are no runs, each with the reason.
    pub failed: Vec<String>,
}

/// How numbers are listed.
#[derive(Debug, Clone)]
pub struct As {
    /// The name of the figure.
    pub name: String,
    pub unit: Unit,
    /// Tags of every run.
    pub tags: Vec<String>,
}

impl Default for As {
    fn default() -> Self {
        Self { name: "value".to_owned(), unit: Unit::Number, tags: Vec::new() }
    }
}

/// A number of a file, as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Number {
    pub figure: Headline,
    /// The name of its file, and of the file's directory for an archive.
    pub file: String,
    /// Which number of the file, from 1.
    pub nth: usize,
}

/// The kinds of what is taken in.
const IPERF3: &str = "iperf3";
const NUMBER: &str = "number";
pub static KINDS: [Kind; 2] = [kept::<Report>(IPERF3), kept::<Number>(NUMBER)];

/// JSON that is kept as another program wrote it, if it can be read as this.
const fn kept<T: DeserializeOwned>(word: &'static str) -> Kind {
    let read = |json: &[u8], id: &str| -> Result<Content, Error> {
        let value = serde_json::from_slice::<T>(json).and_then(|_| serde_json::from_slice(json));
        let damaged = |error: serde_json::Error| Error::Damaged(id.to_owned(), error.to_string());
        Ok(Content::new(Kept(value.map_err(damaged)?), |it| Some(it.downcast::<Kept>().ok()?)))
    };
    Kind { word, command: "store import", read }
}

/// JSON of another program.
struct Kept(serde_json::Value);

impl AnyDocument for Kept {
    fn about(&self) -> (&'static str, Vec<Format>) {
        ("the report of another program, which is kept as it is,", vec![Format::Text, Format::Json])
    }

    fn write(&self, format: Format, _: Style) -> serde_json::Result<Option<String>> {
        self.about().1.contains(&format).then(|| serde_json::to_string_pretty(&self.0)).transpose()
    }
}

/// Takes in a file: reports if it begins with a brace, else numbers. `name`: what it is called in the store. `of`: its configuration.
/// Errors: the store cannot be written. What is wrong with the file is added to `done`.
pub(super) fn import(
    store: &mut Store,
    path: &Path,
    name: &str,
    of: Option<&str>,
    how: &As,
    done: &mut Imported,
) -> Result<(), Error> {
    let failed = |why: String| format!("cannot import {}: {why}", path.display());
    let read = || -> Result<_, String> {
        let bytes = files::read(path, FILE_MAX).map_err(|error| error.to_string())?;
        let modified = files::modified_unix_us(path).map_err(|error| error.to_string())?;
        let mut runs = runs(&bytes, name, modified, how).map_err(failed)?;
        let tags: Vec<String> = how.tags.iter().cloned().chain(of.map(tag)).collect();
        runs.iter_mut().for_each(|(run, ..)| run.tags.clone_from(&tags));
        Ok(runs)
    };
    let runs = match read() {
        Ok(runs) => runs,
        Err(why) => {
            done.failed.push(why);
            return Ok(());
        }
    };
    let (mut new, mut ids) = (Vec::new(), BTreeSet::new());
    for run in runs {
        if store.has(&run.0.id)? || !ids.insert(run.0.id.clone()) {
            done.known += 1;
        } else {
            new.push(run);
        }
    }
    done.new += new.len() as u64;
    store.put_all(new.into_iter())
}

/// A configuration as a tag.
fn tag(of: &str) -> String {
    of.chars().take(60).map(|c| if c.is_alphanumeric() || "-_.:/+=@".contains(c) { c } else { '_' }).collect()
}

type Runs = Vec<(StoredRun, &'static str, Vec<u8>)>;

fn runs(bytes: &[u8], name: &str, modified: u64, how: &As) -> Result<Runs, String> {
    match bytes.iter().find(|it| !it.is_ascii_whitespace()) {
        None => Err("it is empty".to_owned()),
        Some(b'{') => {
            let reports = iperf3_report::read(bytes).map_err(|error| format!("{error}; give a file of `iperf3 -J`"))?;
            let json = |range: std::ops::Range<usize>| bytes.get(range).unwrap_or_default().trim_ascii().to_vec();
            Ok(reports.into_iter().map(|(it, range)| of_report(&it, json(range), modified)).collect())
        }
        Some(_) => numbers(bytes, name, modified, how),
    }
}

fn numbers(bytes: &[u8], name: &str, modified: u64, how: &As) -> Result<Runs, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "neither JSON nor text".to_owned())?;
    let values = Columns::default().read(text).map_err(|error| error.to_string())?;
    if values.is_empty() || values.len() > VALUES_MAX {
        return Err(format!("it has {} numbers; the limits are 1 and {VALUES_MAX}", values.len()));
    }
    let whole = digest(&SHA256, &[name.as_bytes(), &[0], how.name.as_bytes(), &[0], bytes].concat());
    let run = |(at, value): (usize, f64)| {
        let figure = Headline::new(how.name.clone(), value, how.unit);
        let number = Number { figure: figure.clone(), file: name.to_owned(), nth: at + 1 };
        let json = serde_json::to_vec(&number).map_err(|error| error.to_string())?;
        let id = format!("import-{}-{}", hex(whole.as_ref()), at + 1);
        let run = StoredRun { id, started_unix_us: modified, ..listed("import", vec![figure]) };
        Ok((run, NUMBER, json))
    };
    values.into_iter().enumerate().map(run).collect()
}

fn of_report(report: &Report, json: Vec<u8>, modified: u64) -> (StoredRun, &'static str, Vec<u8>) {
    let start = report.start.clone().unwrap_or_default();
    let seconds = start.timestamp.as_ref().and_then(|it| it.timesecs);
    let host = |place: &Option<iperf3_report::Place>| place.as_ref().and_then(|it| it.host.clone()).unwrap_or_default();
    let own = own_name(&start).unwrap_or_default();
    let is_client = start.accepted_connection.is_none();
    let run = StoredRun {
        id: format!("iperf3-{}", hex(digest(&SHA256, &json).as_ref())),
        started_unix_us: seconds.map_or(modified, |it| it.saturating_mul(1_000_000)),
        client: if is_client { own.clone() } else { host(&start.accepted_connection) },
        server: host(&start.connecting_to),
        server_name: if is_client { String::new() } else { own },
        family: report.family().unwrap_or_default().to_owned(),
        plan: start.test_start.as_ref().map(plan_hash).unwrap_or_default(),
        made_by: start.version.clone().unwrap_or_default(),
        verdict: if report.error.is_some() { "failed" } else { "complete" }.to_owned(),
        ..listed("iperf3", figures(report))
    };
    (run, IPERF3, json)
}

/// The name of the host that wrote the report: the second word of `uname -a`.
fn own_name(start: &Start) -> Option<String> {
    let words: Vec<&str> = start.system_info.as_ref()?.split_whitespace().collect();
    (words.len() >= 4).then(|| words[1].to_owned())
}

fn figures(report: &Report) -> Vec<Headline> {
    let end = &report.end;
    let way = match report.is_reverse() {
        Some(true) => "down",
        Some(false) => "up",
        None => "",
    };
    let figure = |name: &str, of: &str, value: Option<f64>, unit| {
        value.map(|value| Headline::new(format!("{name} {of}").trim_end(), value, unit))
    };
    let rate = |of: &str, sum: Option<&Sum>| figure("goodput", of, sum?.bits_per_second, Unit::BitsPerSecond);
    let total = end.sum_received.as_ref().or(end.sum.as_ref());
    let lost = total.and_then(|it| it.lost_percent).or_else(|| end.sum.as_ref()?.lost_percent);
    let again = |of: &str, sum: Option<&Sum>| figure("retransmits", of, sum?.retransmits.map(float), Unit::Count);
    // The mean over the streams of one direction; with --bidir iperf3 does not say whose RTT it is.
    let senders: Vec<_> = end.streams.iter().filter_map(|it| it.sender.as_ref()).collect();
    let one_way = end.sum_sent_bidir_reverse.is_none();
    let rtt = |name: &str, of: fn(&Sender) -> Option<u64>| {
        let all: Vec<f64> = senders.iter().filter_map(|it| of(it).filter(|us| *us > 0)).map(float).collect();
        let mean = (one_way && !all.is_empty()).then(|| all.iter().sum::<f64>() / float(all.len() as u64));
        figure(name, way, mean, Unit::Microseconds)
    };
    let (own, far) = end.cpu_utilization_percent.as_ref().map_or((None, None), |it| (it.host_total, it.remote_total));
    let is_server = report.start.as_ref().is_some_and(|it| it.accepted_connection.is_some());
    let (client, server) = if is_server { (far, own) } else { (own, far) };
    let cores = |name: &str, percent: Option<f64>| figure(name, "", percent.map(|it| it / 100.0), Unit::Number);
    let found = [
        rate(way, total),
        rate("down", end.sum_received_bidir_reverse.as_ref()),
        figure("loss", "", lost.map(|percent| percent / 100.0), Unit::Fraction),
        again(way, end.sum_sent.as_ref()),
        again("down", end.sum_sent_bidir_reverse.as_ref()),
        rtt("min RTT", |it| it.min_rtt),
        rtt("mean RTT", |it| it.mean_rtt),
        figure(
            "jitter",
            way,
            total.and_then(|it| it.jitter_ms).or_else(|| end.sum.as_ref()?.jitter_ms).map(|ms| ms * 1e3),
            Unit::Microseconds,
        ),
        cores("client busy cores", client),
        cores("server busy cores", server),
    ];
    found.into_iter().flatten().filter(|it| it.value.is_finite()).collect()
}

fn listed(command: &str, figures: Vec<Headline>) -> StoredRun {
    StoredRun { verdict: "complete".to_owned(), ..narrows_views::history::empty(command, figures) }
}

/// 16 hexadecimal digits.
fn hex(hash: &[u8]) -> String {
    hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
