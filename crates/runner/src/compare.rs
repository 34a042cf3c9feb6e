//! What `narrows compare` compares: runs of the store, run files, plain columns of numbers.

use crate::stored::{self, Kinds, LoadError, Record as _, StoreError, exported};
use narrows_model::Run;
use narrows_model::run::campaign::CampaignReport;
use narrows_model::run::compare::CompareReport;
use narrows_model::run::history::StoredRun;
use narrows_model::run::ministat::MinistatReport;
pub use narrows_stats::ministat::{SETS, has_level};
use narrows_store::{Filter, LARGEST, Store, compat};
use narrows_sys::files;
use narrows_views::compare as view;
pub use narrows_views::compare::{Options, SIDES_MAX};
use narrows_views::compare::{Side, Values};
pub use narrows_wire::columns::Columns;
use std::io::Read as _;
use std::path::Path;
use thiserror::Error;

/// The most runs of one side.
const RUNS_MAX: u64 = 10_000;

/// Why sides cannot be compared.
#[derive(Debug, Error)]
pub enum CompareError {
    /// The content of an operand, or how the operands go together.
    #[error("{0}")]
    Invalid(String),
    /// No run has the tag.
    #[error("cannot find runs with the tag `{0}`; `narrows history` lists the tags")]
    NoTag(String),
    /// The word is neither a file nor a run.
    #[error("cannot find `{0}`: neither a file nor a run id nor tag:NAME; `narrows history` lists the runs")]
    Unknown(String),
    /// A file or the store cannot be read.
    #[error(transparent)]
    Stored(#[from] StoreError),
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] narrows_sys::Error),
    /// A run cannot be read.
    #[error(transparent)]
    Run(#[from] LoadError),
}

type Result<T> = std::result::Result<T, CompareError>;

/// Compares the operands of the user with the first one.
pub fn compare(operands: &[String], columns: &Columns, options: &Options, kinds: Kinds) -> Result<CompareReport> {
    let sides: Vec<Loaded> = operands.iter().map(|word| side(word, columns)).collect::<Result<_>>()?;
    let views: Vec<Side> = sides.iter().map(|it| it.side.clone()).collect();
    let mut report = view::compare(&views, options).map_err(CompareError::Invalid)?;
    let first = sides[0].first_run(kinds);
    let others = sides.iter().enumerate().skip(1);
    let others: Vec<_> = others.filter_map(|(at, side)| Some((at, side.first_run(kinds)?))).collect();
    if let Some(first) = first {
        view::inventory(&mut report, &first, &others);
    }
    Ok(report)
}

/// The operands as sets of ministat: plain columns of numbers. Without operands: standard input.
pub fn ministat(operands: &[String], columns: &Columns, level_percent: f64) -> Result<MinistatReport> {
    let read = |word: &String| {
        let name = if word == "-" { "<stdin>".to_owned() } else { word.clone() };
        Ok((name, numbers(word, &bytes(word)?, columns)?))
    };
    let sets = operands.iter().map(read).collect::<Result<_>>()?;
    view::ministat(sets, level_percent).map_err(|name| {
        CompareError::Invalid(format!("cannot compare {name}: it has fewer than 3 numbers; ministat needs 3"))
    })
}

/// A side, and where its first run is.
struct Loaded {
    side: Side,
    /// A run that was read from a file.
    read: Option<Run>,
}

impl Loaded {
    /// The first run with its inventory, for runs that have one.
    fn first_run(&self, kinds: Kinds) -> Option<std::result::Result<Run, String>> {
        if let Some(run) = &self.read {
            return Some(Ok(run.clone()));
        }
        let Values::Runs(runs) = &self.side.values else { return None };
        Some(stored::with_inventory(&runs.first()?.id, kinds))
    }
}

fn side(word: &str, columns: &Columns) -> Result<Loaded> {
    let named = |values| Side { name: word.to_owned(), values };
    if let Some(tag) = word.strip_prefix("tag:") {
        let mut runs = match stored::existing_store()? {
            Some(store) => store.list(&Filter { tag: Some(tag.to_owned()), ..Filter::default() }, 0, RUNS_MAX)?,
            None => Vec::new(),
        };
        // The report of a campaign has the tag of the runs that it sums up.
        runs.retain(|run| run.command != CampaignReport::COMMAND || !tag.starts_with("campaign:"));
        runs.reverse();
        if runs.is_empty() {
            return Err(CompareError::NoTag(tag.to_owned()));
        }
        return Ok(Loaded { side: named(Values::Runs(runs)), read: None });
    }
    if word == "-" || files::exists(Path::new(word)) {
        return of_file(word, columns);
    }
    let store = stored::existing_store()?;
    let mut runs = Vec::new();
    for id in word.split(',') {
        let found = store.as_ref().map(|store| by_word(store, id)).transpose()?.flatten();
        runs.push(found.ok_or_else(|| CompareError::Unknown(id.to_owned()))?);
    }
    Ok(Loaded { side: named(Values::Runs(runs)), read: None })
}

/// A run by its id, the start of it, or `last~N`.
fn by_word(store: &Store, word: &str) -> Result<Option<StoredRun>> {
    let Some(id) = store.named(word)? else { return Ok(None) };
    Ok(store.list(&Filter { id: Some(id), ..Filter::default() }, 0, 1)?.pop())
}

/// A file of a run, of runs as JSON lines, of a JSON list of numbers, or of plain columns.
fn of_file(word: &str, columns: &Columns) -> Result<Loaded> {
    let bytes = bytes(word)?;
    let start = bytes.iter().copied().find(|it| !it.is_ascii_whitespace());
    let name = word.to_owned();
    if start == Some(b'[') {
        let values: Vec<f64> = serde_json::from_slice(&bytes)
            .map_err(|error| CompareError::Invalid(format!("cannot read {word} as a list of numbers: {error}")))?;
        return Ok(Loaded { side: Side { name, values: Values::Numbers(values) }, read: None });
    }
    if start != Some(b'{') {
        let values = Values::Numbers(numbers(word, &bytes, columns)?);
        return Ok(Loaded { side: Side { name, values }, read: None });
    }
    let path = Path::new(word);
    let parts: Vec<&[u8]> = match compat::read(&bytes, path) {
        Ok(_) => vec![&bytes],
        Err(_) if exported::entry(&bytes).is_some() => vec![&bytes],
        Err(_) if path.extension().is_some_and(|it| it == "jsonl" || it == "ndjson") || word == "-" => {
            bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()).collect()
        }
        Err(error) => return Err(error.into()),
    };
    let (mut runs, mut read) = (Vec::new(), None);
    for part in parts {
        let Some(entry) = exported::entry(part) else {
            let run = compat::read(part, path)?;
            runs.push(stored::listed(&run));
            read.get_or_insert(run);
            continue;
        };
        runs.push(entry);
    }
    Ok(Loaded { side: Side { name, values: Values::Runs(runs) }, read })
}

fn bytes(word: &str) -> Result<Vec<u8>> {
    if word != "-" {
        return Ok(files::read(Path::new(word), LARGEST)?);
    }
    let mut bytes = Vec::new();
    let failed = |why: String| CompareError::Invalid(format!("cannot read standard input: {why}"));
    std::io::stdin().lock().take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| failed(error.to_string()))?;
    if bytes.len() as u64 > LARGEST {
        return Err(failed(format!("it is larger than {LARGEST} bytes")));
    }
    Ok(bytes)
}

fn numbers(word: &str, bytes: &[u8], columns: &Columns) -> Result<Vec<f64>> {
    columns
        .read(&String::from_utf8_lossy(bytes))
        .map_err(|error| CompareError::Invalid(format!("cannot read {word} as a column of numbers: {error}")))
}
