//! The plan of a forwarding benchmark, and what follows from it by arithmetic: its rows, the rates of the line, the smallest frames.

use crate::data::procedures::Tests;
use crate::data::settings::{Default as D, Kind, Value, settings};
use narrows_model::host::snmp::SnmpAgent;
use narrows_model::host::table::TableFill;
use narrows_model::load::frame_traffic::Traffic;
use narrows_model::load::line_rate::frames_per_second;
use narrows_model::run::search::Goal;
use narrows_model::words::place::Family;
use narrows_model::words::units::{grouped, micros};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// One port of the tester.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TesterPort {
    /// The tester's device.
    pub device: String,
    /// The address that the tester has there, of the benchmarking ranges 198.18.0.0/15 and 2001:2::/48.
    pub address: IpAddr,
    /// The device under test's address on that side: frames go to its Ethernet address.
    pub gateway: IpAddr,
    /// Both once more, of the other family; `None`: the port has one family.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second: Option<AddressPair>,
    /// The host of the device, which runs `narrows serve --frames`; `None`: the one that makes the benchmark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The file with the token of that host; never kept in a record.
    #[serde(default, skip_serializing)]
    pub token_file: Option<String>,
}

/// The addresses of one family at a port of the tester.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AddressPair {
    /// The tester's.
    pub address: IpAddr,
    /// That of the device under test.
    pub gateway: IpAddr,
}

/// Where the counters of a hop are read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum CounterSource {
    /// A network namespace of this machine, by name, or by `pid:N`.
    Namespace {
        /// Its name.
        name: String,
    },
    /// A host that runs `narrows serve`.
    Narrows {
        /// Its name or address, or `ssh://[user@]host[:port]`.
        host: String,
        /// The file with its token; never kept in a record.
        #[serde(default, skip_serializing)]
        token_file: Option<String>,
    },
    /// An SNMP agent with IF-MIB.
    Snmp(SnmpAgent),
}

/// A device between generator and receiver whose counters are part of the books.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HopPlan {
    /// How reports call it.
    pub name: String,
    /// Where its counters are read.
    pub source: CounterSource,
    /// Its interface towards the generator.
    pub input: String,
    /// Its interface towards the receiver.
    pub output: String,
    /// Whether it is the device under test; the others are switches.
    pub under_test: bool,
}

/// `narrows rfc2544 PLAN`, resolved and checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ForwardingPlan {
    /// How the report calls the device and its configuration.
    pub name: String,
    /// The port that sends.
    pub generator: TesterPort,
    /// The port that receives (and sends back where traffic is bidirectional).
    pub receiver: TesterPort,
    /// Bits per second on the wire: 100 % of the loads.
    pub link_bps: u64,
    /// The most that is offered, frames a second, where the line rate is beyond what the tester can; `None`: line rate.
    pub max_load_pps: Option<f64>,
    /// The frames, one entry per family.
    pub traffic: Vec<Traffic>,
    /// In the order of the way, the tester left out.
    pub hops: Vec<HopPlan>,
    /// What is measured.
    pub tests: Tests,
    /// What surrounds each trial.
    #[serde(flatten)]
    pub conditions: TrialConditions,
    /// What fills tables of the device under test where narrows cannot; `None`: narrows does, in the network of the hop under test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tables: Option<TableCommands>,
    /// How long to wait for an unresponsive device under test; 0: not at all.
    #[serde(rename = "lost_device_wait_ms")]
    pub lost_dut_wait_ms: u64,
}

settings! {
    /// Conditions of each trial (RFC 2544, section 23).
    pub struct TrialConditions {
        /// Learning frames before each trial.
        pub learning_frames: u32 = "learning-frames", Kind::Whole(0..=1_000_000), D::Presets(Value::Whole(100), Value::Whole(1_000));
        /// Idle time after the load, before counters are read.
        pub residue_ms: u64 = "residue", Kind::Duration(0..=60_000), D::Presets(Value::Ms(500), Value::Ms(2_000));
        /// Rest before the next trial.
        pub rest_ms: u64 = "rest", Kind::Duration(0..=3_600_000), D::Presets(Value::Ms(200), Value::Ms(5_000));
    }
}

settings! {
    /// Commands that fill and empty a table of the DUT. Placeholders: {table} routes, rules or neighbours, {entries} their number, {family} ipv4 or ipv6, {gateway} the address of the tester behind the DUT, {file} a file with one entry per line.
    pub struct TableCommands {
        /// Command that adds the entries, run without a shell.
        pub install: Vec<String> = "install", Kind::Command, D::Required;
        /// Command that removes them, also those of an unfinished install; run at any end, after a crash by the next benchmark.
        pub remove: Vec<String> = "remove", Kind::Command, D::Required;
        /// Time limit of each command, and of the convergence after it.
        pub within_ms: u64 = "within", Kind::Duration(1_000..=86_400_000), D::Always(Value::Ms(600_000));
    }
}

impl TrialConditions {
    /// In words: `100 learning frames, residue 500 ms, rest 200 ms`.
    pub fn words(&self) -> String {
        let time = |ms: u64| micros(ms.saturating_mul(1_000));
        let learning = match self.learning_frames {
            0 => String::new(),
            frames => format!("{} learning frames, ", grouped(frames)),
        };
        format!("{learning}residue {}, rest {}", time(self.residue_ms), time(self.rest_ms))
    }
}

/// What the results are listed by: one frame size of one traffic, or its mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Row {
    /// Index into [`ForwardingPlan::traffic`].
    pub traffic: usize,
    /// Frame size with FCS; `None`: the mix.
    pub size: Option<u32>,
}

/// Frames a second that a link carries: each takes its bytes with FCS and [`OVERHEAD_BYTES`] on the wire.
pub fn line_rate_pps(link_bps: u64, frame_bytes: f64) -> f64 {
    frames_per_second(link_bps as f64, frame_bytes)
}

/// A frame size, or the mix: `64 B`, `mix`.
pub fn size_word(size: Option<u32>) -> String {
    size.map_or_else(|| "mix".to_owned(), |size| format!("{size} B"))
}

impl TesterPort {
    /// Its addresses of a family; `None` where it has none.
    pub fn of(&self, family: Family) -> Option<AddressPair> {
        let first = AddressPair { address: self.address, gateway: self.gateway };
        [Some(first), self.second].into_iter().flatten().find(|pair| Family::of(&pair.address) == family)
    }
}

impl ForwardingPlan {
    /// Of a traffic with a modifier, the same without it: index into [`ForwardingPlan::traffic`].
    pub fn unmodified(&self, traffic: usize) -> Option<usize> {
        let of = self.traffic.get(traffic).filter(|of| of.modifier.is_some())?;
        let plain = Traffic { modifier: None, ..of.clone() };
        self.traffic.iter().position(|other| *other == plain)
    }

    /// The table that a traffic goes through, where it has one.
    pub fn table(&self, traffic: usize) -> Option<TableFill> {
        self.traffic.get(traffic)?.table()
    }

    /// The rows of the results, in the order in which they are measured; the mix of a traffic comes last.
    pub fn rows(&self) -> Vec<Row> {
        let of = |(traffic, frames): (usize, &Traffic)| {
            let sizes: Vec<Option<u32>> = frames.sizes.iter().copied().map(Some).collect();
            let mix = (!frames.mix.is_empty()).then_some(None);
            sizes.into_iter().chain(mix).map(move |size| Row { traffic, size }).collect::<Vec<_>>()
        };
        self.traffic.iter().enumerate().flat_map(of).collect()
    }

    /// Mean frame size of a row with FCS; `None` where the plan has no such row.
    pub fn frame_bytes(&self, row: Row) -> Option<f64> {
        let traffic = self.traffic.get(row.traffic)?;
        if let Some(size) = row.size {
            return traffic.sizes.contains(&size).then(|| f64::from(size));
        }
        let sum: u64 = traffic.mix.iter().map(|size| u64::from(*size)).sum();
        (!traffic.mix.is_empty()).then(|| sum as f64 / traffic.mix.len() as f64)
    }

    /// What the link carries of a row's frames in one direction, frames a second.
    pub fn line_pps(&self, row: Row) -> Option<f64> {
        Some(line_rate_pps(self.link_bps, self.frame_bytes(row)?))
    }

    /// The most that is offered of a row's frames: the line rate, or what the plan allows where that is less.
    pub fn max_pps(&self, row: Row) -> Option<f64> {
        let line = self.line_pps(row)?;
        Some(self.max_load_pps.map_or(line, |most| most.min(line)))
    }

    /// Whether frames are stamped and read by one clock: only then is there a latency.
    pub fn one_clock(&self) -> bool {
        self.generator.host == self.receiver.host
    }

    /// The goal that the results of other tests stand on: the first one of the throughput test.
    pub fn first_goal(&self) -> Option<&Goal> {
        self.tests.throughput.as_ref()?.goals.first()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_carries_what_the_tables_say() {
        // RFC 2544, appendix B counts 64 bytes at 14,880 frames a second for 10 Mbit/s.
        let at = |bytes: f64| line_rate_pps(1_000_000_000, bytes).floor();
        let table = [64.0, 128.0, 256.0, 512.0, 1024.0, 1280.0, 1518.0].map(at);
        assert_eq!(table, [1_488_095.0, 844_594.0, 452_898.0, 234_962.0, 119_731.0, 96_153.0, 81_274.0]);
        assert_eq!(line_rate_pps(10_000_000, 64.0).floor(), 14_880.0);
    }
}
