//! The plan file of a campaign: TOML in, a [`CampaignPlan`] or everything that is wrong with it out.

mod factor;
mod load;
mod reader;

pub(super) use load::pattern;
pub use load::{CommandLoad, Flag, Load};
pub use reader::MAX_PROBLEMS;

use super::schedule::{Design, cells};
use factor::Within;
use narrows_model::{Place, Setting, TcpPlan};
use narrows_sys::{Error, files};
use narrows_wire::problem::Problem;
use reader::Reader;
use serde::Serialize;
use std::path::Path;
use toml::de::{DeTable, DeValue};

/// The most runs of one campaign.
pub const MAX_RUNS: usize = 10_000;
/// The designs by name.
const DESIGNS: [(&str, Design); 3] =
    [("full", Design::Full), ("fractional", Design::Fractional), ("one-at-a-time", Design::OneAtATime)];
/// The most factors of a plan.
const MAX_FACTORS: usize = 16;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CampaignPlan {
    pub name: String,
    /// The servers, as the user names them.
    pub hosts: Vec<String>,
    /// The load of each run, before the flags of a cell.
    pub load: Load,
    pub factors: Vec<Factor>,
    /// Which combinations are measured.
    pub design: Design,
    pub repetitions: usize,
    /// Of the random order.
    pub seed: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Factor {
    pub name: String,
    /// Its levels; the first one is the baseline.
    pub levels: Vec<Level>,
}

/// One level of a factor.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Level {
    /// As the user wrote it.
    pub name: String,
    /// What is set on the hosts, and rolled back after the run.
    pub settings: Vec<(Place, Setting)>,
    /// What is set in the load.
    pub flag: Option<Flag>,
    /// What a command sets.
    pub command: Option<CommandSetting>,
}

/// What a command on this host sets, for what narrows does not know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CommandSetting {
    /// Sets the value. `{host}` is the host of the run.
    pub set: Vec<String>,
    /// Prints the value before.
    pub read: Option<Vec<String>>,
    /// Rolls it back: `{before}` is what `read` printed. `None`: nothing does.
    pub restore: Option<Vec<String>>,
    /// The longest time of each command, milliseconds.
    pub limit_ms: u64,
}

impl CampaignPlan {
    /// The number of levels of each factor.
    pub fn levels(&self) -> Vec<usize> {
        self.factors.iter().map(|it| it.levels.len()).collect()
    }

    /// The levels of a cell.
    pub fn of_cell<'a>(&'a self, cell: &'a [usize]) -> impl DoubleEndedIterator<Item = (&'a Factor, &'a Level)> {
        self.factors.iter().zip(cell).map(|(factor, level)| (factor, &factor.levels[*level]))
    }

    /// A cell in words.
    pub fn words(&self, cell: &[usize]) -> String {
        let words: Vec<String> =
            self.of_cell(cell).map(|(factor, level)| format!("{}={}", factor.name, level.name)).collect();
        words.join(", ")
    }

    /// The load of a cell.
    pub fn load(&self, cell: &[usize]) -> Load {
        let mut load = self.load.clone();
        for flag in self.of_cell(cell).filter_map(|(_, level)| level.flag.as_ref()) {
            load.set(flag);
        }
        load
    }

    /// Whether a session with a server is needed: for a load of narrows, and for settings of a server.
    pub fn needs_server(&self) -> bool {
        matches!(self.load, Load::Narrows(_)) || self.sets(Place::Server)
    }

    /// Whether any level sets something on that host.
    pub fn sets(&self, place: Place) -> bool {
        let mut levels = self.factors.iter().flat_map(|it| &it.levels);
        levels.any(|it| it.settings.iter().any(|(at, _)| *at == place))
    }
}

/// The largest file of a plan, bytes.
const FILE_MAX: u64 = 256 << 10;

/// The text of a plan's file.
/// Errors: it cannot be read, is too large, or is no text.
pub fn read(path: &Path) -> Result<String, Error> {
    let no_text = |_| Error::new("read", path.display().to_string(), std::io::Error::other("it is not UTF-8 text"));
    String::from_utf8(files::read(path, FILE_MAX)?).map_err(no_text)
}

/// Reads a plan. `no_undo`: a command of a factor needs no way back.
/// Errors: everything that is wrong with it, in the order of the file.
pub fn parse(text: &str, no_undo: bool) -> Result<CampaignPlan, Vec<Problem>> {
    let mut reader = Reader::new(text);
    let (root, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        reader.note(error.span().map_or(0, |it| it.start), "", format!("invalid TOML: {}", error.message()));
    }
    let (mut name, mut hosts, mut factors) = (None, Vec::new(), Vec::new());
    let (mut repetitions, mut seed, mut design) = (4, 1, Design::Full);
    // Flags of the factors depend on the load.
    let load = match root.get_ref().get("load").and_then(|it| Some((it.span().start, reader.table(("load", it))?))) {
        Some((at, table)) => load::read(&mut reader, at, table),
        None => TcpPlan::default().into(),
    };
    let within = Within { load: &load, no_undo };
    for (word, value) in root.get_ref() {
        let key = word.get_ref().as_ref();
        match key {
            "name" => name = reader.scalar((key, value)),
            "hosts" => hosts = reader.list((key, value), 64).into_iter().map(|(_, it)| it).collect(),
            "repetitions" => repetitions = reader.number((key, value), 1, 1000).unwrap_or(1),
            "seed" => seed = reader.number((key, value), 0, u64::MAX).unwrap_or(0),
            "design" => design = reader.choice((key, value), &DESIGNS).unwrap_or_default(),
            "load" => {}
            "factor" => {
                let DeValue::Array(tables) = value.get_ref() else {
                    reader.note(value.span().start, key, "must be tables: [[factor]]");
                    continue;
                };
                for table in tables.iter().take(MAX_FACTORS) {
                    let read = reader.table((key, table));
                    factors.extend(read.and_then(|it| factor::read(&mut reader, table.span().start, it, within)));
                }
                if tables.len() > MAX_FACTORS {
                    reader.note(
                        value.span().start,
                        key,
                        format!("there are {}; the maximum is {MAX_FACTORS}", tables.len()),
                    );
                }
            }
            _ => reader.unknown(word.span().start, key, "name, hosts, design, repetitions, seed, load, factor"),
        }
    }
    for key in ["hosts", "factor"] {
        match root.get_ref().get(key).map(|it| (it.span().start, it.get_ref())) {
            None => reader.note(0, key, "it is missing"),
            Some((at, DeValue::Array(items))) if items.is_empty() => reader.note(at, key, "must not be empty"),
            Some(_) => {}
        }
    }
    let repetitions = usize::try_from(repetitions).unwrap_or(1);
    let plan = CampaignPlan {
        name: name.unwrap_or_else(|| "campaign".to_owned()),
        hosts,
        load,
        factors,
        design,
        repetitions,
        seed,
    };
    let levels = plan.levels();
    if design == Design::Fractional && levels.iter().any(|count| *count != 2) {
        reader.note(0, "design", "a fractional design needs two values for each factor");
    }
    let all = levels.iter().fold(1, |cells, count| count.saturating_mul(cells));
    // Only a small design is listed to be counted.
    let count = if design == Design::Full { all } else { cells(design, &levels).len() };
    let runs = (plan.hosts.len() * repetitions).saturating_mul(count);
    if runs > MAX_RUNS {
        reader.note(0, "", format!("the plan has {runs} runs; the maximum is {MAX_RUNS}"));
    }
    reader.problems.sort();
    if reader.problems.is_empty() { Ok(plan) } else { Err(reader.problems) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_manual_is_a_plan() {
        let plan = parse(include_str!("../../../../../docs/campaign-example.toml"), false).expect("a plan");
        assert_eq!((plan.levels(), plan.repetitions), (vec![2, 2], 4));
    }

    fn mistakes(text: &str) -> String {
        let found: Vec<String> = parse(text, false).expect_err("mistakes").iter().map(ToString::to_string).collect();
        found.join("\n")
    }

    #[test]
    fn every_mistake_is_reported_at_once_with_its_place() {
        insta::assert_snapshot!(mistakes(include_str!("mistakes.toml")));
        insta::assert_snapshot!("toml", mistakes("hosts = \"a\"\n[load]\nkind = \"quic\"\n[[factor\n"));
        let udp = "hosts = \"a\"\n[load]\nkind = \"udp\"\nomit = \"10s\"\nrate = \"fast\"\n[[factor]]\n\
            flag = \"congestion-control\"\nvalues = [\"reno\", \"cubic\"]\n";
        insta::assert_snapshot!("udp", mistakes(udp));
    }

    #[test]
    fn a_command_that_cannot_be_rolled_back_must_be_allowed() {
        let text = "hosts = \"a\"\n[[factor]]\ncommand = [\"governor\", \"{value}\"]\nvalues = [1, 2]\n";
        assert_eq!(
            mistakes(text),
            "line 2, column 1: factor.restore: it is missing: the command cannot be rolled back; add restore, or allow \
             it with --no-undo"
        );
        let plan = parse(text, true).expect("a plan");
        let set: Vec<_> = plan.factors[0].levels.iter().filter_map(|it| Some(it.command.clone()?.set)).collect();
        assert_eq!(set, [["governor", "1"], ["governor", "2"]]);
    }

    #[test]
    fn flags_become_words_of_a_foreign_load() {
        let text = "hosts = [\"a\"]\n[load]\nkind = \"command\"\ncommand = [\"iperf3\", \"-P\", \"{streams}\"]\n\
            pattern = '(\\d+)'\n[[factor]]\nflag = \"streams\"\nvalues = [1, 8]\n";
        let plan = parse(text, false).expect("a plan");
        assert!(!plan.needs_server());
        let Load::Command(load) = plan.load(&[1]) else { panic!("{plan:?}") };
        assert_eq!(load.command, ["iperf3", "-P", "8"]);
    }
}
