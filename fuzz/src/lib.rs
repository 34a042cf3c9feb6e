//! Every parser of what comes from outside, as a function of any bytes that must not panic. Three programs run them: the targets of
//! cargo-fuzz (`fuzz_targets/`), the driver that counts inputs (`examples/drive.rs`), and a test of the gate
//! (`crates/narrows/tests/fuzz.rs`), which includes this file.

mod api;
mod campaign_plan;
mod columns;
mod connection;
mod forwarding_plan;
mod frame;
mod frames_orders;
mod headers;
mod host;
mod icmp;
mod iperf3;
mod kernel;
mod lab;
mod mutator;
mod pack;
mod probe;
mod records;
mod responsiveness;
mod run;
mod sequence;
#[cfg(feature = "snmp")]
mod snmp;
mod stamp;
mod store_columns;
mod tcp_info;
mod tuning;
mod words;

pub use mutator::Mutator;

/// A parser under test.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name: the file of its target and the directory of its corpus.
    pub name: &'static str,
    /// What it does with an input.
    pub run: fn(&[u8]),
    /// Whether clients without a token reach it.
    pub strangers: bool,
    /// How many inputs the test of the gate tries: less where one is slow.
    pub tries: usize,
}

const fn target(name: &'static str, run: fn(&[u8]), tries: usize) -> Target {
    Target { name, run, strangers: false, tries }
}

const fn reached(name: &'static str, run: fn(&[u8])) -> Target {
    Target { name, run, strangers: true, tries: 5_000 }
}

/// All of them; those that strangers reach come first.
pub const TARGETS: &[Target] = &[
    reached("api", api::run),
    reached("connection", connection::run),
    reached("frames_orders", frames_orders::run),
    reached("headers", headers::run),
    reached("iperf3", iperf3::run),
    reached("probe", probe::run),
    reached("responsiveness", responsiveness::run),
    reached("stamp", stamp::run),
    target("campaign_plan", campaign_plan::run, 500),
    target("columns", columns::run, 2_000),
    target("forwarding_plan", forwarding_plan::run, 500),
    target("frame", frame::run, 5_000),
    target("host", host::run, 20),
    target("icmp", icmp::run, 5_000),
    target("kernel", kernel::run, 5_000),
    target("lab", lab::run, 2_000),
    target("pack", pack::run, 1_000),
    target("records", records::run, 5),
    target("run", run::run, 10),
    target("sequence", sequence::run, 500),
    #[cfg(feature = "snmp")]
    target("snmp", snmp::run, 2_000),
    target("store_columns", store_columns::run, 2_000),
    target("tcp_info", tcp_info::run, 5_000),
    target("tuning", tuning::run, 2_000),
    target("words", words::run, 2_000),
];

/// Runs one target: the whole program of a file in `fuzz_targets/`.
///
/// # Panics
/// Where there is no such target, and where the input breaks its parser.
pub fn run(name: &str, bytes: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("a target of the table");
    (target.run)(bytes);
}
