//! A simulated device under test and tester with their own clock, for testing the strategies.

use crate::search::{Search, Step};
use narrows_model::run::search::{GoalResult, Observation, Outcome, SearchPlan};
use std::time::Duration;

/// Random numbers from a seed (SplitMix64, Steele and others 2014).
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to below 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / 9_007_199_254_740_992.0
    }

    /// How many of `n` events happen, each with probability `p`: Poisson if few are expected, otherwise normal.
    fn hits(&mut self, n: f64, p: f64) -> f64 {
        let mean = n * p;
        if mean > 50.0 {
            let normal = (0..12).map(|_| self.unit()).sum::<f64>() - 6.0;
            return (mean + normal * (mean * (1.0 - p)).sqrt()).round().clamp(0.0, n);
        }
        let (mut hits, mut product, least) = (0.0, self.unit(), (-mean).exp());
        while product > least {
            product *= self.unit();
            hits += 1.0;
        }
        f64::min(hits, n)
    }
}

/// The device between the two ends of the tester, and the limits of the tester itself. Rates in packets/s.
#[derive(Debug, Clone)]
pub(crate) struct Device {
    /// Forwards this rate exactly, and drops the excess.
    pub(crate) capacity: f64,
    /// A policer's or a queue's bucket: this many packets above the capacity pass per trial.
    pub(crate) bucket: f64,
    /// The bucket is a queue: what it takes in delays what follows.
    pub(crate) delays: bool,
    /// A queue of this many packets with bursty arrivals (M/M/1/K): it drops near the capacity too.
    pub(crate) queue: Option<i32>,
    /// Each packet is lost with this probability.
    pub(crate) random_loss: f64,
    /// A trial suffers a hiccup with this probability, which loses a twentieth of its packets.
    pub(crate) hiccup: f64,
    /// The sender's maximum; the rest stays unsent.
    pub(crate) sender_max: f64,
    /// The receiver drops the excess.
    pub(crate) receiver_max: f64,
    /// A trial is invalid with this probability.
    pub(crate) stall: f64,
    /// Every trial above this load is invalid.
    pub(crate) stalls_above: f64,
    /// Overhead of a trial beyond its duration.
    pub(crate) overhead_ms: u64,
}

impl Device {
    /// A device with a capacity and no other limit.
    pub(crate) const fn of(capacity: f64) -> Self {
        Self {
            capacity,
            bucket: 0.0,
            delays: false,
            queue: None,
            random_loss: 0.0,
            hiccup: 0.0,
            sender_max: f64::INFINITY,
            receiver_max: f64::INFINITY,
            stall: 0.0,
            stalls_above: f64::INFINITY,
            overhead_ms: 100,
        }
    }

    /// The loss ratio of an M/M/1/K queue at a load.
    pub(crate) fn queue_loss(&self, load: f64) -> f64 {
        self.queue.map_or(0.0, |k| {
            let rho = load / self.capacity;
            if (rho - 1.0).abs() < 1e-9 {
                1.0 / f64::from(k + 1)
            } else {
                (1.0 - rho) * rho.powi(k) / (1.0 - rho.powi(k + 1))
            }
        })
    }

    pub(crate) fn trial(&self, load: f64, duration: Duration, dice: &mut Dice) -> Observation {
        let seconds = duration.as_secs_f64();
        let intended = (load * seconds).round();
        let sent = intended.min((self.sender_max * seconds).floor());
        let mut through = if self.queue.is_some() {
            sent - dice.hits(sent, self.queue_loss(sent / seconds))
        } else {
            sent.min((self.capacity * seconds + self.bucket).floor())
        };
        through -= dice.hits(through, self.random_loss);
        if dice.unit() < self.hiccup {
            through -= (sent / 20.0).ceil().min(through);
        }
        through = through.min((self.receiver_max * seconds).floor());
        let above = (sent - self.capacity * seconds).clamp(0.0, self.bucket);
        let delay_growth_us = self.delays.then(|| (above / self.capacity * 1e6) as i64);
        let invalid = (load > self.stalls_above || dice.unit() < self.stall).then(|| "the sender stalled".to_owned());
        let effective_ms = duration.as_millis() as u64 + self.overhead_ms;
        Observation {
            intended: intended as u64,
            offered: intended as u64,
            sent: sent as u64,
            received: through as u64,
            effective_ms,
            invalid,
            delay_growth_us,
            ..Observation::default()
        }
    }
}

#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) search: Search,
    pub(crate) results: Vec<GoalResult>,
    pub(crate) took: Duration,
}

impl Ended {
    /// The result of a goal by its index in the plan.
    pub(crate) fn lower(&self, goal: usize) -> f64 {
        self.results[goal].lower_pps.unwrap_or(0.0)
    }

    pub(crate) fn outcomes(&self) -> Vec<Outcome> {
        self.results.iter().map(|result| result.outcome).collect()
    }
}

/// Searches a device to the end, on a simulated clock. Asserts the invariants at every step.
pub(crate) fn search(plan: &SearchPlan, device: &Device, seed: u64) -> Ended {
    let mut dice = Dice::new(seed);
    run(plan, |load, duration| {
        let seen = device.trial(load, duration, &mut dice);
        match plan.least_growth() {
            Some(least) => seen.with_queue(least, duration.as_millis() as u64),
            None => seen,
        }
    })
}

/// The same with any tester.
pub(crate) fn run(plan: &SearchPlan, mut tester: impl FnMut(f64, Duration) -> Observation) -> Ended {
    let started = Duration::from_secs(1_000);
    let mut now = started;
    let mut search = Search::new(plan).expect("a sound plan");
    loop {
        let step = search.next(now);
        assert_eq!(search.next(now), step, "the same until something is observed");
        for bounds in search.bounds() {
            if let (Some(lower), Some(upper)) = (bounds.lower_pps, bounds.upper_pps) {
                assert!(lower < upper, "bounds crossed: {bounds:?}");
            }
        }
        match step {
            Step::Done(results) => return Ended { search, results, took: now - started },
            Step::Trial { load_pps, duration } => {
                assert!((plan.min_load_pps..=plan.max_load_pps).contains(&load_pps), "{load_pps} is out of the range");
                let seen = tester(load_pps, duration);
                now += Duration::from_millis(seen.effective_ms).max(duration);
                search.observe(seen, now).expect("asked for");
            }
        }
    }
}
