//! The table of loads in words: the plain measurement of a run, and its lines while it runs.

use narrows_model::load::trial::Kind;
use narrows_model::run::RunPlan;
use narrows_model::run::history::Headline;
use narrows_model::{LoadPlan, Place, Progress, RrPlan, Run, TcpPlan, Trial, UdpPlan};
use narrows_render::measure::{Intervals, Live, Measurement, Running, Shown, Silent, UdpMeasurement};
use narrows_render::{AnyDocument, Document};
use narrows_views::figures;
use narrows_views::measure::{self, Viewed};

/// The plain measurement of a run, in the words of its load; `None` where the run holds none.
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

/// The report of a run; `None` where it holds no measurement.
pub fn document(run: &Run) -> Option<Box<dyn AnyDocument>> {
    fn of<R: Document>(report: Option<R>) -> Option<Box<dyn AnyDocument>> {
        Some(Box::new(report?))
    }
    match &run.plan {
        RunPlan::Diagnose(_) => of(crate::report(run)),
        RunPlan::Measure(_) => measurement(run).map(|it| -> Box<dyn AnyDocument> { it }),
        RunPlan::Search(_) => of(crate::search_report(run)),
        RunPlan::Sweep(_) => of(crate::sweep_report(run).filter(|report| report.done > 0)),
    }
}

/// The end at which nothing arrived of a plain measurement.
pub fn nothing_arrived(run: &Run) -> Option<Place> {
    let RunPlan::Measure(plan) = &run.plan else { return None };
    match plan {
        LoadPlan::Tcp(_) => measure::nothing_at::<TcpPlan>(run),
        LoadPlan::Udp(_) => measure::nothing_at::<UdpPlan>(run),
        LoadPlan::Rr(_) => measure::nothing_at::<RrPlan>(run),
        LoadPlan::Profile(_) => None,
    }
}

/// The command that measures a load, and the headline figures of its run.
pub(crate) fn headline(load: &LoadPlan, run: &Run) -> (&'static str, Vec<Headline>) {
    match load {
        LoadPlan::Tcp(_) => ("measure tcp", figures::tcp(run)),
        LoadPlan::Udp(_) => ("measure udp", figures::udp(run)),
        LoadPlan::Rr(_) => ("measure rr", measure::rr::figures(run)),
        LoadPlan::Profile(_) => ("measure profile", Vec::new()),
    }
}

/// How the trial of a plan is shown while it runs.
pub fn live(plan: &LoadPlan) -> Box<dyn Live> {
    fn of<L: Viewed + Kind + Shown<Interval = <L as Viewed>::Interval>>(plan: &L) -> Box<dyn Live> {
        Box::new(Running { plan: plan.clone(), intervals: Cutter(measure::live::Live::new(plan)) })
    }
    match plan {
        LoadPlan::Tcp(plan) => of(plan),
        LoadPlan::Udp(plan) => of(plan),
        LoadPlan::Rr(plan) => of(plan),
        LoadPlan::Profile(_) => Box::new(Silent),
    }
}

/// Cuts a trial for those who show it.
struct Cutter<L: Viewed>(measure::live::Live<L>);

impl<L: Viewed + Kind> Intervals<<L as Viewed>::Interval> for Cutter<L> {
    fn take(&mut self, at: Place, progress: &Progress) -> Vec<<L as Viewed>::Interval> {
        self.0.take(at, progress)
    }

    fn rest(&self, trial: &Trial) -> Vec<<L as Viewed>::Interval> {
        trial.of().map(|trial| self.0.rest(trial)).unwrap_or_default()
    }
}
