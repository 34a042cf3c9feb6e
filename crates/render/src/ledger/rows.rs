//! The ledger's stages by kind: those that dropped packets, those that did not, those without a counter.

use crate::figures::grouped;
use crate::words::clean;
use narrows_model::{Ledger, Place, Stage};

/// A stage that dropped packets, and where its bar begins.
pub(super) struct Dropped<'a> {
    pub(super) stage: &'a Stage,
    /// Packets dropped before it.
    pub(super) before: u64,
}

/// The stages that dropped packets, in the order of the path.
pub(super) fn dropped(ledger: &Ledger) -> Vec<Dropped<'_>> {
    let mut before = 0u64;
    let stages = stages(ledger).filter(|stage| stage.dropped > 0);
    stages
        .map(|stage| {
            let row = Dropped { stage, before };
            before = before.saturating_add(stage.dropped);
            row
        })
        .collect()
}

/// The stages that dropped nothing: those with a counter of 0, and those without a counter.
pub(super) fn silent(ledger: &Ledger) -> (Vec<&Stage>, Vec<&Stage>) {
    stages(ledger).filter(|stage| stage.dropped == 0).partition(|stage| stage.counted)
}

/// All stages except the last, which is the delivery.
pub(super) fn stages(ledger: &Ledger) -> impl Iterator<Item = &Stage> {
    ledger.stages.iter().filter(|stage| stage.id != "delivered")
}

/// The names of stages, each once: `qdisc (client), softnet (server)`.
pub(super) fn names(stages: &[&Stage]) -> String {
    let names: Vec<String> = stages.iter().map(|stage| format!("{} ({})", clean(&stage.id), stage.at)).collect();
    names.join(", ")
}

/// Packets offered and not delivered, by the stages and the remainder: the length of the waterfall.
pub(super) fn missing(ledger: &Ledger) -> u64 {
    let dropped = stages(ledger).fold(0u64, |sum, stage| sum.saturating_add(stage.dropped));
    let unexplained = u64::try_from(ledger.unexplained).unwrap_or(0);
    dropped.saturating_add(unexplained).max(ledger.offered.saturating_sub(ledger.delivered))
}

/// Whether the remainder is within its error.
pub(super) const fn balances(ledger: &Ledger) -> bool {
    ledger.unexplained.unsigned_abs() <= ledger.uncertainty
}

pub(super) fn remainder_words(ledger: &Ledger) -> &'static str {
    if balances(ledger) && ledger.one_end_is_silent() {
        if missing(ledger) == 0 {
            "nothing is missing"
        } else {
            "what one end dropped is not known: it gave no counters"
        }
    } else if balances(ledger) {
        if ledger.uncertainty == 0 {
            "all losses are accounted for"
        } else {
            "all losses are accounted for, within the counters' error"
        }
    } else if ledger.unexplained > 0 {
        "missing, and no counter says where"
    } else {
        "more drops were counted than packets are missing: some counters include other traffic or the same packet twice"
    }
}

/// A count with its error; `~` where it is derived from the counters of the stages beside it.
pub(super) fn count(stage: &Stage) -> String {
    let mark = if stage.counted { "" } else { "~" };
    let error = if stage.uncertainty > 0 { format!(" ± {}", grouped(stage.uncertainty)) } else { String::new() };
    format!("{mark}{}{error}", grouped(stage.dropped))
}

/// The end that receives.
pub(super) const fn receiver(ledger: &Ledger) -> Place {
    ledger.flow.receiver()
}
