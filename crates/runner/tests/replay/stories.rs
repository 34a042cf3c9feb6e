//! The runs that documents tell of: their hosts are the recorded captures, their figures those of the document.

use crate::told::{Busy, Told};
use narrows_collect::{Recorded, inventory};
use narrows_model::load::tcp::{BufferLock, Limit, TcpPlan};
use narrows_model::run::{DiagnosePlan, RunPlan, TrialRecord};
use narrows_model::{Direction, Family, Purpose, Run, Snapshot, Target, TcpInfo, Trial, Value};
use narrows_runner::measure::empty_run;
use std::path::Path;

/// A pair of recorded hosts and the time of the document.
struct Pair {
    client: Recorded,
    server: Recorded,
    /// The address of the server.
    address: &'static str,
    idle_rtt_us: Vec<u64>,
}

fn open(name: &str) -> Recorded {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hosts").join(name);
    Recorded::open(&directory).expect(name)
}

/// The inventory without the time that each collector took: that of this machine.
fn inventoried(host: &Recorded) -> Snapshot {
    Snapshot { collectors: Vec::new(), ..inventory(host, None) }
}

impl Pair {
    /// The pair of the report of 2010. It gives no round-trip time: two cards on one cable.
    fn slots() -> Self {
        Self {
            client: open("10g-x4-slot"),
            server: open("10g-x8-slot"),
            address: "192.0.2.1:5220",
            idle_rtt_us: vec![150, 160],
        }
    }

    /// The pair of the tuning log of 2007, with the round-trip times of its `tracepath`.
    fn long_path(client: &str, server: &str, address: &'static str) -> Self {
        Self { client: open(client), server: open(server), address, idle_rtt_us: vec![34_851, 34_915] }
    }

    fn run(&self, id: &str, source: &str, baseline: &Told, experiments: &[(&str, &Told)]) -> Run {
        let record = |purpose, trial: Trial, at_us| TrialRecord { purpose, at_us, trial };
        let first = baseline.trial(&self.client, &self.server);
        let mut elapsed_us = first.elapsed_us;
        let mut trials = vec![record(Purpose::Baseline { round: 0 }, first, 0)];
        for (id, told) in experiments {
            let trial = told.trial(&self.client, &self.server);
            let at_us = elapsed_us;
            elapsed_us += trial.elapsed_us;
            trials.push(record(Purpose::Experiment { round: 0, id: (*id).to_owned() }, trial, at_us));
        }
        let client = inventoried(&self.client);
        let plan = DiagnosePlan { budget_ms: 60_000, ..DiagnosePlan::of(baseline.plan.clone().into()) };
        let target = Target {
            asked: self.address.split(':').next().unwrap_or_default().to_owned(),
            address: self.address.to_owned(),
            family: Family::Ipv4,
        };
        let made_by = format!("a test, from the figures of {source}; no host of today measured it");
        Run {
            started_unix_us: client.taken_unix_us,
            elapsed_us,
            client,
            server: inventoried(&self.server),
            idle_rtt_us: self.idle_rtt_us.clone(),
            trials,
            ..empty_run(RunPlan::Diagnose(plan), target, (id.to_owned(), made_by))
        }
    }
}

fn plan(direction: Direction, intervals: usize, interval_ms: u64, omit_ms: u64) -> TcpPlan {
    let limit = Limit::DurationMs(interval_ms * u64::try_from(intervals).unwrap_or_default());
    TcpPlan { direction, limit, interval_ms, omit_ms, ..TcpPlan::default() }
}

/// 3.83 Gbit/s of TCP, whichever host sends; SACK off, 9000 bytes, buffers of 100 MB, a CPU with time left. What the slot does
/// not take waits in the sender, a queue of a millisecond.
fn through_the_slot(direction: Direction) -> Told {
    let (old, new) = (Busy { cores: 2, thread: 0.5, softirq: 0.2 }, Busy { cores: 4, thread: 0.35, softirq: 0.15 });
    let (sender, receiver) = if direction == Direction::Up { (old, new) } else { (new, old) };
    Told {
        plan: plan(direction, 10, 1_000, 1_000),
        mbps: vec![3_830.0; 10],
        min_rtt_us: 150,
        rtt_us: 1_200,
        mss_bytes: 8_948,
        options: TcpInfo::OPT_TIMESTAMPS | TcpInfo::OPT_WSCALE,
        window_bytes: 6_000_000,
        rcvbuf_bytes: 12_000_000,
        sndbuf_bytes: 4_000_000,
        lock: BufferLock::default(),
        held_by_window: 0.0,
        sender,
        receiver,
    }
}

const SLOTS: &str = "a student report of 2010 (two 10G hosts, 3.83 Gbit/s of TCP)";

/// The load goes `direction`, and the experiment the other way.
fn slot(id: &str, direction: Direction) -> Run {
    let other = if direction == Direction::Up { Direction::Down } else { Direction::Up };
    Pair::slots().run(id, SLOTS, &through_the_slot(direction), &[("other-direction", &through_the_slot(other))])
}

const LOG: &str = "a tuning log of 2007 (1 Gbit/s to 10 Gbit/s over 35 ms)";

/// `iperf -s -w4M -i5` on umfs05: SO_RCVBUF got 256 KiB, of which kernels of that time announced three quarters.
fn small_window() -> Told {
    let mbps = vec![39.1, 42.2, 42.1, 42.2, 42.0, 42.1, 42.3];
    Told {
        plan: TcpPlan { receive_buffer_bytes: Some(4 << 20), ..plan(Direction::Up, mbps.len(), 5_000, 5_000) },
        mbps,
        min_rtt_us: 34_851,
        rtt_us: 35_000,
        mss_bytes: 1_448,
        options: TcpInfo::OPT_SACK | TcpInfo::OPT_TIMESTAMPS | TcpInfo::OPT_WSCALE,
        window_bytes: 196_606,
        rcvbuf_bytes: 262_142,
        sndbuf_bytes: 1_000_000,
        lock: BufferLock { send: false, receive: true },
        held_by_window: 0.95,
        sender: Busy { cores: 2, thread: 0.03, softirq: 0.02 },
        receiver: Busy { cores: 2, thread: 0.03, softirq: 0.02 },
    }
}

fn before() -> Run {
    Pair::long_path("dct00", "umfs05", "198.51.100.25:5220").run("long-path-before", LOG, &small_window(), &[])
}

/// After `net.core.rmem_max = 20000000`: the same command got 8 MiB, and 942 Mbit/s once it had grown.
fn after() -> Run {
    let mut mbps = vec![239.0, 451.0, 769.0];
    mbps.resize(12, 942.0);
    let told = Told {
        plan: TcpPlan { receive_buffer_bytes: Some(4 << 20), ..plan(Direction::Up, mbps.len(), 5_000, 15_000) },
        mbps,
        rtt_us: 35_600,
        window_bytes: 6_291_456,
        rcvbuf_bytes: 8_388_608,
        sndbuf_bytes: 10_000_000,
        held_by_window: 0.0,
        sender: Busy { cores: 2, thread: 0.4, softirq: 0.2 },
        receiver: Busy { cores: 2, thread: 0.4, softirq: 0.3 },
        ..small_window()
    };
    let mut run = Pair::long_path("dct00", "umfs05", "198.51.100.25:5220").run("long-path-after", LOG, &told, &[]);
    for fact in
        run.server.facts.iter_mut().filter(|fact| matches!(fact.key.as_str(), "core.rmem.max" | "core.wmem.max"))
    {
        fact.value = Value::Integer(20_000_000);
    }
    run
}

/// The other way: 60 s that rise slowly to 947 Mbit/s and fall to half of it. "It is possible other real traffic was
/// interfering."
fn reverse() -> Run {
    let mbps = vec![
        63.3, 80.5, 115.0, 196.0, 280.0, 401.0, 565.0, 411.0, 549.0, 647.0, 675.0, 705.0, 737.0, 750.0, 773.0, 784.0,
        800.0, 833.0, 849.0, 863.0, 899.0, 923.0, 935.0, 935.0, 947.0, 935.0, 544.0, 472.0, 668.0, 705.0,
    ];
    let told = Told {
        plan: TcpPlan { send_buffer_bytes: Some(4 << 20), ..plan(Direction::Up, mbps.len(), 2_000, 0) },
        mbps,
        rtt_us: 35_200,
        window_bytes: 6_291_456,
        rcvbuf_bytes: 8_388_608,
        sndbuf_bytes: 8_388_608,
        lock: BufferLock { send: true, receive: true },
        held_by_window: 0.0,
        sender: Busy { cores: 2, thread: 0.3, softirq: 0.1 },
        receiver: Busy { cores: 2, thread: 0.3, softirq: 0.2 },
        ..small_window()
    };
    Pair::long_path("umfs05", "dct00", "192.0.2.8:5220").run("long-path-reverse", LOG, &told, &[])
}

/// Every run that is made here; its id names its file.
pub(crate) fn all() -> Vec<Run> {
    vec![slot("10g-x4-slot-up", Direction::Up), slot("10g-x4-slot-down", Direction::Down), before(), after(), reverse()]
}
