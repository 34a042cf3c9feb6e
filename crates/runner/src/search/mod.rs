//! The search for the highest load: what `narrows_search` asks for, made real by one UDP trial after the other.

mod spec;

pub use spec::{SearchSpec, SpecError, run};

use crate::ends::{Ends, EndsError, On, TrialFailed};
use narrows_model::run::Ending;
use narrows_model::run::search::{GoalBounds, LoadTrial, Observation, SearchPlan, SearchRecord};
use narrows_model::run::search_report::{BoundsAt, LoadUnit};
use narrows_model::{DatagramSizes, Family, Flow, Trial, UdpPlan, UdpRate, UdpTrial};
use narrows_search::{Search, SearchError, Step};
use narrows_sys::clock;
use std::time::Duration;

/// A trial is valid if at most this share of its datagrams was skipped after stalls.
const KEPT: f64 = 0.001;
/// Trials that end before the path is seen at work say nothing; the first of a search warms both ends up.
const WARM_UP_MS: u64 = 200;
/// A load far above what the path carries can silence the control connection as well, and the other end gives the session up.
/// After so many trials in a row that failed, something else is wrong.
const RENEWALS: u32 = 6;
/// Duration of the tester calibration.
const QUALIFY_MS: u64 = 500;

/// Called after each trial with its number and the current bounds.
pub type Watch<'a> = &'a mut dyn FnMut(usize, &LoadTrial, &[GoalBounds]);

/// A search as far as it came.
#[derive(Debug, Clone, PartialEq)]
pub struct Searched {
    pub record: SearchRecord,
    /// Where the goals stood after each trial.
    pub history: Vec<BoundsAt>,
    pub ending: Ending,
}

/// The load of a search at a rate of one flow. Where the load has another flow, that one stays as it is.
fn at_load(load: &UdpPlan, flow: Flow, pps: f64, duration: Duration) -> UdpPlan {
    let ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let rate = match &load.sizes {
        // A server that is open to clients without a token takes rates in bit/s only.
        DatagramSizes::Sequence(sizes) if sizes.len() == 1 => {
            UdpRate::Bps((pps * f64::from(sizes[0]) * 8.0).round().max(1.0) as u64)
        }
        _ => UdpRate::Pps(pps),
    };
    let mut plan = UdpPlan { duration_ms: ms, interval_ms: ms.max(1_000), omit_ms: 0, ..load.clone() };
    match flow {
        Flow::Up => plan.rate_up = rate,
        Flow::Down => plan.rate_down = rate,
    }
    plan
}

/// The observation of a trial: everything sent counts; what the socket refused counts as offered, not as sent.
///
/// If the sender skipped more than a thousandth of the datagrams after stalls, the trial is invalid: the load was not the
/// requested one. Up to that, the skipped datagrams are subtracted from the intended load. `least_growth`: what a queue took in counts, where
/// the delay grew by more than that part of the duration.
pub fn observation(
    trial: UdpTrial<'_>,
    flow: Flow,
    (intended, duration): (u64, Duration),
    took: Duration,
    least_growth: Option<f64>,
) -> Observation {
    let effective_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    let sum = |of: &dyn Fn(&narrows_model::UdpStreamRecord) -> u64, place| {
        let streams = trial.end(place).map(|end| end.streams.as_slice()).unwrap_or_default();
        streams.iter().filter(|stream| stream.flow == flow).map(of).fold(0, u64::saturating_add)
    };
    let uncounted = sum(&|s| s.received.as_ref().map_or(0, |got| got.uncounted), flow.receiver());
    let sent = sum(&|s| s.sent.as_ref().map_or(0, |sent| sent.datagrams), flow.sender()).saturating_sub(uncounted);
    let unsent = sum(&|s| s.sent.as_ref().map_or(0, |sent| sent.unsent.total()), flow.sender());
    let skipped = sum(&|s| s.sent.as_ref().map_or(0, |sent| sent.skipped), flow.sender());
    let received = sum(&|s| s.received.as_ref().map_or(0, |got| got.distinct), flow.receiver());
    let offered = sent.saturating_add(unsent);
    let given_up = skipped as f64 / (intended.max(1)) as f64;
    let invalid = (given_up > KEPT)
        .then(|| format!("sender stalled, {} skipped", narrows_model::words::units::percent(given_up)));
    let intended = if invalid.is_none() { intended.saturating_sub(skipped).max(offered) } else { intended };
    let growth = trial.delay_growth(flow);
    let delay_growth_us = growth.map(|it| it.us);
    let seen = Observation { intended, offered, sent, received, effective_ms, invalid, delay_growth_us, queued: 0 };
    match least_growth.filter(|_| growth.is_some_and(|it| it.is_robust)) {
        Some(least) => seen.with_queue(least, u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)),
        None => seen,
    }
}

fn of_udp(trial: &Trial) -> Result<UdpTrial<'_>, EndsError> {
    trial.of().ok_or_else(|| EndsError::Failed("the trial is not a UDP trial".to_owned()))
}

/// The highest rate that the tester itself carries, in datagrams a second: both ends on the client, over its loopback.
pub fn qualify(ends: &mut dyn Ends, load: &UdpPlan, bytes: u32) -> Result<f64, EndsError> {
    let plan = UdpPlan {
        sizes: DatagramSizes::Sequence(vec![bytes]),
        direction: narrows_model::Direction::Up,
        rate_up: UdpRate::Max,
        duration_ms: QUALIFY_MS,
        omit_ms: 0,
        ..load.clone()
    };
    let trial = ends.trial(&plan.clone().into(), On::Loopback, &mut |_, _| {}).map_err(|failed| failed.why)?;
    let trial = of_udp(&trial)?;
    let rate = |stream: &narrows_model::UdpStreamRecord| {
        let got = stream.received.as_ref()?;
        Some(got.distinct as f64 / plan.rate_seconds(stream.flow, None, Some(got)))
    };
    let pps: f64 = trial.server.streams.iter().filter_map(rate).sum();
    match pps > 0.0 {
        true => Ok(pps),
        false if ends.stopped() => Err(EndsError::Interrupted),
        false => Err(EndsError::Failed("nothing arrived over loopback".to_owned())),
    }
}

/// The datagram size that the path carries in one piece, and proof that anything passes: a short, slow trial.
pub fn first_look(ends: &mut dyn Ends, load: &UdpPlan, flow: Flow) -> Result<u32, EndsError> {
    let plan = at_load(load, flow, 100.0, Duration::from_millis(WARM_UP_MS));
    let trial = ends.trial(&plan.into(), On::Path, &mut |_, _| {}).map_err(|failed| failed.why)?;
    let trial = of_udp(&trial)?;
    let stream = trial.end(flow.sender()).and_then(|end| end.streams.iter().find(|stream| stream.flow == flow));
    stream
        .map(|stream| stream.datagram_bytes)
        .ok_or_else(|| EndsError::Failed("the first trial has no sender record".to_owned()))
}

/// Searches for one flow of a load; another flow of it has the load's own rate meanwhile. What goes wrong on the way is in the ending,
/// what was found until then is kept. Fails where the plan is invalid.
pub fn search(
    ends: &mut dyn Ends,
    load: &UdpPlan,
    flow: Flow,
    plan: &SearchPlan,
    watch: Watch<'_>,
) -> Result<Searched, SearchError> {
    let mut search = Search::new(plan)?;
    let (mut history, mut ending, mut renewals) = (Vec::new(), Ending::Complete, 0);
    let began = clock::now();
    while let Step::Trial { load_pps, duration } = search.next(began.elapsed()) {
        if ends.stopped() {
            ending = Ending::Interrupted;
            break;
        }
        let start = clock::now();
        let asked = at_load(load, flow, load_pps, duration);
        let outcome = ends.trial(&asked.clone().into(), On::Path, &mut |_, _| {});
        let intended = (load_pps * duration.as_secs_f64()).round() as u64;
        let seen = match outcome {
            Ok(trial) if !ends.stopped() => {
                renewals = 0;
                match of_udp(&trial) {
                    Ok(trial) if held_back(&asked, trial.plan, flow).is_some() => {
                        ending = Ending::Failed(held_back(&asked, trial.plan, flow).unwrap_or_default());
                        break;
                    }
                    Ok(trial) => observation(trial, flow, (intended, duration), start.elapsed(), plan.least_growth()),
                    Err(why) => {
                        ending = Ending::Failed(why.to_string());
                        break;
                    }
                }
            }
            Ok(_) | Err(TrialFailed { why: EndsError::Interrupted, .. }) => {
                ending = Ending::Interrupted;
                break;
            }
            Err(TrialFailed { why, .. }) => {
                renewals += 1;
                if ends.stopped() || renewals > RENEWALS || ends.renew().is_err() {
                    ending = if ends.stopped() { Ending::Interrupted } else { Ending::Failed(why.to_string()) };
                    break;
                }
                let effective_ms = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
                let invalid = Some(format!("the trial failed: {why}"));
                Observation { intended, effective_ms, invalid, ..Observation::default() }
            }
        };
        search.observe(seen, began.elapsed())?;
        let bounds = search.bounds();
        if let Some(last) = search.trials().last() {
            watch(search.trials().len(), last, &bounds);
            history.push(BoundsAt { at_ms: last.ended_at_ms, bounds });
        }
    }
    search.stop();
    Ok(Searched { record: search.record(), history, ending })
}

/// Why nothing more can be learned from a server that ran a trial at a lower rate than it was asked for.
fn held_back(asked: &UdpPlan, made: &UdpPlan, flow: Flow) -> Option<String> {
    match (asked.rate(flow), made.rate(flow)) {
        (UdpRate::Bps(asked), UdpRate::Bps(made)) if made < asked => Some(format!(
            "this server limits clients without its token to {} (`narrows serve --open-rate`), and the path carries it; give the \
             token (--token-file), or search below that rate (--max)",
            narrows_model::words::units::bps(made as f64)
        )),
        _ => None,
    }
}

/// What a datagram of a load takes on the wire; of a list the average.
pub fn unit(sizes: &DatagramSizes, largest: u32, family: Family) -> LoadUnit {
    let list = match sizes {
        DatagramSizes::Largest => std::slice::from_ref(&largest),
        DatagramSizes::Sequence(list) => list.as_slice(),
    };
    let units: Vec<LoadUnit> = list.iter().map(|bytes| LoadUnit::datagram(*bytes, family)).collect();
    let n = units.len().max(1) as f64;
    LoadUnit {
        payload_bytes: units.iter().map(|unit| unit.payload_bytes).sum::<f64>() / n,
        wire_bytes: units.iter().map(|unit| unit.wire_bytes).sum::<f64>() / n,
    }
}
