//! The plan file of a campaign: TOML in, a [`CampaignPlan`] or everything that is wrong with it out.

use super::schedule::{Design, cells};
use crate::tune;
use narrows_model::words::units::parse_duration;
use narrows_model::{Direction, Limit, Place, Setting, TcpPlan};
use narrows_wire::forwarding_plan::Problem;
use serde::Serialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The most runs of one campaign.
pub const MAX_RUNS: usize = 10_000;
/// The most factors of a plan, and levels of a factor.
const MAX_FACTORS: usize = 16;

/// A campaign, checked.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CampaignPlan {
    /// Its name.
    pub name: String,
    /// The servers, as the user names them.
    pub hosts: Vec<String>,
    /// The load of each run, before the flags of a cell.
    pub load: TcpPlan,
    /// What is varied.
    pub factors: Vec<Factor>,
    /// Which combinations are measured.
    pub design: Design,
    /// Blocks.
    pub repetitions: usize,
    /// Of the random order.
    pub seed: u64,
}

/// What is varied.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Factor {
    /// Its name.
    pub name: String,
    /// Its levels; the first one is the baseline.
    pub levels: Vec<Level>,
}

/// One level of a factor.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Level {
    /// As the user wrote it.
    pub name: String,
    /// What is set on the hosts, and rolled back after the run.
    pub settings: Vec<(Place, Setting)>,
    /// What is set in the load.
    pub flag: Option<Flag>,
}

/// A flag of `narrows measure tcp`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Flag {
    /// `--streams`.
    Streams(u32),
    /// `--congestion-control`.
    CongestionControl(String),
}

impl CampaignPlan {
    /// The number of levels of each factor.
    #[must_use]
    pub fn levels(&self) -> Vec<usize> {
        self.factors.iter().map(|it| it.levels.len()).collect()
    }

    /// The levels of a cell.
    pub fn of_cell<'a>(&'a self, cell: &'a [usize]) -> impl DoubleEndedIterator<Item = (&'a Factor, &'a Level)> {
        self.factors.iter().zip(cell).map(|(factor, level)| (factor, &factor.levels[*level]))
    }

    /// A cell in words.
    #[must_use]
    pub fn words(&self, cell: &[usize]) -> String {
        let words: Vec<String> =
            self.of_cell(cell).map(|(factor, level)| format!("{}={}", factor.name, level.name)).collect();
        words.join(", ")
    }

    /// The load of a cell.
    #[must_use]
    pub fn load(&self, cell: &[usize]) -> TcpPlan {
        let mut load = self.load.clone();
        for (_, level) in self.of_cell(cell) {
            match &level.flag {
                Some(Flag::Streams(count)) => load.streams = *count,
                Some(Flag::CongestionControl(name)) => load.congestion_control = Some(name.clone()),
                None => {}
            }
        }
        load
    }
}

type Item<'a> = (&'a str, &'a Spanned<DeValue<'a>>);

struct Reader<'t> {
    text: &'t str,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn note(&mut self, at: usize, key: &str, says: impl Into<String>) {
        let before = self.text.get(..at).unwrap_or(self.text);
        let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1;
        let line = before.matches('\n').count() + 1;
        self.problems.push(Problem { line, column, key: key.to_owned(), says: says.into() });
    }

    fn scalar(&mut self, (key, value): Item<'_>) -> Option<String> {
        let text = match value.get_ref() {
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(number) => number.to_string(),
            DeValue::Boolean(on) => if *on { "on" } else { "off" }.to_owned(),
            _ => {
                self.note(value.span().start, key, "must be a string, a number or true or false");
                return None;
            }
        };
        let fits = !text.is_empty() && text.len() <= 200 && !text.contains(char::is_control);
        if !fits {
            self.note(value.span().start, key, "must have 1 to 200 characters on one line");
        }
        fits.then_some(text)
    }

    fn list(&mut self, (key, value): Item<'_>, most: usize) -> Vec<(usize, String)> {
        let DeValue::Array(items) = value.get_ref() else {
            return self.scalar((key, value)).map(|it| (value.span().start, it)).into_iter().collect();
        };
        if items.len() > most {
            self.note(value.span().start, key, format!("has {} values; the maximum is {most}", items.len()));
            return Vec::new();
        }
        items.iter().filter_map(|it| Some((it.span().start, self.scalar((key, it))?))).collect()
    }

    fn number(&mut self, item: Item<'_>, min: u64, max: u64) -> Option<u64> {
        let text = self.scalar(item)?;
        let number = text.parse().ok().filter(|it| (min..=max).contains(it));
        if number.is_none() {
            self.note(item.1.span().start, item.0, format!("`{text}` is not a number from {min} to {max}"));
        }
        number
    }

    fn unknown(&mut self, at: usize, key: &str, known: &str) {
        self.note(at, key, format!("unknown key; known keys: {known}"));
    }

    fn table<'a>(&mut self, (key, value): Item<'a>) -> Option<&'a DeTable<'a>> {
        match value.get_ref() {
            DeValue::Table(table) => Some(table),
            _ => {
                self.note(value.span().start, key, "must be a table");
                None
            }
        }
    }

    fn load(&mut self, table: &DeTable<'_>) -> TcpPlan {
        let mut plan = TcpPlan { limit: Limit::DurationMs(10_000), ..TcpPlan::default() };
        let mut duration_ms = 10_000;
        let mut omit_ms = None;
        for (name, value) in table {
            let (key, at) = (name.get_ref().as_ref(), value.span().start);
            match key {
                "streams" => {
                    let number = self.number((key, value), 1, TcpPlan::MAX_STREAMS.into());
                    plan.streams = number.and_then(|it| u32::try_from(it).ok()).unwrap_or(1);
                }
                "congestion-control" => plan.congestion_control = self.scalar((key, value)),
                "kind" | "duration" | "omit" | "direction" => {
                    let Some(text) = self.scalar((key, value)) else { continue };
                    let time = || parse_duration(&text).ok().and_then(|it| u64::try_from(it.as_millis()).ok());
                    match (key, text.as_str(), time()) {
                        ("kind", "tcp", _) | ("direction", "up", _) => {}
                        ("kind", ..) => self.note(at, key, format!("unknown load `{text}`; known loads: tcp")),
                        ("direction", "down", _) => plan.direction = Direction::Down,
                        ("direction", ..) => self.note(at, key, format!("`{text}` is not up or down")),
                        ("duration", _, Some(ms)) if (100..=3_600_000).contains(&ms) => duration_ms = ms,
                        ("omit", _, Some(ms)) => omit_ms = Some(ms),
                        _ => self.note(at, key, format!("`{text}` is not a time from 100ms to 3600s")),
                    }
                }
                _ => {
                    self.unknown(
                        name.span().start,
                        key,
                        "kind, duration, omit, direction, streams, congestion-control",
                    );
                }
            }
        }
        plan.limit = Limit::DurationMs(duration_ms);
        plan.omit_ms = omit_ms.unwrap_or_else(|| 2_000.min(duration_ms / 4));
        plan.interval_ms = 100;
        if plan.omit_ms >= duration_ms {
            self.note(0, "load.omit", "must be shorter than load.duration");
        }
        plan
    }

    fn factor(&mut self, at: usize, table: &DeTable<'_>) -> Option<Factor> {
        let (mut name, mut places, mut device, mut what, mut values) = (None, Vec::new(), None, Vec::new(), Vec::new());
        for (word, value) in table {
            let key = word.get_ref().as_ref();
            match key {
                "name" => name = self.scalar((key, value)),
                "device" => device = self.scalar((key, value)),
                "values" => values = self.list((key, value), 16),
                "sysctl" | "offload" | "set" | "flag" => {
                    what.extend(self.scalar((key, value)).map(|it| (key.to_owned(), it, value.span().start)));
                }
                "at" => match self.scalar((key, value)).as_deref() {
                    Some("client") => places = vec![Place::Client],
                    Some("server") => places = vec![Place::Server],
                    Some("both") => places = vec![Place::Client, Place::Server],
                    Some(text) => self.note(value.span().start, key, format!("`{text}` is not client, server or both")),
                    None => {}
                },
                _ => self.unknown(word.span().start, key, "name, at, device, sysctl, offload, set, flag, values"),
            }
        }
        if what.len() != 1 {
            self.note(at, "factor", "must have exactly one of sysctl, offload, set and flag");
            return None;
        }
        let (kind, word, what_at) = what.remove(0);
        let needs_device = matches!(kind.as_str(), "offload" | "set");
        if needs_device && device.is_none() {
            self.note(at, "factor.device", "it is missing");
        }
        if kind != "flag" && places.is_empty() {
            self.note(at, "factor.at", "it is missing: client, server or both");
        }
        if kind == "sysctl" && tune::parameters().all(|(key, _)| key != word) {
            self.note(
                what_at,
                "factor.sysctl",
                format!("unknown parameter `{word}`; narrows tunes a fixed list of sysctls"),
            );
        }
        let mut names: Vec<&String> = values.iter().map(|(_, text)| text).collect();
        names.sort();
        names.dedup();
        if values.len() < 2 || names.len() < values.len() {
            self.note(at, "factor.values", "must have 2 to 16 different values");
        }
        let device = device.unwrap_or_default();
        let levels = values.iter().filter_map(|(value_at, text)| {
            let level = level(&kind, &word, &device, text);
            if let Err(says) = &level {
                self.note(*value_at, "factor.values", says);
            }
            let (setting, flag) = level.ok()?;
            let settings = setting.iter().flat_map(|it| places.iter().map(|place| (*place, it.clone()))).collect();
            Some(Level { name: text.clone(), settings, flag })
        });
        let levels = levels.collect();
        Some(Factor { name: name.unwrap_or(word), levels })
    }
}

/// One value of a factor: what is set on a host, or in the load.
fn level(kind: &str, word: &str, device: &str, text: &str) -> Result<(Option<Setting>, Option<Flag>), String> {
    let device = || device.to_owned();
    let number = |max: u32| {
        let number = text.parse().ok().filter(|it| (1..=max).contains(it));
        number.ok_or_else(|| format!("`{text}` is not a number from 1 to {max}"))
    };
    let set = |setting| Ok((Some(setting), None));
    match (kind, word) {
        ("sysctl", _) => set(Setting::Sysctl { key: word.to_owned(), value: text.to_owned() }),
        ("offload", _) => match text {
            "on" | "off" => set(Setting::Offload { device: device(), feature: word.to_owned(), on: text == "on" }),
            _ => Err(format!("`{text}` is not on or off")),
        },
        ("set", "mtu") => set(Setting::Mtu { device: device(), mtu: number(65_535)? }),
        ("set", "qdisc") => set(Setting::RootQdisc { device: device(), kind: text.to_owned() }),
        ("flag", "streams") => Ok((None, Some(Flag::Streams(number(TcpPlan::MAX_STREAMS)?)))),
        ("flag", "congestion-control") => Ok((None, Some(Flag::CongestionControl(text.to_owned())))),
        ("set", _) => Err(format!("unknown setting `{word}`; known settings: mtu, qdisc")),
        _ => Err(format!("unknown flag `{word}`; known flags: streams, congestion-control")),
    }
}

/// Reads a plan.
///
/// # Errors
/// Everything that is wrong with it, in the order of the file.
pub fn parse(text: &str) -> Result<CampaignPlan, Vec<Problem>> {
    let mut reader = Reader { text, problems: Vec::new() };
    let (root, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        reader.note(error.span().map_or(0, |it| it.start), "", format!("invalid TOML: {}", error.message()));
    }
    let (mut name, mut hosts, mut load, mut factors) = (None, Vec::new(), TcpPlan::default(), Vec::new());
    let (mut repetitions, mut seed, mut design) = (4, 1, Design::Full);
    for (word, value) in root.get_ref() {
        let key = word.get_ref().as_ref();
        match key {
            "name" => name = reader.scalar((key, value)),
            "hosts" => hosts = reader.list((key, value), 64).into_iter().map(|(_, it)| it).collect(),
            "repetitions" => repetitions = reader.number((key, value), 1, 1000).unwrap_or(1),
            "seed" => seed = reader.number((key, value), 0, u64::MAX).unwrap_or(0),
            "design" => match reader.scalar((key, value)).as_deref() {
                Some("full") => design = Design::Full,
                Some("fractional") => design = Design::Fractional,
                Some("one-at-a-time") => design = Design::OneAtATime,
                Some(text) => {
                    reader.note(value.span().start, key, format!("`{text}` is not full, fractional or one-at-a-time"));
                }
                None => {}
            },
            "load" => load = reader.table((key, value)).map_or_else(TcpPlan::default, |it| reader.load(it)),
            "factor" => {
                let DeValue::Array(tables) = value.get_ref() else {
                    reader.note(value.span().start, key, "must be tables: [[factor]]");
                    continue;
                };
                for table in tables.iter().take(MAX_FACTORS) {
                    let read = reader.table((key, table));
                    factors.extend(read.and_then(|it| reader.factor(table.span().start, it)));
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
    for (key, missing) in [("hosts", hosts.is_empty()), ("factor", !root.get_ref().contains_key("factor"))] {
        if missing {
            reader.note(0, key, "it is missing");
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
        let plan = parse(include_str!("../../../../docs/campaign-example.toml")).expect("a plan");
        assert_eq!((plan.levels(), plan.repetitions), (vec![2, 2], 4));
    }

    #[test]
    fn every_mistake_is_reported_at_once_with_its_place() {
        let text = "hosts = []\nrepetitions = 0\ncolour = 1\n[load]\nkind = \"quic\"\n[[factor]]\nsysctl = \"net.nothing\"\n\
            at = \"moon\"\nvalues = [1, 1]\n[[factor]]\nflag = \"streams\"\nvalues = [1, \"many\"]\n";
        let found: Vec<String> = parse(text).expect_err("mistakes").iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(found.join("\n"));
    }
}
