//! A traffic with a modifier beside the same frames without it.

use super::size::spread;
use crate::figures::float;
use narrows_model::forwarding::modifiers::{BroadcastSeen, ModifierSeen};
use narrows_model::forwarding::report::{GoalOfSize, ModifiedView, ModifierView, SizeView, TrafficView};
use narrows_model::forwarding::{ForwardingPlan, ForwardingTrial};
use narrows_model::load::frames_report::FrameRate;

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
            let (goal, arrives) = (first_goal(with).cloned(), arrives(with));
            let Some(view) = &mut with.modified else { continue };
            if plan.tests.throughput.is_some() {
                compare(view, goal.as_ref(), without.as_ref().and_then(first_goal));
            } else {
                (view.modified, view.unmodified) = (arrives, without.as_ref().and_then(self::arrives));
                view.ratio = ratio(view);
                view.remark = view.ratio.map(|_| "what arrives at line rate: no throughput was asked for".to_owned());
            }
        }
    }
    all
}

/// What arrives at line rate.
fn arrives(of: &SizeView) -> Option<FrameRate> {
    of.worst_case.as_ref()?.received.filter(|rate| rate.pps > 0.0)
}

fn ratio(view: &ModifiedView) -> Option<f64> {
    view.modified.zip(view.unmodified).map(|(with, without)| with.pps / without.pps)
}

fn first_goal(of: &SizeView) -> Option<&GoalOfSize> {
    of.throughput.as_ref()?.goals.first()
}

fn compare(view: &mut ModifiedView, with: Option<&GoalOfSize>, without: Option<&GoalOfSize>) {
    let lower = |of: Option<&GoalOfSize>| of.and_then(|of| of.lower).filter(|rate| rate.pps > 0.0);
    (view.modified, view.unmodified) = (lower(with), lower(without));
    view.ratio = ratio(view);
    let more = |of: Option<&GoalOfSize>| of.is_some_and(GoalOfSize::is_at_least);
    view.remark = match (view.modified, view.unmodified, more(with), more(without)) {
        (None, ..) => Some("under the modifier no throughput was found".to_owned()),
        (_, None, ..) => Some("without the modifier no throughput was found".to_owned()),
        (.., true, true) => {
            Some("neither is the device's limit: both passed at all loads that were offered".to_owned())
        }
        (.., false, true) => Some("at most: without the modifier the device may carry more".to_owned()),
        (.., true, false) => Some("at least: under the modifier the device may carry more".to_owned()),
        (.., false, false) => None,
    };
}
