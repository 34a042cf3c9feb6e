//! A search as a user specifies it. Its plan follows when the datagram size of the path and the rate of the tester are known.

use super::{Watch, first_look, qualify, search, unit};
use crate::ends::{Ends, EndsError, On, TrialFailed};
use crate::measure;
use narrows_diagnose::evidence::profile::PathProfile;
use narrows_diagnose::experiments::profile::PATH_PROFILE;
use narrows_model::run::search::{SearchRecord, Spent};
use narrows_model::run::search_report::LoadUnit;
use narrows_model::run::{Ending, Purpose, RunPlan, SearchOrder, TrialRecord};
use narrows_model::words::units;
use narrows_model::{
    DatagramSizes, Direction, Family, Flow, Goal, ProfilePlan, Run, SearchMethod, SearchPlan, Target, UdpPlan, UdpRate,
};
use narrows_search::SearchError;
use narrows_search::profile::Plateau;
use narrows_sys::clock;
use std::time::Instant;
use thiserror::Error;

/// What is searched, in the user's units.
#[derive(Debug, Clone)]
pub struct SearchSpec {
    /// The load in one direction; each trial has its own rate.
    pub load: UdpPlan,
    /// Lowest load; `None`: a thousandth of the highest.
    pub min: Option<UdpRate>,
    /// Highest load; `None`: the rate of the tester.
    pub max: Option<UdpRate>,
    /// Whether the rate of the tester is measured first.
    pub calibrate: bool,
    /// Whether the path is profiled first; only MLRsearch begins at its capacity.
    pub profile: bool,
    /// Whether a shorter duration sum than the goals' decides where the result agrees with a second witness.
    pub shorten: bool,
    /// Whether what a queue takes in counts as not forwarded.
    pub sustained: bool,
    /// How loads are chosen.
    pub method: SearchMethod,
    pub goals: Vec<Goal>,
    /// Time limit of the search.
    pub max_search_ms: u64,
}

/// Why a search did not start.
#[derive(Debug, Error)]
pub enum SpecError {
    /// The specification cannot be searched.
    #[error("{0}")]
    Plan(String),
    /// A trial before the search failed.
    #[error(transparent)]
    Ends(#[from] EndsError),
    /// The search refused its plan.
    #[error(transparent)]
    Search(#[from] SearchError),
}

impl SearchSpec {
    fn plan(&self, tester_max_pps: Option<f64>, unit: &LoadUnit) -> Result<SearchPlan, SpecError> {
        let pps = |rate: UdpRate| match rate {
            UdpRate::Bps(bps) => Some(bps as f64 / (8.0 * unit.payload_bytes)),
            UdpRate::Pps(pps) => Some(pps),
            UdpRate::Max => None,
        };
        let max = self.max.and_then(pps).or(tester_max_pps).ok_or_else(|| {
            SpecError::Plan("the maximum load is unknown without tester calibration; give it with --max".to_owned())
        })?;
        let min =
            self.min.and_then(pps).unwrap_or_else(|| if max > 10.0 { (max / 1000.0).max(10.0) } else { max / 1000.0 });
        if min > max {
            let bps = |pps: f64| units::bps(pps * unit.payload_bytes * 8.0);
            let (min, max) = (bps(min), bps(max));
            return Err(SpecError::Plan(format!("the minimum load, {min}, is above the maximum load, {max}")));
        }
        let plan = SearchPlan {
            tester_max_pps,
            method: self.method,
            goals: self.goals.clone(),
            max_search_ms: self.max_search_ms,
            sustained: self.sustained,
            ..SearchPlan::between(min, max)
        };
        plan.check().map_err(SpecError::Plan)?;
        Ok(plan)
    }

    /// How far its profile goes, bits of IP packets a second; `None`: as far as it can. `assumed`: datagrams of Ethernet, where the path's
    /// are not known yet.
    fn profile_bps(&self, assumed: &LoadUnit, family: Family) -> Option<f64> {
        let packet_bits = packet_bytes(assumed, family) * 8.0;
        match self.max? {
            UdpRate::Bps(bps) => Some(BEYOND * bps as f64 / (8.0 * assumed.payload_bytes) * packet_bits),
            UdpRate::Pps(pps) => Some(BEYOND * pps * packet_bits),
            UdpRate::Max => None,
        }
    }
}

/// The profile that a search starts with; its first rate is far below most paths, and costs little on those below it.
const PROFILE: ProfilePlan =
    ProfilePlan { direction: Direction::Up, start_bps: 10_000_000, max_bps: ProfilePlan::MAX_BPS, limit_ms: 2_500 };
/// The steps of a profile go this far beyond the highest load that the user gave: a capacity shows above it only.
const BEYOND: f64 = 1.2;

/// A datagram that Ethernet carries in one packet over IPv4.
const ETHERNET: u32 = 1_472;

/// Bytes of IP packet of a datagram.
fn packet_bytes(unit: &LoadUnit, family: Family) -> f64 {
    unit.payload_bytes + f64::from(family.header_bytes()) + 8.0
}

/// Profiles the path; `None` where it cannot be profiled, which ends no search.
fn profile(
    ends: &mut dyn Ends,
    flow: Flow,
    max_bps: Option<f64>,
    began: Instant,
) -> Result<Option<TrialRecord>, EndsError> {
    let max_bps = max_bps.map_or(PROFILE.max_bps, |bps| bps as u64).clamp(ProfilePlan::MIN_BPS, ProfilePlan::MAX_BPS);
    let start_bps = PROFILE.start_bps.min(max_bps);
    let plan = ProfilePlan { direction: flow.direction(), max_bps, start_bps, ..PROFILE };
    let at_us = clock::micros_since(began);
    match ends.trial(&plan.into(), On::Path, &mut |_, _| {}) {
        Ok(trial) => {
            let purpose = Purpose::Experiment { round: 0, id: PATH_PROFILE.id.to_owned() };
            Ok(Some(TrialRecord { purpose, at_us, trial }))
        }
        Err(TrialFailed { why: EndsError::Failed(_), .. }) => Ok(None),
        Err(TrialFailed { why: EndsError::Lost(_), .. }) => ends.renew().map(|()| None),
        Err(TrialFailed { why: EndsError::Interrupted, .. }) => Err(EndsError::Interrupted),
    }
}

/// The capacity interval of a run's profile in datagrams per second of a search, and in microseconds what hides an excess: a bucket, and
/// the queue where the search does not count what waits in it. The path may
/// limit bits of IP packets or bits on the wire: for datagrams of another size than the profile's the interval holds both.
fn hint(run: &Run, flow: Flow, unit: &LoadUnit, family: Family, sustained: bool) -> Option<([f64; 2], f64)> {
    let shape = PathProfile::of(run, 0, flow)?.shape;
    let capacity = shape.capacity?;
    let (_, trial) = run.trials_of::<ProfilePlan>().last()?;
    let seen = LoadUnit::datagram(trial.client.datagram_bytes, family);
    let bucket_us = match shape.plateau {
        Some(Plateau::Shaper { bucket_bytes } | Plateau::Policer { bucket_bytes }) => bucket_bytes * 8e6 / capacity.bps,
        Some(Plateau::Queue | Plateau::ShortQueue) | None => 0.0,
    };
    let queue_us = if sustained { 0.0 } else { shape.queue_us };
    Some((datagrams(capacity.interval_bps, &seen, unit, family), queue_us + bucket_us))
}

/// An interval of bits of IP packets per second, seen with one datagram, in datagrams per second of another.
fn datagrams([least, most]: [f64; 2], seen: &LoadUnit, unit: &LoadUnit, family: Family) -> [f64; 2] {
    let by_packet = 1.0 / (8.0 * packet_bytes(unit, family));
    let by_wire = seen.wire_bytes / packet_bytes(seen, family) / (8.0 * unit.wire_bytes);
    [least * by_packet.min(by_wire), most * by_packet.max(by_wire)]
}

/// What the parts of a search take.
struct Clock {
    last: Instant,
    spent: Vec<Spent>,
}

impl Clock {
    fn lap(&mut self, what: &str) {
        let ms = u64::try_from(self.last.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.spent.extend((ms > 0).then(|| Spent { what: what.to_owned(), ms }));
        self.last = clock::now();
    }
}

/// Measures what the plan needs, searches, and returns the run. `begin` is called with the resolved plan before the first trial.
/// Errors: [`SpecError`], where nothing was searched. A search that broke off says so in the run's ending.
pub fn run(
    ends: &mut dyn Ends,
    spec: &SearchSpec,
    target: Target,
    name: (String, String),
    begin: &mut dyn FnMut(&SearchOrder),
    watch: Watch<'_>,
) -> Result<Run, SpecError> {
    let family = target.family;
    let (began, started_unix_us) = (clock::now(), clock::unix_us());
    let idle_rtt_us = ends.idle_rtt_us();
    let flow = spec.load.flows().first().copied().unwrap_or(Flow::Up);
    let assumed = unit(&spec.load.sizes, ETHERNET, family);
    let given = matches!(spec.max, Some(UdpRate::Bps(_) | UdpRate::Pps(_)));
    // What does not depend on the path is said before anything is sent.
    if !spec.calibrate && !given || given && spec.load.sizes != DatagramSizes::Largest {
        spec.plan(None, &assumed)?;
    }
    let mut clock = Clock { last: began, spent: Vec::new() };
    // A size that the user chose may not pass: nothing else is sent before that is known.
    let looked = match &spec.load.sizes {
        DatagramSizes::Sequence(_) => Some(first_look(ends, &spec.load, flow)?),
        DatagramSizes::Largest => None,
    };
    clock.lap("first datagrams");
    let profiled = if spec.profile && spec.method == SearchMethod::Mlr {
        let profiled = profile(ends, flow, spec.profile_bps(&assumed, family), began)?;
        clock.lap("path profile");
        if ends.stopped() {
            return Err(EndsError::Interrupted.into());
        }
        profiled
    } else {
        None
    };
    // A profile sends no larger datagrams than that.
    let by_profile = profiled.as_ref().and_then(|it| it.trial.of::<ProfilePlan>()).map(|it| it.client.datagram_bytes);
    let bytes = match looked.or(by_profile.filter(|bytes| *bytes < ProfilePlan::MAX_DATAGRAM_BYTES)) {
        Some(bytes) => bytes,
        None => first_look(ends, &spec.load, flow)?,
    };
    clock.lap("first datagrams");
    let unit = unit(&spec.load.sizes, bytes, family);
    let tester_max_pps = if spec.calibrate { Some(qualify(ends, &spec.load, bytes)?) } else { None };
    clock.lap("calibration of the tester");
    let plan = spec.plan(tester_max_pps, &unit)?;
    let mut order = SearchOrder { load: spec.load.clone(), unit, plan };
    let empty = measure::empty_run(RunPlan::Search(order.clone()), target, name);
    let mut run = Run { started_unix_us, idle_rtt_us, trials: profiled.into_iter().collect(), ..empty };
    if !run.trials.is_empty() {
        let hint = hint(&run, flow, &unit, family, spec.sustained);
        // A thousandth of what the tester does may be more than the path carries.
        if let (None, Some(([least_pps, _], _))) = (spec.min, hint) {
            order.plan.min_load_pps =
                order.plan.min_load_pps.min((0.1 * least_pps).max(10.0)).min(order.plan.max_load_pps);
        }
        let hinted = hint
            .map(|(interval_pps, buffer_us)| order.plan.clone().from_profile(interval_pps, buffer_us, spec.shorten));
        // A limit of the search may be too short for trials that empty the bucket, or fill the queue.
        order.plan = hinted.filter(|plan| plan.check().is_ok()).unwrap_or(order.plan);
    }
    if order.plan.hint.is_none_or(|hint| hint.agreed_sum_ms.is_none()) && spec.shorten && spec.sustained {
        order.plan = order.plan.without_profile();
    }
    begin(&order);
    let searched = search(ends, &order.load, flow, &order.plan, watch)?;
    clock.last = clock::now();
    if !matches!(searched.ending, Ending::Failed(_)) {
        measure::take_inventories(ends, &mut run);
        clock.lap("inventories");
    }
    let search = SearchRecord { spent: clock.spent, ..searched.record };
    Ok(Run { plan: RunPlan::Search(order), search: Some(search), ending: searched.ending, ..run })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(min: Option<UdpRate>, max: Option<UdpRate>) -> SearchSpec {
        SearchSpec {
            load: UdpPlan::default(),
            min,
            max,
            calibrate: false,
            profile: false,
            shorten: true,
            sustained: true,
            method: SearchMethod::Mlr,
            goals: vec![Goal::ndr()],
            max_search_ms: 60_000,
        }
    }

    const UNIT: LoadUnit = LoadUnit { payload_bytes: 1_000.0, wire_bytes: 1_066.0 };

    #[test]
    fn rates_become_datagrams_a_second() {
        let plan = spec(Some(UdpRate::Pps(50.0)), Some(UdpRate::Bps(8_000_000))).plan(None, &UNIT).expect("a plan");
        assert_eq!((plan.min_load_pps, plan.max_load_pps), (50.0, 1_000.0));
    }

    #[test]
    fn the_rate_of_the_tester_is_the_highest_load_where_none_is_given() {
        let plan = spec(None, None).plan(Some(200_000.0), &UNIT).expect("a plan");
        assert_eq!((plan.min_load_pps, plan.max_load_pps), (200.0, 200_000.0));
        assert_eq!(plan.tester_max_pps, Some(200_000.0));
    }

    #[test]
    fn a_capacity_becomes_datagrams_of_the_search() {
        let unit = |bytes| LoadUnit::datagram(bytes, Family::Ipv4);
        let interval = |bytes| datagrams([99e6, 101e6], &unit(1472), &unit(bytes), Family::Ipv4);
        let same = interval(1472).map(|pps| (pps * 12_000.0).round());
        assert_eq!(same, [99e6, 101e6]);
        // 92 bytes of IP packet and 130 on the wire: as many bits of packets, or as many on the wire as 1,538 of 1,500 bytes.
        let [least, most] = interval(64);
        assert!((least - 99e6 * 1538.0 / 1500.0 / 8.0 / 130.0).abs() < 1e-6, "{least}");
        assert!((most - 101e6 / 8.0 / 92.0).abs() < 1e-6, "{most}");
    }

    #[test]
    fn a_range_that_cannot_be_is_refused() {
        let refused = |min, max| spec(min, max).plan(None, &UNIT).expect_err("no range").to_string();
        assert_eq!(refused(None, None), "the maximum load is unknown without tester calibration; give it with --max");
        assert_eq!(
            refused(Some(UdpRate::Bps(2_000_000)), Some(UdpRate::Bps(1_000_000))),
            "the minimum load, 2.00 Mbit/s, is above the maximum load, 1.00 Mbit/s"
        );
    }
}
