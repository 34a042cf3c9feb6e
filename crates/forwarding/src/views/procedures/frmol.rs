//! The forwarding rate at maximum offered load.

use super::super::size::{Of, count, lost, slower, spread};
use super::entry::Entry;
use crate::data::procedures::frmol::FrmolView;
use crate::data::{ForwardingTrial, Test};
use narrows_model::words::figures::float;

pub(super) const ENTRY: Entry = Entry {
    rate: Some((|it| it.frmol.rate.as_ref()?.received, "forwarding rate at maximum offered load (FRMOL)")),
    ..Entry::new(Test::Frmol, |of, it, _| it.frmol.rate = rate(of), |it| it.frmol.rate.is_some(), true)
};

fn rate(of: &Of<'_>) -> Option<FrmolView> {
    let trials = of.trials(Test::Frmol);
    if trials.is_empty() {
        return None;
    }
    let valid: Vec<&ForwardingTrial> = trials.iter().filter(|(_, invalid)| !invalid).map(|(trial, _)| *trial).collect();
    let received_pps = spread(valid.iter().filter_map(|trial| slower(trial)));
    let sent: u64 =
        valid.iter().flat_map(|trial| &trial.directions).fold(0, |sum, it| sum.saturating_add(it.sent.sent()));
    let gone: f64 = valid.iter().map(|trial| lost(trial)).sum();
    let least = |trial: &&&ForwardingTrial| trial.directions.iter().map(|it| it.sent.sent_pps()).min_by(f64::total_cmp);
    Some(FrmolView {
        repetitions: count(valid.len()),
        invalid: count(trials.len() - valid.len()),
        offered_pps: spread(valid.iter().filter_map(|trial| least(&trial))),
        received_pps,
        received: received_pps.map(|it| of.rate(it.median)),
        loss_ratio: (sent > 0).then(|| gone / float(sent)),
    })
}
