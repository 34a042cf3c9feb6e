//! What rules of UDP share: the stages of the packet ledger as witnesses.

use crate::causes::shared::profile::{Met, by_profile};
use crate::causes::shared::rule::{Ruling, answer, known};
use crate::causes::shared::words::{cannot_tell, contradicts, counter};
use crate::evidence::cores::CoreShare;
use crate::evidence::paced::PacedUdp;
use crate::evidence::udp::UdpEvidence;
use crate::experiments::paced::PACED_UDP;
use crate::judge::{Assessment, Evidence as _};
use crate::role::Role;
use narrows_model::{Witness, words::units};

/// A stage that holds less than this part of the loss is not why the trial lost what it lost.
pub(crate) const PART: f64 = 0.1;

/// The first witness: so many datagrams ended at this stage, and that is a part of the loss that counts.
/// Errors: the assessment where it is not so.
pub(crate) fn at_stage(
    evidence: &UdpEvidence,
    id: &str,
    dropped: Option<u64>,
) -> Result<(u64, f64, Witness), Assessment> {
    let missing = evidence.base.missing();
    if missing == 0 {
        return Err(contradicts("nothing was lost"));
    }
    let stage = known(evidence.base.stage(id), format!("the ledger has no stage {id}"))?;
    let dropped = dropped.unwrap_or(stage.dropped);
    if dropped == 0 {
        let known = stage.counted || stage.dropped > 0;
        return Err(if known {
            contradicts(format!("{id}: nothing was dropped there"))
        } else {
            cannot_tell(&*stage.source)
        });
    }
    if dropped <= stage.uncertainty.saturating_mul(2) {
        return Err(cannot_tell(format!(
            "{id}: {dropped} drops, of which up to {} may be of other traffic",
            stage.uncertainty
        )));
    }
    let share = (dropped as f64 / missing as f64).min(1.0);
    if share < PART {
        return Err(contradicts(format!("{id}: only {dropped} of {missing} lost datagrams were dropped there")));
    }
    let says = format!("packet ledger: {dropped} of {missing} lost datagrams dropped at {id} ({})", stage.source);
    Ok((dropped, share, counter(says)))
}

/// The second witness of a counter that must have grown about as much: by half at least. It counts packets, which may be batches
/// of datagrams.
pub(crate) fn says_the_same(evidence: &UdpEvidence, dropped: u64, count: Option<u64>, what: &str) -> Option<Witness> {
    let batch = if evidence.base.accounting.segmented || evidence.base.accounting.coalesced {
        evidence.base.accounting.batch_most
    } else {
        1
    };
    let count = count.filter(|n| *n > 0)?;
    (count.saturating_mul(2).saturating_mul(batch) >= dropped).then(|| counter(format!("{what} grew by {count}")))
}

/// The end's busiest thread or core, where it is full: then no buffer helps.
pub(crate) fn full_core(evidence: &UdpEvidence, role: Role) -> Option<String> {
    const FULL: f64 = 0.95;
    /// Of a core that has no time left, so much is of the load or gone to other guests; the rest is of the kernel around it.
    const OF_LOAD: f64 = 0.8;
    let (end, at) = (evidence.end(role)?, evidence.place(role));
    if let Some((share, what)) = end.busiest().filter(|(share, _)| *share >= FULL) {
        return Some(format!("{what} of the {at} is busy {} of the time", units::percent(share)));
    }
    // The receive path and the thread that reads may share one.
    let thread = end.thread_share.unwrap_or(0.0);
    let full = |core: &&CoreShare| core.busy + core.steal >= FULL && core.softirq + core.steal + thread >= OF_LOAD;
    let core = end.cores.iter().find(full)?;
    Some(format!(
        "core {} of the {at} is full: the receive path takes {} of it, other guests {}, and the data thread {}",
        core.cpu,
        units::percent(core.softirq),
        units::percent(core.steal),
        units::percent(thread)
    ))
}

/// Rounded up to a power of two.
pub(crate) fn rounded(bytes: f64, most: u64) -> u64 {
    (bytes.max(1.0) as u64).min(most).next_power_of_two()
}

/// The same of a cause at a stage that holds this part of the loss: it explains no more.
pub(crate) fn at_most(assessment: Assessment, part: f64) -> Assessment {
    match assessment {
        Assessment::Supports { share, witnesses } => Assessment::Supports { share: share.min(part), witnesses },
        other => other,
    }
}

/// What a rule says where the loss is on the path: the word of the paced trials. They are asked for where the path lost
/// more than a quarter of what is missing.
pub(crate) fn on_the_path(evidence: &UdpEvidence, met: Met, rule: fn(&PacedUdp) -> Ruling) -> Assessment {
    let known = || by_profile(evidence, met).unwrap_or_else(|| answer(rule(&evidence.paced)));
    let assessment = at_stage(evidence, "path", None).map_or_else(|other| other, |(_, part, _)| at_most(known(), part));
    let (_, lost) = evidence.base.on_the_path();
    match assessment {
        Assessment::CannotTell { why, ask: None } if lost > evidence.base.missing() / 4 => {
            Assessment::CannotTell { why, ask: Some(&PACED_UDP) }
        }
        other => other,
    }
}
