//! What holds of any run, however strange: nothing panics, accounts balance, and a verdict keeps its own rules.

use crate::causes::tcp::TABLE;
use crate::evidence::tcp::TcpEvidence;
use crate::experiments;
use crate::testing::profile::{Excess, ProfiledPath};
use crate::testing::{Hidden, Scene, fact};
use crate::{diagnose, report};
use narrows_model::host::fact::{Fact, Unit, Value};
use narrows_model::load::host::CpuTimes;
use narrows_model::load::tcp::BufferLock;
use narrows_model::load::tcp::{Limit, TcpPlan};
use narrows_model::run::{Attempt, Purpose, TrialRecord};
use narrows_model::{Direction, Family, LoadPlan, Run, Status};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng};

/// Makes anything at random. Scenes have too many fields for a tree of strategies to be of use in shrinking.
struct Anything(TestRng);

impl Anything {
    fn one_of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.0.random_range(0..all.len())].clone()
    }

    fn coin(&mut self) -> bool {
        self.0.random_bool(0.5)
    }

    /// Ordinary numbers and the ends of the range.
    fn number(&mut self) -> u64 {
        match self.0.random_range(0..6) {
            0 => 0,
            1 => 1,
            2 => self.0.random_range(2..10_000),
            3 => self.0.random_range(10_000..100_000_000),
            4 => u64::MAX,
            _ => self.0.random(),
        }
    }

    fn number32(&mut self) -> u32 {
        u32::try_from(self.number()).unwrap_or(u32::MAX)
    }

    fn rate(&mut self) -> f64 {
        match self.0.random_range(0..4) {
            0 => 0.0,
            1 => self.0.random_range(1.0..1e6),
            2 => 1e18,
            _ => self.0.random_range(1e6..1e11),
        }
    }

    fn share(&mut self) -> f64 {
        match self.0.random_range(0..4) {
            0 => 0.0,
            1 => 1.0,
            2 => self.0.random_range(1.0..5.0),
            _ => self.0.random_range(0.0..1.0),
        }
    }

    fn core(&mut self) -> CpuTimes {
        CpuTimes {
            cpu: 0,
            user_us: self.number(),
            system_us: self.number(),
            irq_us: self.number(),
            softirq_us: self.number(),
            steal_us: self.number(),
            idle_us: self.number(),
        }
    }

    /// Each fact that a rule reads, there or not, with any value of its unit.
    fn facts(&mut self) -> Vec<Fact> {
        let keys = TABLE.iter().flat_map(|cause| cause.needs).filter(|key| key.unit != Unit::Count);
        keys.filter_map(|key| {
            let value = match key.unit {
                Unit::Flag => Value::Flag(self.coin()),
                Unit::Text => Value::from(self.one_of(&["physical", "veth", "tun", "eth0", "cubic bbr", "fq"])),
                _ if self.coin() => Value::Integer(self.0.random()),
                _ if self.coin() => Value::from(self.rate()),
                _ => Value::from(self.number()),
            };
            self.0.random_bool(0.8).then(|| fact(key.name, value, key.unit))
        })
        .collect()
    }

    fn counts(&mut self) -> Vec<(&'static str, i64)> {
        let keys = TABLE.iter().flat_map(|cause| cause.needs).filter(|key| key.unit == Unit::Count);
        let keys: Vec<_> = keys.filter(|_| self.coin()).collect();
        keys.into_iter().map(|key| (key.name, i64::try_from(self.number()).unwrap_or(i64::MAX))).collect()
    }

    fn load(&mut self) -> TcpPlan {
        TcpPlan {
            streams: self.0.random_range(1..6),
            direction: self.one_of(&[Direction::Up, Direction::Down]),
            limit: if self.coin() { Limit::DurationMs(self.number()) } else { Limit::BytesPerStream(self.number()) },
            omit_ms: if self.coin() { 0 } else { self.number() },
            pacing_bps: self.coin().then(|| self.number()),
            receive_buffer_bytes: self.coin().then(|| self.number32()),
            ..TcpPlan::default()
        }
    }

    fn hidden(&mut self) -> &'static [Hidden] {
        use Hidden::{BufferLock, Cores, LimitedTimes, Mss, Options, RecvQ, Rtt, Segments, SocketMemory, Threads};
        self.one_of(&[
            &[] as &[Hidden],
            &[LimitedTimes],
            &[SocketMemory],
            &[BufferLock, RecvQ],
            &[Rtt],
            &[Cores, Threads],
            &[Options, Segments],
            &[Mss],
        ])
    }

    /// A path of any rate that does anything with what exceeds it.
    fn profiled(&mut self) -> ProfiledPath {
        let passes = self.number32() % 2_000;
        ProfiledPath {
            rate_bps: self.0.random_range(1e4..1e11),
            burst_bps: self.0.random_range(1e4..1e11),
            excess: self.one_of(&[Excess::Waits, Excess::WaitsAfter(passes), Excess::DroppedAfter(passes)]),
            one_lost_of: self.coin().then(|| 1 + self.number32() % 1_000),
            lost_run: 1,
            reordered: self.share(),
            idle_rtt_us: self.number() % 10_000_000,
            tried_bps: self.0.random_range(1e4..1e11),
            sends_bps: self.0.random_range(1e6..1e11),
            others_bps: if self.coin() { 0.0 } else { self.0.random_range(1e4..1e11) },
            outage: self.coin().then_some(1),
        }
    }

    /// Any scene: each field anywhere in the range of its type.
    fn scene(&mut self) -> Scene {
        Scene {
            goodput_bps: self.rate(),
            min_rtt_us: self.number(),
            rtt_us: self.number(),
            rtt_high_us: self.coin().then(|| self.number()),
            busy: self.share(),
            rwnd: self.share(),
            sndbuf: self.share(),
            recovery: self.share(),
            snd_wnd: self.number(),
            rcvbuf: self.number32(),
            sndbuf_bytes: self.number32(),
            queued: self.coin().then(|| self.number32()),
            recv_q: self.number32(),
            rcvbuf_filled: f64::from(self.number32() % 300) / 100.0,
            cwnd: self.number(),
            segments: self.number(),
            marked: self.share(),
            sender_waits: self.coin().then(|| self.share()),
            receiver_waits: self.coin().then(|| self.share()),
            lost: self.number(),
            lock: BufferLock { send: self.coin(), receive: self.coin() },
            options: self.0.random_range(0..16),
            mss: self.number(),
            max_pacing_bytes_s: self.number(),
            early_peak_bps: self.rate(),
            bucket_s: 0.0,
            congestion_control: self.one_of(&["cubic", "bbr", "reno", "dctcp"]),
            sender_thread: self.share(),
            receiver_thread: self.share(),
            sender_core: self.core(),
            receiver_core: self.core(),
            other_core: self.core(),
            sender_facts: self.facts(),
            receiver_facts: self.facts(),
            sender_counts: self.counts(),
            receiver_counts: self.counts(),
            load: self.load(),
            family: self.one_of(&[Family::Ipv4, Family::Ipv6]),
            unsent: self.number(),
            reverse_path: self.coin().then(|| self.profiled()),
            acks: self.coin().then(|| [self.number(), self.number()]),
            profile: self.coin().then(|| self.profiled()),
            starved: self.coin(),
            spurious: self.number(),
            reord_seen: self.number(),
            scales: self.coin().then(|| [self.number(), self.number()]),
            ramp: self.0.random_range(0.0..1.9),
            wobble: self.0.random_range(0.0..0.9),
            span_us: self.one_of(&[0, 1, 300_000, 8_000_000, u64::MAX]),
            hidden: self.hidden(),
            in_flight: self.coin().then(|| self.number()),
            below: self.number32(),
            first_ssthresh: self.coin().then(|| self.number()),
            write_bytes: self.number(),
            restarts: self.coin(),
        }
    }

    /// A scene near to an ordinary one, so that rules get past their first question: some groups of fields of any
    /// scene, the rest clean.
    fn near(&mut self) -> Scene {
        let (any, clean) = (self.scene(), Scene::default());
        let mut taken = || self.0.random_bool(0.3);
        let mut scene = clean;
        if taken() {
            scene = Scene { rwnd: any.rwnd, snd_wnd: any.snd_wnd, rcvbuf: any.rcvbuf, lock: any.lock, ..scene };
        }
        if taken() {
            scene = Scene { sndbuf: any.sndbuf, sndbuf_bytes: any.sndbuf_bytes, busy: any.busy, ..scene };
        }
        if taken() {
            scene = Scene { goodput_bps: any.goodput_bps, early_peak_bps: any.early_peak_bps, ..scene };
        }
        if taken() {
            scene = Scene { rtt_us: any.rtt_us, min_rtt_us: any.min_rtt_us, ..scene };
        }
        if taken() {
            scene = Scene { segments: any.segments, lost: any.lost, recovery: any.recovery, ..scene };
        }
        if taken() {
            scene = Scene { sender_facts: any.sender_facts, receiver_facts: any.receiver_facts, ..scene };
        }
        if taken() {
            scene = Scene { sender_core: any.sender_core, sender_thread: any.sender_thread, ..scene };
        }
        if taken() {
            scene = Scene { sender_counts: any.sender_counts, load: any.load, ..scene };
        }
        scene
    }

    fn run(&mut self) -> Run {
        let base = if self.coin() { self.scene() } else { self.near() };
        let other = if self.coin() { self.scene() } else { self.near() };
        let experiments: Vec<_> = experiments::TCP.iter().filter(|_| self.coin()).collect();
        let with: Vec<(&str, &Scene)> = experiments.iter().map(|experiment| (experiment.id, &other)).collect();
        let mut run = base.run(&with);
        if self.coin() {
            for (pair, fixed) in [(0, false), (1, false), (0, true), (1, true)] {
                let trial = if fixed { other.trial() } else { base.trial() };
                run.trials.push(TrialRecord { purpose: Purpose::Proof { round: 0, pair, fixed }, at_us: 0, trial });
            }
            run.attempts.push(Attempt {
                round: 0,
                cause: "tcp-receive-window".into(),
                predicted_bps: u64::MAX,
                predicted_interval_bps: Some([0, u64::MAX]),
                changes: Vec::new(),
                load: None,
                kept_for_next_round: false,
            });
        }
        run
    }
}

/// The run of that seed: a failure prints the seed and not a thousand samples.
fn run_of(seed: u64) -> Run {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    Anything(TestRng::from_seed(RngAlgorithm::ChaCha, &bytes)).run()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_run_is_diagnosed_without_panic_and_within_the_rules_of_a_verdict(seed: u64) {
        let run = run_of(seed);
        let Some(diagnosis) = diagnose(&run, 0) else { return Ok(()) };
        if let Some(budget) = diagnosis.accounts.time_budget {
            let parts = [
                budget.app_idle, budget.receive_window, budget.send_buffer, budget.congestion_window, budget.recovery,
                budget.unexplained,
            ];
            prop_assert!(parts.iter().all(|part| (0.0..=1.0).contains(part)), "{budget:?}");
            prop_assert!((parts.iter().sum::<f64>() - 1.0).abs() < 1e-6, "{budget:?}");
        }
        let ceilings = &diagnosis.accounts.roofline;
        prop_assert!(ceilings.is_sorted_by(|low, high| low.bps <= high.bps));
        for ceiling in ceilings {
            let [low, high] = ceiling.interval_bps;
            prop_assert!(ceiling.bps.is_finite() && low.is_finite() && high.is_finite(), "{ceiling:?}");
            prop_assert!(low <= ceiling.bps && ceiling.bps <= high, "{ceiling:?}");
        }
        let verdict = &diagnosis.verdict;
        prop_assert!(verdict.goodput_bps.is_finite());
        for cause in &verdict.causes {
            prop_assert!((0.0..=1.0).contains(&cause.confidence), "{cause:?}");
            prop_assert!(cause.ceiling_bps.is_none_or(f64::is_finite), "{cause:?}");
            if let Some(prediction) = &cause.prediction {
                let [low, high] = prediction.interval_bps.unwrap_or([prediction.bps; 2]);
                prop_assert!([low, prediction.bps, high].iter().all(|bps| bps.is_finite()), "{prediction:?}");
                prop_assert!((&prediction.then, prediction.then_at) != (&cause.id, cause.at), "{cause:?}");
            }
        }
        match verdict.status {
            Status::Limited => prop_assert!(verdict.causes[0].witnesses.len() >= 2, "{:?}", verdict.causes[0]),
            Status::Healthy => {
                prop_assert!(verdict.causes.iter().all(|cause| cause.fix.commands.is_empty()), "{:?}", verdict.causes);
            }
            Status::Suspected => prop_assert!(verdict.causes[0].confidence <= 0.5, "{:?}", verdict.causes[0]),
            Status::Unknown => prop_assert!(verdict.causes.is_empty(), "{:?}", verdict.causes),
        }
    }

    #[test]
    fn any_run_is_reported_and_its_json_reads_back_as_it_was(seed: u64) {
        let run = run_of(seed);
        let Some(report) = report(&run) else { return Ok(()) };
        // A number that JSON cannot hold (not a number, infinite) would read back as nothing, or not at all.
        let text = serde_json::to_string(&report).expect("a report is plain data");
        let back: narrows_model::Report = serde_json::from_str(&text).expect("what was written");
        prop_assert_eq!(back, report);
    }

    #[test]
    fn an_experiment_that_is_wanted_has_a_sound_plan_or_none(seed: u64) {
        let run = run_of(seed);
        let Some(diagnosis) = diagnose(&run, 0) else { return Ok(()) };
        let evidence = TcpEvidence::of(&run, 0).expect("a baseline");
        for planned in diagnosis.next {
            prop_assert!(!evidence.experiments.contains_key(planned.id));
            match planned.plan {
                LoadPlan::Tcp(plan) => {
                    prop_assert!(plan.streams >= evidence.load.streams && plan.streams <= TcpPlan::MAX_STREAMS);
                    let short = matches!(plan.limit, Limit::DurationMs(ms) if ms <= 6_600 && plan.omit_ms < ms);
                    prop_assert!(short, "{plan:?}");
                }
                plan => prop_assert_eq!(plan.check(), Ok(())),
            }
        }
    }
}
