//! Profiles of simulated paths: a queue, a policer, random loss, jitter.

use super::{Next, Plateau, Shape, Staircase};
use narrows_model::{
    Direction, Place, ProfileEndRecord, ProfilePlan, ProfileProbe, ProfileStep, StepPart, StepReceived, StepRecord,
    StepSent,
};
use proptest::prelude::*;

const HEADER: u32 = 28;
const BYTES: u32 = 1472;

/// A path: a policer before a queue before a delay.
#[derive(Debug, Clone)]
struct Path {
    rate_bps: f64,
    queue_bytes: f64,
    police: Option<(f64, f64)>,
    /// A token bucket that delays what exceeds it: bit/s and bytes; it is full at first.
    shape: Option<(f64, f64)>,
    conforms_at: f64,
    loss: f64,
    jitter_ns: u64,
    delay_ns: u64,
    /// A host on the way stalls once in so many ns, for so many ns.
    stalls: Option<(f64, f64)>,
    /// How far the sender falls behind in each step.
    late_ns: u64,
    /// The sender stops once in so many ns, for so many ns, and goes on from there.
    stops: Option<(f64, f64)>,
    seed: u64,
    tokens: f64,
    tokens_at: f64,
    busy_until: f64,
}

impl Path {
    fn new(rate_bps: f64, queue_bytes: f64) -> Self {
        Self {
            rate_bps,
            queue_bytes,
            police: None,
            shape: None,
            conforms_at: f64::MIN,
            loss: 0.0,
            jitter_ns: 0,
            delay_ns: 10_000_000,
            stalls: None,
            late_ns: 0,
            stops: None,
            seed: 88_172_645_463_325_252,
            tokens: f64::MAX,
            tokens_at: 0.0,
            busy_until: 0.0,
        }
    }

    fn random(&mut self) -> f64 {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        (self.seed >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// When a packet that enters at `at` leaves, in ns; `None` where it is lost.
    fn pass(&mut self, at: f64, bytes: f64) -> Option<f64> {
        if self.random() < self.loss {
            return None;
        }
        if let Some((rate, burst)) = self.police {
            self.tokens = (self.tokens.min(burst) + (at - self.tokens_at) * rate / 8e9).min(burst);
            self.tokens_at = at;
            if self.tokens < bytes {
                return None;
            }
            self.tokens -= bytes;
        }
        let start = at.max(self.busy_until);
        if (start - at) * self.rate_bps / 8e9 + bytes > self.queue_bytes {
            return None;
        }
        self.busy_until = start + bytes * 8e9 / self.rate_bps;
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

    fn run(&mut self, step: &ProfileStep, begin: f64) -> (StepRecord, f64) {
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
                && ((since_queue >= 60 && f64::from(since_queue) * gap > 60e6)
                    || (n >= 60 && n as usize + 1 - arrivals.len() >= 100))
            {
                break;
            }
        }
        let end = last + gap;
        let late_ns = if stopped > 0.0 { self.stops.map_or(0, |(_, length)| length as u64) } else { self.late_ns };
        let record = StepRecord {
            at_us: 0,
            step: *step,
            sent: StepSent { datagrams: sent, span_ns: (last - begin) as u64, late_ns },
            received: Some(received(&arrivals, sent)),
        };
        (record, end.max(self.busy_until).max(self.conforms_at))
    }
}

fn received(arrivals: &[(u32, f64, f64)], sent: u32) -> StepReceived {
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

fn profile(path: &mut Path, start_bps: u64) -> (Shape, f64) {
    bounded(path, start_bps, ProfilePlan::MAX_BPS)
}

fn bounded(path: &mut Path, start_bps: u64, max_bps: u64) -> (Shape, f64) {
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
    (Shape::of(&plan, &record).expect("steps"), at / 1e9)
}

fn near(value: f64, truth: f64, part: f64) -> bool {
    (value / truth - 1.0).abs() <= part
}

#[test]
fn a_queue_is_a_plateau_with_delay() {
    let (shape, seconds) = profile(&mut Path::new(100e6, 200_000.0), 90_000_000);
    let capacity = shape.capacity.expect("saturated");
    assert!(near(capacity.bps, 100e6, 0.02), "{capacity:?}");
    assert_eq!(shape.plateau, Some(Plateau::Queue));
    assert_eq!(shape.lost_below, 0);
    assert!(seconds < 3.0, "{seconds}");
}

#[test]
fn a_queue_that_fills_slowly_shows_the_capacity_where_a_host_can_do_no_more() {
    let mut path = Path { jitter_ns: 300_000, ..Path::new(435e6, 4e6) };
    let (shape, _) = bounded(&mut path, 300_000_000, 447_000_000);
    let capacity = shape.capacity.expect("its queue fills");
    assert!(near(capacity.bps, 435e6, 0.01), "{capacity:?}");
    assert_eq!(shape.plateau, Some(Plateau::Queue));
}

#[test]
fn a_sender_that_is_late_in_every_step_still_shows_where_far_less_arrives() {
    let mut path = Path { police: Some((25e6, 60_000.0)), late_ns: 20_000_000, ..Path::new(170e6, 200_000.0) };
    let (shape, _) = profile(&mut path, 28_000_000);
    assert!(near(shape.capacity.expect("a plateau").bps, 25e6, 0.05), "{:?}", shape.capacity);
    assert!(!matches!(shape.plateau, Some(Plateau::Queue | Plateau::Shaper { .. })), "{:?}", shape.plateau);
}

#[test]
fn a_queue_that_outlasts_the_stops_of_the_sender_shows_the_capacity() {
    for (rate_bps, period_ms, length_ms) in [(6e6, 90, 8), (40e6, 60, 6), (200e6, 45, 4)] {
        let stops = Some((f64::from(period_ms) * 1e6, f64::from(length_ms) * 1e6));
        let queue_bytes = rate_bps / 8.0 * 0.035;
        let (shape, _) = profile(&mut Path { stops, ..Path::new(rate_bps, queue_bytes) }, (0.8 * rate_bps) as u64);
        assert!(shape.capacity.is_some(), "{rate_bps}: {shape:#?}");
        assert!(near(shape.capacity.expect("saturated").bps, rate_bps, 0.03), "{rate_bps}: {:?}", shape.capacity);
        assert_eq!(shape.plateau, Some(Plateau::Queue), "{rate_bps}: {shape:#?}");
    }
}

#[test]
fn a_limit_far_above_what_tcp_got_is_found() {
    let (shape, seconds) = profile(&mut Path::new(950e6, 500_000.0), 20_000_000);
    assert!(near(shape.capacity.expect("saturated").bps, 950e6, 0.02));
    assert!(seconds < 4.5, "{seconds}");
}

#[test]
fn a_policer_loses_at_once_what_a_link_that_bursts_pass_would_carry() {
    let mut path = Path { police: Some((40e6, 50_000.0)), ..Path::new(300e6, 300_000.0) };
    let (shape, _) = profile(&mut path, 25_000_000);
    assert!(near(shape.capacity.expect("saturated").bps, 40e6, 0.03), "{:?}", shape.capacity);
    assert!(shape.burst_bps.is_some_and(|bps| near(bps, 300e6, 0.1)), "{:?}", shape.burst_bps);
    let Some(Plateau::Policer { bucket_bytes }) = shape.plateau else { panic!("{:?}", shape.plateau) };
    assert!(near(bucket_bytes, 50_000.0, 0.25), "{bucket_bytes}");
}

#[test]
fn what_a_deep_bucket_lets_pass_is_not_sustained() {
    for rate_bps in [20e6, 100e6] {
        for seconds in [0.02, 0.2, 0.5, 1.0] {
            let bucket_bytes = rate_bps / 8.0 * seconds;
            let police = Path { police: Some((rate_bps, bucket_bytes)), ..Path::new(1e9, 500_000.0) };
            let shape = Path { shape: Some((rate_bps, bucket_bytes)), ..Path::new(1e9, rate_bps / 8.0 * 0.2) };
            for mut path in [police, shape] {
                let (shape, _) = profile(&mut path, (0.95 * rate_bps) as u64);
                let case = format!("{rate_bps} bit/s, a bucket of {seconds} s: {shape:#?}");
                assert!(near(shape.capacity.expect("saturated").bps, rate_bps, 0.03), "{case}");
                assert!(shape.carried_bps <= 1.03 * rate_bps, "{case}");
                match path.police {
                    Some(_) => assert!(matches!(shape.plateau, Some(Plateau::Policer { .. })), "{case}"),
                    None => assert!(matches!(shape.plateau, Some(Plateau::Shaper { .. })), "{case}"),
                }
            }
        }
    }
}

#[test]
fn delivered_rate_and_loss_are_of_one_part_of_a_step() {
    // A bucket that lets much of each step pass: the loss of the whole step says nothing of the rate behind it.
    for seconds in [0.02, 0.1, 0.2] {
        let mut path = Path { police: Some((40e6, 40e6 / 8.0 * seconds)), ..Path::new(1e9, 500_000.0) };
        let (shape, _) = profile(&mut path, 38_000_000);
        let behind: Vec<_> = shape.steps.iter().filter(|step| step.saturated(0.0) && !step.unsettled).collect();
        assert!(behind.len() >= 2, "{shape:#?}");
        for step in behind {
            let rest = 1.0 - step.sustained_bps / step.offered_bps;
            assert!((step.sustained_loss - rest).abs() < 0.03, "{rest}: {step:#?}");
        }
    }
    // At random it is the same part of any step.
    let (shape, _) = profile(&mut Path { loss: 0.1, ..Path::new(40e6, 400_000.0) }, 20_000_000);
    for step in shape.steps.iter().filter(|step| step.sustained_count >= 100 && !step.saturated(0.1)) {
        assert!(near(step.sustained_loss, 0.1, 0.6) && near(step.loss(), 0.1, 0.6), "{step:#?}");
    }
}

#[test]
fn longer_trains_tell_the_link_before_a_policer_with_a_deep_bucket() {
    let mut path = Path { police: Some((40e6, 200_000.0)), jitter_ns: 40_000, ..Path::new(900e6, 400_000.0) };
    let (shape, _) = profile(&mut path, 25_000_000);
    assert!(shape.burst_bps.is_some_and(|bps| near(bps, 900e6, 0.1)), "{:?}", shape.burst_bps);
    assert!(matches!(shape.plateau, Some(Plateau::Policer { .. })), "{:?}", shape.plateau);
}

#[test]
fn hosts_that_stall_make_no_shaper_and_no_policer() {
    for (period_ms, length_ms) in [(400, 20), (170, 12), (90, 4), (1_300, 60)] {
        let stalls = Some((f64::from(period_ms) * 1e6, f64::from(length_ms) * 1e6));
        let (shape, _) = profile(&mut Path { stalls, ..Path::new(50e6, 400_000.0) }, 40_000_000);
        assert_eq!(shape.plateau, Some(Plateau::Queue), "{period_ms} ms, {length_ms} ms: {shape:#?}");
        assert!(near(shape.capacity.expect("saturated").bps, 50e6, 0.05), "{period_ms}: {:?}", shape.capacity);
    }
}

#[test]
fn a_full_queue_is_no_loss_at_any_rate_where_only_late_steps_left_it_empty() {
    let mut path = Path { delay_ns: 1_000_000, ..Path::new(24.2e6, 26_000.0) };
    let mut record =
        ProfileEndRecord { header_bytes: HEADER, datagram_bytes: BYTES, ..ProfileEndRecord::empty(Place::Client) };
    let mut at = 0.0;
    for (mbps, late_ms) in [(28.7, 0), (27.5, 0), (26.8, 0), (20.6, 22), (20.6, 25)] {
        let gap_ns = (f64::from(BYTES + HEADER) * 8e3 / mbps) as u64;
        let step = ProfileStep { id: 0, gap_ns, datagrams: 600, datagram_bytes: BYTES, stop_above_us: 0 };
        path.late_ns = late_ms * 1_000_000;
        let (seen, end) = path.run(&step, at);
        record.steps.push(seen);
        at = end + 100e6;
    }
    let shape = Shape::of(&ProfilePlan::default(), &record).expect("steps");
    assert_eq!(shape.plateau, Some(Plateau::Queue), "{shape:#?}");
    assert!(near(shape.capacity.expect("saturated").bps, 24.2e6, 0.02), "{:?}", shape.capacity);
}

#[test]
fn loss_at_any_rate_is_no_limit_of_the_rate() {
    for loss in [0.004, 0.03, 0.12] {
        let (shape, _) = profile(&mut Path { loss, ..Path::new(100e6, 300_000.0) }, 20_000_000);
        assert!(near(shape.capacity.expect("saturated").bps, 100e6, 0.04), "{loss}: {:?}", shape.capacity);
        assert!((0.5..1.8).contains(&(shape.loss_below() / loss)), "{loss}: {}", shape.loss_below());
    }
}

#[test]
fn a_path_without_a_limit_in_reach_is_said_to_carry_at_least_what_was_tried() {
    let plan = ProfilePlan { start_bps: 10_000_000, max_bps: 50_000_000, limit_ms: 8_000, ..ProfilePlan::default() };
    let mut path = Path::new(1e9, 300_000.0);
    let mut staircase = Staircase::new(&plan, HEADER, BYTES, &[]);
    let mut record =
        ProfileEndRecord { header_bytes: HEADER, datagram_bytes: BYTES, ..ProfileEndRecord::empty(Place::Client) };
    let mut at = 0.0;
    while let Next::Step { step, .. } = staircase.next(at as u64) {
        let (seen, end) = path.run(&step, at);
        at = end;
        record.steps.push(seen.clone());
        staircase.observe(seen);
    }
    let shape = Shape::of(&plan, &record).expect("steps");
    assert_eq!((shape.capacity, shape.plateau), (None, None));
    assert!(near(shape.carried_bps, 50e6, 0.02), "{}", shape.carried_bps);
}

#[test]
fn steps_whose_account_is_lost_end_the_profile() {
    let plan = ProfilePlan { direction: Direction::Down, ..ProfilePlan::default() };
    let mut staircase = Staircase::new(&plan, HEADER, BYTES, &[]);
    let mut steps = 0;
    while let Next::Step { step, .. } = staircase.next(0) {
        staircase.observe(StepRecord { at_us: 0, step, sent: StepSent::default(), received: None });
        steps += 1;
    }
    assert!(steps <= 6, "{steps}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn capacity_is_within_3_percent_of_the_truth(
        mbps in 2.0..2_000.0_f64, bdp in 0.3..4.0_f64, part in 0.1..1.2_f64, jitter_ms in 0_u64..4, delay_ms in 1_u64..80,
    ) {
        let rate = mbps * 1e6;
        let queue = (rate / 8.0 * (2.0 * delay_ms as f64 / 1e3) * bdp).max(30_000.0);
        let mut path = Path { jitter_ns: jitter_ms * 100_000, delay_ns: delay_ms * 1_000_000, ..Path::new(rate, queue) };
        let (shape, seconds) = profile(&mut path, ((rate * part) as u64).max(100_000));
        let capacity = shape.capacity.expect("saturated");
        prop_assert!(near(capacity.bps, rate, 0.03), "{capacity:?} of {rate}");
        prop_assert!(seconds < 12.0, "{}", seconds);
    }
}
