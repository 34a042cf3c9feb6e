//! One plain measurement from begin to end.

use crate::ends::{Ends, EndsError, TrialFailed};
use narrows_model::run::{Ending, Purpose, RunPlan, TrialRecord};
use narrows_model::{Place, Run, Snapshot, Target, TcpPlan};
use narrows_sys::clock;
use narrows_wire::api::TrialProgress;

/// Measures TCP between two ends. What went wrong on the way is in the run's ending.
pub fn measure_tcp(
    ends: &mut dyn Ends,
    plan: &TcpPlan,
    target: Target,
    (id, made_by): (String, String),
    watch: &mut dyn FnMut(Place, &TrialProgress),
) -> Run {
    let began = clock::now();
    let started_unix_us = clock::unix_us();
    let idle_rtt_us = ends.idle_rtt_us();
    let at_us = clock::micros_since(began);
    let (trial, ending) = match ends.trial(plan, watch) {
        Ok(trial) => (Some(trial), if ends.stopped() { Ending::Interrupted } else { Ending::Complete }),
        Err(TrialFailed { why, partial }) => {
            let ending = match why {
                EndsError::Interrupted => Ending::Interrupted,
                EndsError::Lost(why) | EndsError::Failed(why) => Ending::Failed(why),
            };
            (partial.map(|trial| *trial), ending)
        }
    };
    Run {
        format: Run::FORMAT,
        id,
        made_by,
        started_unix_us,
        elapsed_us: clock::micros_since(began),
        plan: RunPlan::MeasureTcp(plan.clone()),
        target,
        client: Snapshot::default(),
        server: Snapshot::default(),
        idle_rtt_us,
        trials: trial.map(|trial| TrialRecord { purpose: Purpose::Measure, at_us, trial }).into_iter().collect(),
        udp: Vec::new(),
        rr: Vec::new(),
        attempts: Vec::new(),
        ending,
    }
}
