//! The load of a plan: one of narrows, or a command whose output has the number.

use super::reader::Reader;
use narrows_model::run::campaign::Better;
use narrows_model::words::units::{Rate, parse_rate};
use narrows_model::{DatagramSizes, Direction, Limit, LoadPlan, RrPlan, TcpPlan, Transaction, UdpPlan, UdpRate};
use regex_lite::Regex;
use serde::Serialize;
use toml::de::DeTable;

/// What is measured in each run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Load {
    /// A load of narrows.
    Narrows(LoadPlan),
    Command(CommandLoad),
}

/// Another program that measures, and how its number is found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CommandLoad {
    /// Program and arguments. `{host}` is the host, `{NAME}` the value of the flag of that name.
    pub command: Vec<String>,
    /// A regular expression with one group, the number; its last match counts.
    pub pattern: String,
    /// The unit of the number.
    pub unit: String,
    /// Which way is better.
    pub better: Better,
    /// How long it is expected to run.
    pub duration_ms: u64,
}

/// A flag of the load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Flag {
    /// `--streams`.
    Streams(u32),
    /// `--congestion-control`.
    CongestionControl(String),
    /// `--window`, bytes.
    Window(u32),
    /// A word of a command: `{name}` in it becomes `value`.
    Word { name: String, value: String },
}

impl From<TcpPlan> for Load {
    fn from(plan: TcpPlan) -> Self {
        Self::Narrows(plan.into())
    }
}

impl Load {
    /// Sets a flag that this load has; another one is left out.
    pub(super) fn set(&mut self, flag: &Flag) {
        match (self, flag) {
            (Self::Narrows(LoadPlan::Tcp(plan)), Flag::Streams(count)) => plan.streams = *count,
            (Self::Narrows(LoadPlan::Udp(plan)), Flag::Streams(count)) => plan.streams = *count,
            (Self::Narrows(LoadPlan::Rr(plan)), Flag::Streams(count)) => plan.streams = *count,
            (Self::Narrows(LoadPlan::Tcp(plan)), Flag::CongestionControl(name)) => {
                plan.congestion_control = Some(name.clone());
            }
            (Self::Narrows(LoadPlan::Tcp(plan)), Flag::Window(bytes)) => {
                (plan.send_buffer_bytes, plan.receive_buffer_bytes) = (Some(*bytes), Some(*bytes));
            }
            (Self::Command(load), Flag::Word { name, value }) => {
                let mark = format!("{{{name}}}");
                load.command.iter_mut().for_each(|word| *word = word.replace(&mark, value));
            }
            _ => {}
        }
    }

    /// How long it takes, milliseconds.
    pub fn duration_ms(&self) -> u64 {
        match self {
            Self::Narrows(plan) => plan.duration_ms().unwrap_or(0),
            Self::Command(load) => load.duration_ms,
        }
    }
}

/// The keys of each kind.
const KINDS: [(&str, &str); 4] = [
    ("tcp", "kind, duration, omit, direction, streams, congestion-control"),
    ("udp", "kind, duration, omit, direction, streams, rate, size"),
    ("rr", "kind, duration, omit, streams, transaction"),
    ("command", "kind, duration, command, pattern, unit, better"),
];

/// The pattern of a load; `Err`: what is wrong with it.
pub(in crate::campaign) fn pattern(text: &str) -> Result<Regex, String> {
    let regex = Regex::new(text).map_err(|error| format!("is not a regular expression: {error}"))?;
    match regex.captures_len() {
        2 => Ok(regex),
        groups => Err(format!("has {} groups; it must have one, the number", groups - 1)),
    }
}

/// Reads the table of the load, which begins at `at`.
pub(super) fn read(reader: &mut Reader<'_>, at: usize, table: &DeTable<'_>) -> Load {
    let words = KINDS.map(|(word, keys)| (word, (word, keys)));
    let kind = table.get("kind").map(|it| reader.choice(("kind", it), &words));
    // Without a known kind its keys cannot be judged.
    let Some((kind, known)) = kind.unwrap_or(Some(KINDS[0])) else { return TcpPlan::default().into() };
    let mut tcp = TcpPlan { interval_ms: 100, ..TcpPlan::default() };
    let mut udp = UdpPlan { interval_ms: 100, ..UdpPlan::default() };
    let mut rr = RrPlan { interval_ms: 100, ..RrPlan::default() };
    let mut command = CommandLoad {
        command: Vec::new(),
        pattern: String::new(),
        unit: String::new(),
        better: Better::Higher,
        duration_ms: 10_000,
    };
    let (mut duration_ms, mut omit) = (10_000, None);
    for (name, value) in table {
        let key = name.get_ref().as_ref();
        let item = (key, value);
        if !known.split(", ").any(|it| it == key) {
            reader.unknown(name.span().start, key, known);
            continue;
        }
        match key {
            "duration" => duration_ms = reader.time(item, 100, 3_600_000).unwrap_or(duration_ms),
            "omit" => omit = reader.time(item, 0, 3_600_000).map(|ms| (ms, value.span().start)),
            "direction" => {
                let way = reader.choice(item, &[("up", Direction::Up), ("down", Direction::Down)]);
                tcp.direction = way.unwrap_or(Direction::Up);
                udp.direction = tcp.direction;
            }
            "streams" => {
                let number = reader.number(item, 1, TcpPlan::MAX_STREAMS.into());
                tcp.streams = number.and_then(|it| u32::try_from(it).ok()).unwrap_or(1);
                (udp.streams, rr.streams) = (tcp.streams, tcp.streams);
            }
            "congestion-control" => tcp.congestion_control = reader.scalar(item),
            "rate" => {
                let Some(text) = reader.scalar(item) else { continue };
                let rate = match parse_rate(&text) {
                    _ if text == "max" => UdpRate::Max,
                    Ok(Rate::Bits(bps)) => UdpRate::Bps(bps),
                    Ok(Rate::Packets(pps)) => UdpRate::Pps(pps as f64),
                    Err(error) => {
                        reader.note_at(item, error.to_string());
                        continue;
                    }
                };
                (udp.rate_up, udp.rate_down) = (rate, rate);
            }
            "size" => {
                let bytes = reader.number(item, UdpPlan::MIN_BYTES.into(), UdpPlan::MAX_BYTES.into());
                udp.sizes = DatagramSizes::Sequence(bytes.and_then(|it| u32::try_from(it).ok()).into_iter().collect());
            }
            "transaction" => {
                let known =
                    [("tcp", Transaction::Tcp), ("udp", Transaction::Udp), ("tcp-connect", Transaction::TcpConnect)];
                rr.transaction = reader.choice(item, &known).unwrap_or_default();
            }
            "command" => command.command = reader.command(item).unwrap_or_default(),
            "pattern" => {
                command.pattern = reader.scalar(item).unwrap_or_default();
                if let Err(says) = pattern(&command.pattern) {
                    reader.note_at(item, says);
                }
            }
            "unit" => command.unit = reader.scalar(item).unwrap_or_default(),
            "better" => {
                let way = reader.choice(item, &[("higher", Better::Higher), ("lower", Better::Lower)]);
                command.better = way.unwrap_or(Better::Higher);
            }
            _ => {}
        }
    }
    let omit_ms = omit.map_or(if kind == "tcp" { 2_000.min(duration_ms / 4) } else { 0 }, |(ms, _)| ms);
    if let Some((_, at)) = omit.filter(|_| omit_ms >= duration_ms) {
        reader.note(at, "omit", "must be shorter than duration");
    }
    if kind == "command" {
        for key in ["command", "pattern"].into_iter().filter(|key| !table.contains_key(*key)) {
            reader.note(at, &format!("load.{key}"), "it is missing");
        }
        return Load::Command(CommandLoad { duration_ms, ..command });
    }
    if rr.transaction == Transaction::Udp {
        (rr.request_bytes, rr.response_bytes) = (RrPlan::MIN_UDP_BYTES, RrPlan::MIN_UDP_BYTES);
    }
    Load::Narrows(match kind {
        "udp" => UdpPlan { duration_ms, omit_ms, ..udp }.into(),
        "rr" => RrPlan { duration_ms, omit_ms, ..rr }.into(),
        _ => TcpPlan { limit: Limit::DurationMs(duration_ms), omit_ms, ..tcp }.into(),
    })
}
