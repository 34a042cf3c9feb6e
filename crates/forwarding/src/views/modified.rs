//! A traffic with a modifier beside the same frames without it.

use super::size::spread;
use crate::data::modifiers::{BroadcastSeen, ModifierSeen};
use crate::data::procedures::throughput::GoalOfSize;
use crate::data::report::{ModifiedView, ModifierView, SizeView, TrafficView};
use crate::data::{ForwardingPlan, ForwardingTrial};
use narrows_model::load::frames_report::FrameRate;
use narrows_model::words::figures::float;

/// What the trials saw of their modifier; what it is compared with comes by [`compared`].
pub(super) fn seen<'a>(mut trials: impl Iterator<Item = &'a ForwardingTrial>) -> ModifiedView {
    let first = trials.find_map(|trial| trial.modifier.clone());
    let sum = first.map(|first| trials.filter_map(|trial| trial.modifier.as_ref()).fold(first, ModifierSeen::and));
    ModifiedView { unmodified: None, modified: None, ratio: None, remark: None, seen: sum.map(view) }
}

fn view(of: ModifierSeen) -> ModifierView {
    match of {
        ModifierSeen::Broadcast { directions } => {
            let sum = directions.into_iter().fold(BroadcastSeen::default(), BroadcastSeen::and);
            ModifierView::Broadcast { sent: sum.sent, received: sum.received }
        }
        ModifierSeen::Management(it) => ModifierView::Management {
            asked: it.asked,
            answered: it.answered,
            wrong: it.wrong,
            answer_ns: spread(it.answer_ns.iter().map(|ns| float(*ns))),
            why: it.why,
        },
        ModifierSeen::Table(it) => ModifierView::Table(it),
        ModifierSeen::Routes(it) => {
            ModifierView::Routes { announced: it.announced, withdrawn: it.withdrawn, learned: it.learned, why: it.why }
        }
    }
}

/// The same traffics, each size under a modifier set beside the same without it.
pub(super) fn compared(plan: &ForwardingPlan, mut all: Vec<TrafficView>) -> Vec<TrafficView> {
    for at in 0..all.len() {
        let plain = plan.unmodified(at);
        for size in 0..all[at].sizes.len() {
            let of = all[at].sizes[size].size;
            let without = plain.and_then(|plain| all[plain].sizes.iter().find(|it| it.size == of)).cloned();
            let with = &mut all[at].sizes[size];
            let (goal, rate) = (first_goal(with).cloned(), other_rate(with));
            let Some(view) = &mut with.modified else { continue };
            if plan.tests.throughput.is_some() {
                compare(view, goal.as_ref(), without.as_ref().and_then(first_goal));
            } else {
                let without = without.as_ref().and_then(other_rate);
                (view.modified, view.unmodified) = (rate.map(|it| it.0), without.map(|it| it.0));
                view.ratio = ratio(view);
                let what = rate.filter(|_| view.ratio.is_some()).map(|(_, what)| what);
                view.remark = what.map(|what| format!("{what}: no throughput test requested"));
            }
        }
    }
    all
}

/// Another forwarding rate than the throughput, and what it is.
fn other_rate(of: &SizeView) -> Option<(FrameRate, &'static str)> {
    let rates = super::procedures::ALL.iter().filter_map(|entry| entry.rate);
    let found = rates.filter_map(|(rate, what)| Some((rate(&of.results).filter(|rate| rate.pps > 0.0)?, what)));
    found.into_iter().next()
}

fn ratio(view: &ModifiedView) -> Option<f64> {
    view.modified.zip(view.unmodified).map(|(with, without)| with.pps / without.pps)
}

fn first_goal(of: &SizeView) -> Option<&GoalOfSize> {
    of.results.throughput.search.as_ref()?.goals.first()
}

fn compare(view: &mut ModifiedView, with: Option<&GoalOfSize>, without: Option<&GoalOfSize>) {
    let lower = |of: Option<&GoalOfSize>| of.and_then(|of| of.lower).filter(|rate| rate.pps > 0.0);
    (view.modified, view.unmodified) = (lower(with), lower(without));
    view.ratio = ratio(view);
    let more = |of: Option<&GoalOfSize>| of.is_some_and(GoalOfSize::is_at_least);
    view.remark = match (view.modified, view.unmodified, more(with), more(without)) {
        (None, ..) => Some("no throughput found with the modifier".to_owned()),
        (_, None, ..) => Some("no throughput found without the modifier".to_owned()),
        (.., true, true) => Some("both passed at all offered loads: neither is the device's limit".to_owned()),
        (.., false, true) => Some("upper bound: without the modifier the device may forward more".to_owned()),
        (.., true, false) => Some("lower bound: with the modifier the device may forward more".to_owned()),
        (.., false, false) => None,
    };
}
