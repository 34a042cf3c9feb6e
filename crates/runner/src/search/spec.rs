//! A search as a user specifies it. Its plan follows when the datagram size of the path and the rate of the tester are known.

use super::{Watch, first_look, qualify, search, unit};
use crate::ends::{Ends, EndsError};
use crate::measure;
use narrows_model::run::search_report::LoadUnit;
use narrows_model::run::{RunPlan, SearchOrder};
use narrows_model::words::units;
use narrows_model::{Flow, Goal, Run, SearchMethod, SearchPlan, Target, UdpPlan, UdpRate};
use narrows_search::SearchError;
use narrows_sys::clock;
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
    /// How loads are chosen.
    pub method: SearchMethod,
    /// What is sought.
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
        #[allow(clippy::cast_precision_loss)] // up to 2^53, as it was read
        let pps = |rate: UdpRate| match rate {
            UdpRate::Bps(bps) => Some(bps as f64 / (8.0 * unit.payload_bytes)),
            UdpRate::Pps(pps) => Some(pps),
            UdpRate::Max => None,
        };
        let max = self.max.and_then(pps).or(tester_max_pps).ok_or_else(|| {
            SpecError::Plan("without a look at the tester the highest load is not known; give it with --max".to_owned())
        })?;
        let min = self.min.and_then(pps).unwrap_or_else(|| (max / 1000.0).max(10.0).min(max));
        if min > max {
            let bps = |pps: f64| units::bps(pps * unit.payload_bytes * 8.0);
            let (min, max) = (bps(min), bps(max));
            return Err(SpecError::Plan(format!("the lowest load, {min}, is above the highest, {max}")));
        }
        let plan = SearchPlan {
            tester_max_pps,
            method: self.method,
            goals: self.goals.clone(),
            max_search_ms: self.max_search_ms,
            ..SearchPlan::between(min, max)
        };
        plan.check().map_err(SpecError::Plan)?;
        Ok(plan)
    }
}

/// Measures what the plan needs, searches, and returns the run. `begin` is called with the resolved plan before the first trial.
///
/// # Errors
/// [`SpecError`], where nothing was searched. A search that broke off says so in the run's ending.
pub fn run(
    ends: &mut dyn Ends,
    spec: &SearchSpec,
    target: Target,
    name: (String, String),
    begin: &mut dyn FnMut(&SearchOrder),
    watch: Watch<'_>,
) -> Result<Run, SpecError> {
    let family = target.family;
    let (started_unix_us, idle_rtt_us) = (clock::unix_us(), ends.idle_rtt_us());
    let flow = spec.load.flows().first().copied().unwrap_or(Flow::Up);
    let bytes = first_look(ends, &spec.load, flow)?;
    let unit = unit(&spec.load.sizes, bytes, family);
    let tester_max_pps = if spec.calibrate { Some(qualify(ends, &spec.load, bytes)?) } else { None };
    let plan = spec.plan(tester_max_pps, &unit)?;
    let order = SearchOrder { load: spec.load.clone(), unit, plan };
    begin(&order);
    let searched = search(ends, &order.load, flow, &order.plan, watch)?;
    Ok(Run {
        started_unix_us,
        idle_rtt_us,
        search: Some(searched.record),
        ending: searched.ending,
        ..measure::empty_run(RunPlan::Search(order), target, name)
    })
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
    fn a_range_that_cannot_be_is_refused() {
        let refused = |min, max| spec(min, max).plan(None, &UNIT).expect_err("no range").to_string();
        assert_eq!(
            refused(None, None),
            "without a look at the tester the highest load is not known; give it with --max"
        );
        assert_eq!(
            refused(Some(UdpRate::Bps(2_000_000)), Some(UdpRate::Bps(1_000_000))),
            "the lowest load, 2.00 Mbit/s, is above the highest, 1.00 Mbit/s"
        );
    }
}
