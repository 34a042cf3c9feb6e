//! One plain measurement from begin to end.

use crate::ends::{Ends, EndsError, TrialFailed};
use narrows_model::run::{Ending, Purpose, RrTrialRecord, RunPlan, TrialRecord, UdpTrialRecord};
use narrows_model::{Place, RrPlan, Run, Snapshot, Target, TcpPlan, UdpPlan};
use narrows_sys::clock;
use narrows_wire::api::TrialProgress;
use std::time::Instant;

/// What hears of both ends while they run.
pub type Watch<'a> = &'a mut dyn FnMut(Place, &TrialProgress);

/// A run that holds nothing yet.
fn begin(ends: &mut dyn Ends, plan: RunPlan, target: Target, (id, made_by): (String, String), began: Instant) -> Run {
    let started_unix_us = clock::unix_us();
    Run {
        format: Run::FORMAT,
        id,
        made_by,
        started_unix_us,
        elapsed_us: clock::micros_since(began),
        plan,
        target,
        client: Snapshot::default(),
        server: Snapshot::default(),
        idle_rtt_us: ends.idle_rtt_us(),
        trials: Vec::new(),
        udp: Vec::new(),
        rr: Vec::new(),
        search: None,
        sweep: None,
        attempts: Vec::new(),
        ending: Ending::Complete,
    }
}

/// A run that holds nothing yet, for a command that fills in its plan and what it measures.
pub fn empty(ends: &mut dyn Ends, target: Target, name: (String, String)) -> Run {
    begin(ends, RunPlan::MeasureUdp(UdpPlan::default()), target, name, clock::now())
}

/// What there is of a trial, and how the run ends with it.
pub(crate) fn ended<T>(ends: &dyn Ends, outcome: Result<T, TrialFailed<T>>) -> (Option<T>, Ending) {
    match outcome {
        Ok(trial) => (Some(trial), if ends.stopped() { Ending::Interrupted } else { Ending::Complete }),
        Err(TrialFailed { why, partial }) => {
            let ending = match why {
                EndsError::Interrupted => Ending::Interrupted,
                EndsError::Lost(why) | EndsError::Failed(why) => Ending::Failed(why),
            };
            (partial.map(|trial| *trial), ending)
        }
    }
}

/// Measures TCP between two ends. What went wrong on the way is in the run's ending.
pub fn measure_tcp(
    ends: &mut dyn Ends,
    plan: &TcpPlan,
    target: Target,
    name: (String, String),
    watch: Watch<'_>,
) -> Run {
    let began = clock::now();
    let mut run = begin(ends, RunPlan::MeasureTcp(plan.clone()), target, name, began);
    let at_us = clock::micros_since(began);
    let outcome = ends.trial(plan, watch);
    let (trial, ending) = ended(ends, outcome);
    run.trials = trial.map(|trial| TrialRecord { purpose: Purpose::Measure, at_us, trial }).into_iter().collect();
    Run { elapsed_us: clock::micros_since(began), ending, ..run }
}

/// Measures UDP between two ends, with both hosts' inventories for the ledger. What went wrong on the way is in the run's
/// ending.
pub fn measure_udp(
    ends: &mut dyn Ends,
    plan: &UdpPlan,
    target: Target,
    name: (String, String),
    watch: Watch<'_>,
) -> Run {
    let began = clock::now();
    let mut run = begin(ends, RunPlan::MeasureUdp(plan.clone()), target, name, began);
    // A host that cannot be asked leaves its part of the ledger open, and the measurement is still one.
    run.client = ends.inventory(Place::Client).unwrap_or_default();
    run.server = ends.inventory(Place::Server).unwrap_or_default();
    let at_us = clock::micros_since(began);
    let outcome = ends.udp_trial(plan, watch);
    let (trial, ending) = ended(ends, outcome);
    run.udp = trial.map(|trial| UdpTrialRecord { purpose: Purpose::Measure, at_us, trial }).into_iter().collect();
    Run { elapsed_us: clock::micros_since(began), ending, ..run }
}

/// Measures requests and responses between two ends: on the idle path, and where a load is planned once more beside it. What went
/// wrong on the way is in the run's ending.
pub fn measure_rr(ends: &mut dyn Ends, plan: &RrPlan, target: Target, name: (String, String), watch: Watch<'_>) -> Run {
    let began = clock::now();
    let mut run = begin(ends, RunPlan::MeasureRr(plan.clone()), target, name, began);
    let idle = plan.load.as_ref().map(|_| RrPlan { load: None, ..plan.clone() });
    for plan in idle.iter().chain([plan]) {
        let at_us = clock::micros_since(began);
        let outcome = ends.rr_trial(plan, watch);
        let (trial, ending) = ended(ends, outcome);
        run.rr.extend(trial.map(|trial| RrTrialRecord { purpose: Purpose::Measure, at_us, trial }));
        run.ending = ending;
        if run.ending != Ending::Complete {
            break;
        }
    }
    Run { elapsed_us: clock::micros_since(began), ..run }
}
