//! The loss curve of one row (RFC 2544, section 26.3): from the most that is offered down in steps of at most a tenth, until
//! two loads in a row lose nothing. The trials are a search of the method `loss_curve`.

use super::procedure::{Context, Keep, Known, Load, Procedure, Request, Seen, SetUp, max_pps};
use super::schedule::{Scheduled, overhead_ms, rehearse, scheduled};
use crate::data::plan::Row;
use crate::data::{ForwardingPlan, LossTest, SearchOfSize, Test};
use narrows_model::run::search::{SearchMethod, SearchPlan};
use narrows_search::search::{Search, SearchError, Step};

/// Time for each trial beside its load, for the limit of the whole curve.
const MAX_OVERHEAD_MS: u64 = 60_000;

/// The curve of a row.
/// Errors: one sentence: the plan has no such row, or its numbers leave no curve.
pub fn search_plan(
    plan: &ForwardingPlan,
    test: &LossTest,
    row: Row,
    tester_pps: Option<f64>,
) -> Result<SearchPlan, String> {
    let most_pps = max_pps(plan, row)?;
    let loads = loads(test.step);
    // The lowest load is the last whole step above nothing.
    let lowest_pps = (most_pps * test.step / 2.0).max(1e3 / test.duration_ms.max(1) as f64);
    let search = SearchPlan {
        method: SearchMethod::LossCurve { step: test.step, trial_ms: test.duration_ms },
        goals: Vec::new(),
        max_search_ms: u64::from(loads)
            .saturating_mul(test.duration_ms.saturating_add(MAX_OVERHEAD_MS))
            .min(SearchPlan::LONGEST_MS),
        tester_max_pps: tester_pps,
        // Each load may be invalid so often, and is then given up.
        max_trials: loads.saturating_mul(SearchPlan::between(1.0, 2.0).invalid_retries + 1),
        ..SearchPlan::between(lowest_pps, most_pps)
    };
    search.check()?;
    Ok(search)
}

pub(super) fn set_up(plan: &ForwardingPlan, row: Row, known: &Known) -> Option<SetUp> {
    let search = search_plan(plan, plan.tests.loss.as_ref()?, row, known.tester_pps);
    let begin = |plan| Search::new(&plan).map_err(|error| error.to_string());
    Some(search.and_then(begin).map(|search| Box::new(Loss { row, search }) as _))
}

pub(super) fn schedule(plan: &ForwardingPlan, row: Row) -> Vec<Scheduled> {
    let Some(test) = &plan.tests.loss else { return Vec::new() };
    let Ok(search) = search_plan(plan, test, row, None) else { return Vec::new() };
    let (loads, overhead_ms) = (loads(test.step), overhead_ms(plan));
    let most_ms = u64::from(loads).saturating_mul(test.duration_ms.saturating_add(overhead_ms));
    vec![scheduled(Test::Loss, row, rehearse(&search, overhead_ms), (loads, most_ms))]
}

/// A curve under way.
struct Loss {
    row: Row,
    search: Search,
}

impl Procedure for Loss {
    fn next(&mut self, context: &mut Context<'_>) -> Result<Option<Request>, SearchError> {
        Ok(request(Test::Loss, &mut self.search, context))
    }

    fn take(&mut self, seen: &Seen, context: &mut Context<'_>) -> Result<(), SearchError> {
        self.search.observe(seen.observation(seen.effective_ms), context.now).map(drop)
    }

    fn finish(&mut self, context: &mut Context<'_>) {
        let Row { traffic, size } = self.row;
        let record = self.search.record();
        context.record.curves.push(SearchOfSize { traffic, size, record, not_confirmed_pps: None });
    }
}

/// The next trial of a search.
pub(super) fn request(test: Test, search: &mut Search, context: &Context<'_>) -> Option<Request> {
    match search.next(context.now) {
        Step::Trial { load_pps, duration } => {
            let duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
            Some(Request::new(test, 0, Load::Rate { pps: load_pps, duration_ms }, Keep::IfTelling))
        }
        Step::Done(_) => None,
    }
}

/// Loads of a curve that never is without loss.
pub fn loads(step: f64) -> u32 {
    // From 1 to 1,000 by the plan's limits.
    (1.0 / step.clamp(0.001, 1.0) + 1e-9).floor() as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::procedures::device::row;
    use crate::sim::{Device, search};
    use crate::testing::plan;
    use narrows_search::loss_curve::loss_curve;

    #[test]
    fn the_curve_ends_after_two_loads_without_loss() {
        let test = LossTest { step: 0.1, duration_ms: 1_000 };
        let search_plan = search_plan(&plan(), &test, row(64), None).expect("sound");
        // 65 % of the line: 100, 90, 80 and 70 % lose, 60 and 50 % do not.
        let ended = search(&search_plan, &Device::of(14_880_952.0 * 0.65), 1);
        let curve = loss_curve(&search_plan, ended.search.trials());
        let percents: Vec<f64> = curve.iter().map(|point| point.load_percent.round()).collect();
        assert_eq!(percents, [100.0, 90.0, 80.0, 70.0, 60.0, 50.0]);
        assert!((curve[0].loss_ratio - 0.35).abs() < 1e-6, "{}", curve[0].loss_ratio);
        assert_eq!(curve[4].loss_ratio, 0.0);
    }

    #[test]
    fn a_device_that_always_loses_ends_the_curve_at_its_last_step() {
        let test = LossTest { step: 0.1, duration_ms: 1_000 };
        let search_plan = search_plan(&plan(), &test, row(64), None).expect("sound");
        let ended = search(&search_plan, &Device::of(1.0), 1);
        assert_eq!(ended.search.trials().len(), loads(0.1) as usize);
        assert_eq!((loads(0.1), loads(0.05), loads(0.07)), (10, 20, 14));
    }
}
