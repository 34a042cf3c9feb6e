//! A path profile for the tests of rules, told by what the path does and written as the steps of both ends.

use crate::experiments::profile::PATH_PROFILE;
use crate::judge::Experiment;
use narrows_model::run::{Purpose, TrialRecord};
use narrows_model::{
    Fact, Flow, Place, ProfileEndRecord, ProfilePlan, ProfileProbe, ProfileStep, Run, Snapshot, StepPart, StepReceived,
    StepRecord, StepSent, Trial, load::tcp::TcpEndRecord,
};

/// What happens to what exceeds the rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Excess {
    Waits,
    /// It waits once so many datagrams passed.
    WaitsAfter(u32),
    /// It is dropped once so many datagrams passed.
    DroppedAfter(u32),
}

/// What a path does of UDP.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProfiledPath {
    /// Bits of IP packets a second that it sustains …
    pub(crate) rate_bps: f64,
    /// … and those at which short bursts pass.
    pub(crate) burst_bps: f64,
    pub(crate) excess: Excess,
    /// Lost at any rate: one datagram of so many.
    pub(crate) one_lost_of: Option<u32>,
    /// The same, but so many of them in a row.
    pub(crate) lost_run: u32,
    pub(crate) reordered: f64,
    pub(crate) idle_rtt_us: u64,
    /// The highest rate that was tried.
    pub(crate) tried_bps: f64,
    /// What others send into its queue.
    pub(crate) others_bps: f64,
    /// The sender sends no faster.
    pub(crate) sends_bps: f64,
    /// The number of a step of which the path carries nothing for two fifths of the time.
    pub(crate) outage: Option<usize>,
}

impl Default for ProfiledPath {
    fn default() -> Self {
        Self {
            rate_bps: 1e9,
            burst_bps: 1e9,
            excess: Excess::Waits,
            one_lost_of: None,
            lost_run: 1,
            reordered: 0.0,
            idle_rtt_us: 35_000,
            tried_bps: 2e9,
            others_bps: 0.0,
            sends_bps: 100e9,
            outage: None,
        }
    }
}

const BYTES: u32 = 1472;
const HEADER_BYTES: u32 = 28;
const BITS: f64 = 12_000.0;
const SENT: u32 = 1600;
const BASE_NS: f64 = 1e6;

impl ProfiledPath {
    /// Adds the profile to a run, as made after its baseline; the sender's shaper holds packets back as it did of that.
    pub(crate) fn beside(&self, run: Run, sender: Option<&TcpEndRecord>) -> Run {
        self.made(run, &PATH_PROFILE, Flow::Up, sender)
    }

    /// The same of an experiment and a direction.
    pub(crate) fn made(&self, mut run: Run, by: &Experiment, flow: Flow, sender: Option<&TcpEndRecord>) -> Run {
        let shaper = |snapshot: &Snapshot| {
            let of_shaper = |fact: &&Fact| ["qdisc.rate", "qdisc.overlimits"].contains(&&*fact.key);
            Snapshot { facts: snapshot.facts.iter().filter(of_shaper).cloned().collect(), ..Snapshot::default() }
        };
        let plan = ProfilePlan { direction: flow.direction(), ..ProfilePlan::default() };
        let rates = [0.25, 0.5, 0.85, 1.15, 1.15, 1.4].map(|part| part * self.rate_bps);
        let trains = (0..4).map(|_| Self { outage: None, ..*self }.step(f64::INFINITY, 10));
        let steps = rates
            .iter()
            .enumerate()
            .filter(|(_, rate)| **rate <= self.tried_bps)
            .map(|(index, rate)| Self { outage: self.outage.filter(|of| *of == index), ..*self }.step(*rate, SENT));
        // A deep bucket runs out only well above the rate.
        let deep = matches!(self.excess, Excess::WaitsAfter(passes) | Excess::DroppedAfter(passes) if passes > 100);
        let fast =
            (0..if deep { 2 } else { 0 }).map(|_| Self { outage: None, ..*self }.step(4.0 * self.rate_bps, 2 * SENT));
        let probe = |n: u64| ProfileProbe {
            bytes: if n.is_multiple_of(2) { 100 } else { BYTES },
            rtt_ns: self.idle_rtt_us * 1000,
            up_ns: BASE_NS as i64,
            down_ns: 0,
        };
        let client = ProfileEndRecord {
            header_bytes: HEADER_BYTES,
            datagram_bytes: BYTES,
            probes_sent: 50,
            probes: (0..50).map(probe).collect(),
            steps: trains.chain(steps).chain(fast).collect(),
            before: sender.map(|end| shaper(&end.before)).unwrap_or_default(),
            after: sender.map(|end| shaper(&end.after)).unwrap_or_default(),
            ..ProfileEndRecord::empty(Place::Client)
        };
        run.trials.push(TrialRecord {
            purpose: Purpose::Experiment { round: 0, id: by.id.to_owned() },
            at_us: 0,
            trial: Trial::new(plan, client, ProfileEndRecord::empty(Place::Server), 3_000_000),
        });
        run
    }

    fn step(&self, bps: f64, sent: u32) -> StepRecord {
        let gap_ns = (BITS * 1e9 / bps) as u64;
        let step = ProfileStep { id: 1, datagrams: sent, datagram_bytes: BYTES, gap_ns, stop_above_us: 0 };
        let leaves = |n: u32| f64::from(n) * BITS * 1e9 / bps.min(self.sends_bps);
        // A FIFO gives each its share.
        let share = if bps + self.others_bps > self.rate_bps { bps / (bps + self.others_bps) } else { 1.0 };
        let rate_bps = if share.is_finite() { self.rate_bps * share } else { self.rate_bps };
        let mut arrivals: Vec<(u32, f64)> = Vec::new();
        let mut credit = 0.0;
        for n in 0..sent {
            let dead = self.outage.is_some() && (sent * 2 / 5..sent * 4 / 5).contains(&n);
            if dead || self.one_lost_of.is_some_and(|of| n % of >= of - self.lost_run) {
                continue;
            }
            let passes = match self.excess {
                Excess::Waits => 0,
                Excess::WaitsAfter(datagrams) | Excess::DroppedAfter(datagrams) => datagrams,
            };
            let due = arrivals.last().map_or(0.0, |(_, at)| at + BITS * 1e9 / self.burst_bps).max(leaves(n));
            let sustained = f64::from(n.saturating_sub(passes)) * BITS * 1e9 / rate_bps;
            match self.excess {
                Excess::DroppedAfter(_) if n >= passes && bps > self.rate_bps => {
                    credit += self.rate_bps / bps;
                    if credit >= 1.0 {
                        credit -= 1.0;
                        arrivals.push((n, due));
                    }
                }
                _ => arrivals.push((n, due.max(sustained))),
            }
        }
        let width = sent.div_ceil(StepReceived::PARTS);
        let part = |from: u32| {
            let within: Vec<_> = arrivals.iter().filter(|(n, _)| (from..from + width).contains(n)).collect();
            StepPart {
                from,
                received: within.len() as u32,
                last_ns: within.last().map_or(0, |(_, at)| *at as u64),
                delay_ns: within.get(within.len() / 2).map_or(0, |(n, at)| (BASE_NS + at - leaves(*n)) as i64),
            }
        };
        let is_missing = |n: &u32| arrivals.binary_search_by_key(n, |(n, _)| *n).is_err();
        let missing = (0..sent).find(is_missing);
        let gaps = (0..sent).filter(|n| is_missing(n) && (*n == 0 || !is_missing(&(n - 1)))).count() as u32;
        StepRecord {
            at_us: 0,
            step,
            sent: StepSent { datagrams: sent, span_ns: leaves(sent - 1) as u64, late_ns: 0 },
            received: Some(StepReceived {
                datagrams: arrivals.len() as u32,
                span_ns: arrivals.last().map_or(0, |(_, at)| *at as u64),
                reordered: (self.reordered * f64::from(sent)) as u32,
                first_missing: missing,
                gaps,
                min_delay_ns: BASE_NS as i64,
                parts: (0..sent.div_ceil(width)).map(|index| part(index * width)).collect(),
                ..StepReceived::default()
            }),
        }
    }
}
