//! Whether anything of a measurement arrived.

use super::Viewed;
use narrows_model::{EndRecord as _, Flow, Place, RrPlan, Run, Sample as _, TcpPlan, TrialOf, UdpPlan};

/// The end at which nothing arrived of a direction, although it was there and recorded so; `None` where something did.
pub fn nothing_at(run: &Run) -> Option<Place> {
    let tcp = run.trials_of::<TcpPlan>().find_map(|(_, trial)| silent(trial));
    let udp = || run.trials_of::<UdpPlan>().find_map(|(_, trial)| silent(trial));
    let answers = |(_, trial): (_, TrialOf<'_, RrPlan>)| {
        let counted: Vec<u64> =
            trial.client.streams.iter().filter_map(|it| it.samples.last()).map(|it| it.transactions).collect();
        is_nothing(&counted).then_some(Place::Client)
    };
    tcp.or_else(udp).or_else(|| run.trials_of::<RrPlan>().find_map(answers))
}

fn silent<L: Viewed>(trial: TrialOf<'_, L>) -> Option<Place> {
    let arrived = |flow: Flow| {
        let end = [trial.client, trial.server].into_iter().find(|end| end.place() == flow.receiver())?;
        let streams = L::records(end).iter().map(super::StreamRecord::common).filter(|it| it.flow == flow);
        let counted: Vec<u64> =
            streams.filter(|it| it.samples.len() > 1).filter_map(|it| it.samples.last()).map(|it| it.bytes()).collect();
        is_nothing(&counted).then_some(flow.receiver())
    };
    trial.plan.flows().iter().copied().find_map(arrived)
}

fn is_nothing(counted: &[u64]) -> bool {
    !counted.is_empty() && counted.iter().all(|count| *count == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_model::{Direction, Load as _, TcpSample};

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
