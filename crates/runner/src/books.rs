//! The table of loads in words: the plain measurement of a run, and its lines while it runs.

use narrows_model::run::RunPlan;
use narrows_model::{LoadPlan, Run};
use narrows_render::measure::{Live, Measurement, Running, Shown, Silent, UdpMeasurement};
use narrows_views::measure::{self, Viewed};

/// The plain measurement of a run, in the words of its load; `None` where the run holds none.
#[must_use]
pub fn measurement(run: &Run) -> Option<Box<dyn Measurement>> {
    let RunPlan::Measure(plan) = &run.plan else { return None };
    Some(match plan {
        LoadPlan::Tcp(_) => Box::new(measure::tcp::build(run)?),
        LoadPlan::Udp(_) => {
            let (report, ledgers) = (measure::udp::build(run)?, measure::udp::counted_ledgers(run));
            Box::new(UdpMeasurement { report, ledgers })
        }
        LoadPlan::Rr(_) => Box::new(measure::rr::of_run(run)?),
        LoadPlan::Profile(_) => return None,
    })
}

/// How the trial of a plan is shown while it runs.
#[must_use]
pub fn live(plan: &LoadPlan) -> Box<dyn Live> {
    fn of<L: Viewed + Shown<Interval = <L as Viewed>::Interval>>(plan: &L) -> Box<dyn Live> {
        let mut live = measure::live::Live::new(plan);
        Box::new(Running { plan: plan.clone(), intervals: move |at, progress: &_| live.take(at, progress) })
    }
    match plan {
        LoadPlan::Tcp(plan) => of(plan),
        LoadPlan::Udp(plan) => of(plan),
        LoadPlan::Rr(plan) => of(plan),
        LoadPlan::Profile(_) => Box::new(Silent),
    }
}
