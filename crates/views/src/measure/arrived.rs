//! Whether anything of a measurement arrived.

use super::{StreamRecord as _, Viewed};
use narrows_model::load::trial::Kind;
use narrows_model::{EndRecord as _, Flow, Place, Run, TrialOf};

/// The end that recorded that nothing arrived in a direction; `None` if something did.
pub fn nothing_at<L: Viewed + Kind>(run: &Run) -> Option<Place> {
    run.trials_of::<L>().find_map(|(_, trial)| silent(trial))
}

fn silent<L: Viewed>(trial: TrialOf<'_, L>) -> Option<Place> {
    let arrived = |flow: Flow| {
        let at = L::counted_at(flow);
        let end = [trial.client, trial.server].into_iter().find(|end| end.place() == at)?;
        let streams = L::records(end).iter().map(|it| it.common());
        let counted: Vec<u64> = streams
            .filter(|it| it.flow == flow && it.samples.len() > 1)
            .filter_map(|it| it.samples.last())
            .map(L::arrived)
            .collect();
        (!counted.is_empty() && counted.iter().all(|count| *count == 0)).then_some(at)
    };
    trial.plan.flows().iter().copied().find_map(arrived)
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_model::{Direction, Load as _, TcpPlan, TcpSample};

    #[test]
    fn a_direction_in_which_nothing_arrived_is_named_by_its_receiver() {
        let of = |direction: Direction, bytes: [u64; 2]| {
            let plan = TcpPlan { direction, ..TcpPlan::default() };
            let record = |place: Place| {
                let received = |flow: Flow| if flow.receiver() == place { bytes[flow as usize] } else { 80_000 };
                let sample = |at_us, bytes| TcpSample { at_us, bytes, ..TcpSample::default() };
                let stream = |flow: &Flow| (*flow as u32, *flow, vec![sample(0, 0), sample(1, received(*flow))]);
                TcpPlan::partial_record(place, plan.flows().iter().map(stream).collect(), String::new())
            };
            let (client, server) = (record(Place::Client), record(Place::Server));
            silent(TrialOf { plan: &plan, client: &client, server: &server, elapsed_us: 1 })
        };
        assert_eq!(of(Direction::Up, [0, 9]), Some(Place::Server));
        assert_eq!(of(Direction::Down, [9, 0]), Some(Place::Client));
        assert_eq!(of(Direction::Both, [9, 0]), Some(Place::Client));
        assert_eq!(of(Direction::Both, [9, 9]), None);
        // An end of which nothing is known.
        let plan = TcpPlan::default();
        let record = |place| TcpPlan::partial_record(place, Vec::new(), String::new());
        let (client, server) = (record(Place::Client), record(Place::Server));
        assert_eq!(silent(TrialOf { plan: &plan, client: &client, server: &server, elapsed_us: 1 }), None);
    }
}
