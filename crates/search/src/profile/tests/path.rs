//! A simulated path, and profiles of it.

use super::super::{Next, Shape, Staircase};
use narrows_model::{
    Place, ProfileEndRecord, ProfilePlan, ProfileProbe, ProfileStep, StepPart, StepReceived, StepRecord, StepSent,
};

pub(super) const HEADER: u32 = 28;
pub(super) const BYTES: u32 = 1472;

/// A path: a policer before a queue before a delay.
#[derive(Debug, Clone)]
pub(super) struct Path {
    pub(super) rate_bps: f64,
    pub(super) queue_bytes: f64,
    pub(super) police: Option<(f64, f64)>,
    /// Whether the policer is behind the queue.
    pub(super) police_last: bool,
    /// A token bucket that delays what exceeds it: bit/s and bytes; it is full at first.
    pub(super) shape: Option<(f64, f64)>,
    pub(super) conforms_at: f64,
    pub(super) loss: f64,
    pub(super) jitter_ns: u64,
    pub(super) delay_ns: u64,
    /// A host on the way stalls once in so many ns, for so many ns.
    pub(super) stalls: Option<(f64, f64)>,
    /// How far the sender falls behind in each step.
    pub(super) late_ns: u64,
    /// The receiver says nothing while a step lasts, and then how many datagrams arrived and the delay at the end.
    pub(super) totals: bool,
    /// The sender does not say how fast its trains left.
    pub(super) silent: bool,
    /// The sender stops once in so many ns, for so many ns, and goes on from there.
    pub(super) stops: Option<(f64, f64)>,
    /// What others send into the queue, evenly, in bit/s; they began before.
    pub(super) others_bps: f64,
    pub(super) others_at: f64,
    /// It is dead once in so many ns, for so many ns, from so many ns on.
    pub(super) outages: Option<(f64, f64, f64)>,
    /// Chance that losses begin, and that they end (Gilbert 1960).
    pub(super) bursts: Option<(f64, f64)>,
    pub(super) is_bad: bool,
    pub(super) seed: u64,
    pub(super) tokens: f64,
    pub(super) tokens_at: f64,
    pub(super) busy_until: f64,
}

impl Path {
    pub(super) fn new(rate_bps: f64, queue_bytes: f64) -> Self {
        Self {
            rate_bps,
            queue_bytes,
            police: None,
            police_last: false,
            shape: None,
            conforms_at: f64::MIN,
            loss: 0.0,
            jitter_ns: 0,
            delay_ns: 10_000_000,
            stalls: None,
            late_ns: 0,
            totals: false,
            silent: false,
            stops: None,
            others_bps: 0.0,
            others_at: -2e9,
            outages: None,
            bursts: None,
            is_bad: false,
            seed: 88_172_645_463_325_252,
            tokens: f64::MAX,
            tokens_at: 0.0,
            busy_until: 0.0,
        }
    }

    pub(super) fn random(&mut self) -> f64 {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        (self.seed >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Whether the policer lets it pass.
    pub(super) fn conforms(&mut self, at: f64, bytes: f64) -> bool {
        let Some((rate, burst)) = self.police else { return true };
        self.tokens = (self.tokens.min(burst) + (at - self.tokens_at) * rate / 8e9).min(burst);
        self.tokens_at = at;
        let conforms = self.tokens >= bytes;
        self.tokens -= if conforms { bytes } else { 0.0 };
        conforms
    }

    /// Whether the queue has room for it.
    pub(super) fn enter(&mut self, at: f64, bytes: f64) -> bool {
        let start = at.max(self.busy_until);
        let fits = (start - at) * self.rate_bps / 8e9 + bytes <= self.queue_bytes;
        if fits {
            self.busy_until = start + bytes * 8e9 / self.rate_bps;
        }
        fits
    }

    /// When a packet that enters at `at` leaves, in ns; `None` where it is lost.
    pub(super) fn pass(&mut self, at: f64, bytes: f64) -> Option<f64> {
        if self.random() < self.loss {
            return None;
        }
        if self.outages.is_some_and(|(period, length, from)| (at - from).rem_euclid(period) < length) {
            return None;
        }
        if let Some((begins, ends)) = self.bursts {
            let chance = if self.is_bad { ends } else { begins };
            self.is_bad ^= self.random() < chance;
            if self.is_bad {
                return None;
            }
        }
        if !self.police_last && !self.conforms(at, bytes) {
            return None;
        }
        while self.others_bps > 0.0 && self.others_at <= at {
            self.enter(self.others_at, 1500.0);
            // At random times: two even trains would always meet the queue at the same point.
            self.others_at -= (1.0 - self.random()).ln() * 1500.0 * 8e9 / self.others_bps;
        }
        self.enter(at, bytes).then_some(())?;
        if self.police_last && !self.conforms(self.busy_until, bytes) {
            return None;
        }
        if let Some((rate, burst)) = self.shape {
            let conforms_at = self.conforms_at.max(at - burst * 8e9 / rate) + bytes * 8e9 / rate;
            if (conforms_at - at) * rate / 8e9 > self.queue_bytes {
                return None;
            }
            self.conforms_at = conforms_at;
        }
        let out = self.busy_until.max(self.conforms_at) + self.delay_ns as f64 + self.random() * self.jitter_ns as f64;
        let stalled = self.stalls.map_or(0.0, |(period, length)| (length - out % period).max(0.0));
        Some(out + stalled)
    }

    pub(super) fn run(&mut self, step: &ProfileStep, begin: f64) -> (StepRecord, f64) {
        let bytes = f64::from(step.datagram_bytes + HEADER);
        // A sender's own link.
        let gap = if step.gap_ns == 0 { 2_000.0 } else { step.gap_ns as f64 };
        let mut arrivals = Vec::new();
        let mut sent = 0;
        let mut since_queue = 0;
        let (mut stopped, mut last) = (0.0, begin);
        for n in 0..step.datagrams {
            let mut at = begin + f64::from(n) * gap + stopped;
            if let Some((period, length)) = self.stops.filter(|(period, length)| at % period < *length) {
                stopped += length - at % period;
                at += length - at % period;
            }
            last = at;
            sent = n + 1;
            if let Some(out) = self.pass(at, bytes) {
                arrivals.push((n, out, out - at));
                if out - at > self.delay_ns as f64 + f64::from(step.stop_above_us) * 1e3 {
                    since_queue += 1;
                }
            }
            if step.stop_above_us > 0
                && !self.totals
                && ((since_queue >= 60 && f64::from(since_queue) * gap > 60e6)
                    || (n >= 60
                        && n as usize + 1 - arrivals.len() >= 100
                        && arrivals.last().is_some_and(|it| it.0 == n)))
            {
                break;
            }
        }
        let end = last + gap;
        let late_ns = if stopped > 0.0 { self.stops.map_or(0, |(_, length)| length as u64) } else { self.late_ns };
        let silent = self.silent && step.gap_ns == 0;
        let mut known = received(&arrivals, sent);
        if self.totals {
            let end = arrivals.last().map_or(0.0, |(.., delay)| *delay);
            let idle = self.delay_ns as f64 + bytes * 8e9 / self.rate_bps;
            known.span_ns = (last - begin + (end - idle).max(0.0)) as u64;
            (known.min_delay_ns, known.delays_ns) = (end as i64, [end as i64; 3]);
            known.first_missing = known.first_missing.map(|_| 0);
            known.parts.clear();
        }
        let record = StepRecord {
            at_us: 0,
            step: *step,
            sent: StepSent { datagrams: sent, span_ns: if silent { 0 } else { (last - begin) as u64 }, late_ns },
            received: Some(known),
        };
        (record, end.max(self.busy_until).max(self.conforms_at))
    }
}

pub(super) fn received(arrivals: &[(u32, f64, f64)], sent: u32) -> StepReceived {
    let Some(first) = arrivals.first() else { return StepReceived::default() };
    let width = sent.div_ceil(StepReceived::PARTS);
    let parts = (0..sent.div_ceil(width)).map(|part| {
        let from = arrivals.partition_point(|(n, ..)| n / width < part);
        let mut within: Vec<_> = arrivals[from..].iter().take_while(|(n, ..)| n / width == part).collect();
        within.sort_by(|a, b| a.2.total_cmp(&b.2));
        let last = within.iter().map(|(_, at, _)| *at).fold(first.1, f64::max);
        StepPart {
            from: part * width,
            received: within.len() as u32,
            last_ns: (last - first.1) as u64,
            delay_ns: within.get(within.len() / 2).map_or(0, |(.., delay)| *delay as i64),
        }
    });
    let seen: std::collections::HashSet<u32> = arrivals.iter().map(|(n, ..)| *n).collect();
    let mut missing = (0..sent).filter(|n| !seen.contains(n));
    let gaps = (0..sent).filter(|n| !seen.contains(n) && (*n == 0 || seen.contains(&(n - 1)))).count() as u32;
    let last = arrivals.iter().map(|(_, at, _)| *at).fold(first.1, f64::max);
    StepReceived {
        datagrams: arrivals.len() as u32,
        span_ns: (last - first.1) as u64,
        first_missing: missing.next(),
        gaps,
        min_delay_ns: arrivals.iter().map(|(.., delay)| *delay as i64).min().unwrap_or(0),
        parts: parts.collect(),
        ..StepReceived::default()
    }
}

pub(super) fn profile(path: &mut Path, start_bps: u64) -> (Shape, f64) {
    bounded(path, start_bps, ProfilePlan::MAX_BPS)
}

pub(super) fn bounded(path: &mut Path, start_bps: u64, max_bps: u64) -> (Shape, f64) {
    let (plan, record, seconds) = recorded(path, start_bps, max_bps);
    (Shape::of(&plan, &record).expect("steps"), seconds)
}

/// What such a profile records.
pub(super) fn recorded(path: &mut Path, start_bps: u64, max_bps: u64) -> (ProfilePlan, ProfileEndRecord, f64) {
    let plan = ProfilePlan { start_bps, max_bps, limit_ms: 8_000, ..ProfilePlan::default() };
    let probes: Vec<ProfileProbe> = (0..50)
        .map(|n| {
            let bytes = if n % 2 == 0 { 100 } else { BYTES };
            let serial = f64::from(bytes + HEADER) * 8e9 / path.rate_bps;
            let up_ns = (path.delay_ns as f64 + serial + path.random() * path.jitter_ns as f64) as i64;
            ProfileProbe { bytes, rtt_ns: up_ns as u64 * 2, up_ns, down_ns: up_ns }
        })
        .collect();
    let mut staircase = Staircase::new(&plan, HEADER, BYTES, &probes);
    let mut at = 0.0;
    let mut record = ProfileEndRecord {
        header_bytes: HEADER,
        datagram_bytes: BYTES,
        probes,
        ..ProfileEndRecord::empty(Place::Client)
    };
    while let Next::Step { step, wait_ns } = staircase.next(at as u64) {
        assert_eq!(step.check(plan.max_bps, HEADER), Ok(()));
        let (seen, end) = path.run(&step, at + wait_ns as f64);
        at = end + 2.0 * path.delay_ns as f64;
        record.steps.push(seen.clone());
        staircase.observe(seen);
        assert!(record.steps.len() < 60, "it ends");
    }
    (plan, record, at / 1e9)
}
