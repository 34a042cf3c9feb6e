//! Stages of the packet ledger as witnesses of TCP: segments that a host dropped itself.

use crate::causes::shared::rule::{Ruling, ended, known, supports};
use crate::causes::shared::tcp::path_has_room;
use crate::causes::shared::window::loss_does_not_bind;
use crate::causes::shared::words::{cannot_tell, contradicts, counter};
use crate::evidence::tcp::{Loss, TcpEvidence};
use crate::judge::{Assessment, Evidence as _};
use crate::role::Role;
use narrows_model::{Stage, Witness, keys, words::units};
use narrows_search::profile::{Shape, StepView};

/// Stages that lie in a host: what they drop the path did not.
const IN_HOSTS: [&str; 8] =
    ["send-filter", "qdisc", "nic-tx", "nic-rx", "softnet", "receive-filter", "checksum", "receive-buffer"];

/// Fewer losses than this over a trial do not slow it down.
const FEW: u64 = 20;

/// A stage explains the loss of a connection where it dropped this part of it.
const PART: f64 = 0.5;

fn stage<'a>(evidence: &'a TcpEvidence, id: &str) -> Option<&'a Stage> {
    evidence.ledger.as_ref()?.stages.iter().find(|stage| stage.id == id)
}

/// The part of the lost segments that a stage dropped for certain; batches count as one packet where a host hands them down as one.
fn part(evidence: &TcpEvidence, id: &str) -> Option<(u64, f64)> {
    let (stage, loss) = (stage(evidence, id)?, evidence.base.loss_whole?);
    let certain = stage.dropped.saturating_sub(stage.uncertainty / 2);
    let part = certain as f64 / loss.lost().max(1) as f64;
    (stage.dropped / 2 > stage.uncertainty).then_some((stage.dropped, part))
}

/// The stages of packet filters, whose counters know no connections.
const FILTERS: [(&str, Role); 2] = [("send-filter", Role::Sender), ("receive-filter", Role::Receiver)];

/// What a filter drops TCP sends again, and that is lost, too: drops that are so many times as many are of others (as of a full
/// `conntrack` table).
const OTHERS: u64 = 2;

/// Segments of a bulk transfer are full, and batches larger: packets of less than this part of one are of others.
const SMALL: f64 = 0.5;

/// Why what a packet filter dropped was of others, where that shows.
fn of_others(evidence: &TcpEvidence, id: &str) -> Option<String> {
    let (_, role) = FILTERS.into_iter().find(|(filter, _)| *filter == id)?;
    let (dropped, lost) = (stage(evidence, id)?.dropped, evidence.base.loss_whole?.lost());
    if dropped > lost.saturating_mul(OTHERS) {
        return Some(format!("{id}: {dropped} drops and {lost} lost segments: the drops are mostly of other traffic"));
    }
    let [packets, bytes] = [keys::FILTER_DROP_PACKETS, keys::FILTER_DROP_BYTES].map(|key| evidence.grew(role, key));
    let (packets, each) = (packets?, bytes? as f64 / packets? as f64);
    // Rules that dropped far more or far less than the stage did (on the other way, without counters) do not say what it dropped.
    let same = packets <= dropped.saturating_mul(OTHERS) && dropped <= packets.saturating_mul(OTHERS);
    (packets > 0 && same && each < SMALL * evidence.base.mss_bytes?)
        .then(|| format!("{id}: the dropped packets had {each:.0} bytes on average: they are mostly of other traffic"))
}

/// The stage of a host that explains why segments were lost, in a sentence.
pub(crate) fn in_a_host(evidence: &TcpEvidence) -> Option<String> {
    IN_HOSTS.iter().find_map(|id| {
        let (dropped, part) = part(evidence, id)?;
        (dropped >= FEW && part >= PART && of_others(evidence, id).is_none())
            .then(|| format!("{dropped} of them were dropped inside the sender or receiver, at: {id}"))
    })
}

/// The loss of the whole trial.
/// Errors: the assessment where it is not known, or does not slow the connection down.
pub(crate) fn binding_loss(evidence: &TcpEvidence) -> Result<Loss, Assessment> {
    let loss = known(evidence.base.loss_whole, "the sender's retransmissions could not be read")?;
    if loss.is_few(FEW) {
        return Err(contradicts(format!("only {} segments of {} were lost", loss.lost(), loss.sent)));
    }
    ended(loss_does_not_bind(evidence))?;
    Ok(loss)
}

/// Loss below this is what long paths have; a congestion control must cope with it.
pub(crate) const COMMON: f64 = 1e-4;

/// BBR slows down at no loss (v1) or at more than 2 % of it in a round (v2 and v3, `BBRLossThresh`).
pub(crate) const BBR_MINDS: f64 = 0.02;

/// Whether a host itself, as the sender's own queue, dropped about as much as was lost.
pub(crate) fn lost_at_home(evidence: &TcpEvidence) -> bool {
    let (Some(drops), Some(loss)) = (evidence.grew(Role::Sender, keys::QDISC_DROPS), evidence.base.loss_whole) else {
        return false;
    };
    (drops > 0 && drops >= loss.lost().div_ceil(2)) || in_a_host(evidence).is_some()
}

/// That other traffic shares the queue of the path, in a sentence: then it decides what a load gets and what is lost.
pub(crate) fn beside_others(evidence: &TcpEvidence) -> Option<String> {
    let profile = evidence.profile.as_ref()?;
    let shape = &profile.shape;
    // A step that passed whole beyond the capacity, or whose excess began late, did so by the credit of a bucket, not at others' cost.
    let is_full = |step: &StepView| !step.unsettled && step.saturated(shape.loss_below());
    // Nor is it others that let through less of a step than of a slower one: a host paused.
    let before = |step: &StepView| {
        let slower = shape.steps.iter().filter(|it| it.offered_bps < step.offered_bps && !is_full(it));
        slower.map(StepView::delivered_bps).fold(0.0, f64::max)
    };
    let met_limit = shape.steps.iter().filter(|step| is_full(step) && step.delivered_bps() >= before(step));
    let gives_way = Shape { steps: met_limit.copied().collect(), ..shape.clone() }.gives_way();
    (gives_way || shape.shared.is_some()).then(|| format!("{}, and other traffic shares its queue", profile.words()))
}

/// The loss of the path, where it slows the connection down: more than long paths have, felt by the congestion window and the congestion
/// control, and of no host.
/// Errors: the assessment of a cause of such loss where it is not so.
pub(crate) fn felt_loss(
    evidence: &TcpEvidence,
    loss: Option<Loss>,
    is_few: impl FnOnce(Loss) -> bool,
) -> Result<Loss, Assessment> {
    let loss = known(loss, "the sender's retransmissions could not be read")?;
    let span = evidence.after_start();
    if is_few(loss) {
        return Err(contradicts(format!("only {} of {} segments were lost{span}", loss.lost(), loss.sent)));
    }
    ended(loss_does_not_bind(evidence))?;
    if evidence.base.is_bbr() && loss.rate() < BBR_MINDS {
        let part = units::percent(loss.rate());
        return Err(contradicts(format!("BBR does not reduce its rate at a loss of {part}{span}")));
    }
    if lost_at_home(evidence) {
        let why = in_a_host(evidence);
        return Err(contradicts(why.unwrap_or_else(|| "the sender's own queue dropped them".to_owned())));
    }
    Ok(loss)
}

/// What a count of lost packets that is no stage of the ledger says of its cause: it must explain most of what TCP lost, on a path
/// that is not full.
pub(crate) fn counted(evidence: &TcpEvidence, count: Option<u64>, what: &str, second: Option<Witness>) -> Ruling {
    let loss = binding_loss(evidence)?;
    let count = known(count, format!("{what} could not be read"))?;
    if count == 0 {
        return Err(contradicts(format!("{what} did not grow")));
    }
    if evidence.queue_stood() == Some(true) && !evidence.path_has_room() {
        return Err(contradicts("the RTT rose as behind a full queue, so the loss is ordinary overflow"));
    }
    let part = count as f64 / loss.lost() as f64;
    if part < PART {
        return Err(contradicts(format!("{what} grew by only {count}, and {} segments were lost", loss.lost())));
    }
    explained(evidence, counter(format!("{what} grew by {count}")), loss, part, second)
}

fn explained(evidence: &TcpEvidence, first: Witness, loss: Loss, part: f64, second: Option<Witness>) -> Ruling {
    let part = part.min(1.0);
    let lost = counter(format!("TCP lost {} segments; the drops explain {}", loss.lost(), units::percent(part)));
    supports(part, [Some(first), Some(lost), second, path_has_room(evidence)])
}

/// What the ledger says of a cause that drops segments at one stage.
pub(crate) fn dropped_at(evidence: &TcpEvidence, id: &str, second: Option<Witness>) -> Ruling {
    let loss = binding_loss(evidence)?;
    let stage = known(stage(evidence, id), format!("the ledger has no stage {id}"))?;
    if stage.dropped == 0 {
        return Err(if stage.counted {
            contradicts(format!("{id}: nothing was dropped there"))
        } else {
            cannot_tell(&*stage.source)
        });
    }
    let Some((dropped, part)) = part(evidence, id) else {
        return Err(cannot_tell(format!(
            "{id}: {} drops, up to {} of them possibly of other traffic",
            stage.dropped, stage.uncertainty
        )));
    };
    if part < PART {
        return Err(contradicts(format!("{id}: only {dropped} of {} lost segments were dropped there", loss.lost())));
    }
    ended(of_others(evidence, id).map(cannot_tell))?;
    let ledger = counter(format!("packet ledger: {dropped} segments dropped at {id} ({})", stage.source));
    explained(evidence, ledger, loss, part, second)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::causes::tcp::{filter_drop, random_loss};
    use crate::testing::profile::{Excess, ProfiledPath};
    use crate::testing::{Scene, assert_cannot_tell, assessment, lossy, named, slow};
    use narrows_model::Place;

    #[test]
    fn what_a_filter_drops_of_others_is_not_what_was_lost() {
        let filtered = |packets: i64, bytes: i64| {
            lossy(25_500, &[("filter.drop.packets", packets), ("filter.drop.bytes", bytes * packets)])
        };
        let of = |scene: &Scene| assessment(&filter_drop::CAUSE, Role::Receiver, scene, &[]);
        named(&filtered(170, 1_500), &[], "filter-drop", Place::Server);
        // Of 340 drops 170 may be its own.
        named(&filtered(340, 1_500), &[], "filter-drop", Place::Server);
        assert_cannot_tell(&of(&filtered(400, 1_500)), "400 drops and 170 lost segments");
        // Half of a segment has 724 bytes.
        named(&filtered(170, 730), &[], "filter-drop", Place::Server);
        assert_cannot_tell(&of(&filtered(170, 720)), "had 720 bytes on average");
        // Then the path may have lost them.
        let path = ProfiledPath { one_lost_of: Some(150), ..ProfiledPath::default() };
        let scene = Scene { goodput_bps: 5e6, cwnd: 15, profile: Some(path), ..filtered(400, 60) };
        let verdict = crate::testing::verdict(&scene, &[]);
        assert_eq!(verdict.causes[0].id, random_loss::CAUSE.id, "{verdict:#?}");
    }

    #[test]
    fn others_share_a_queue_and_no_bucket() {
        let of = |path: ProfiledPath| {
            let run = Scene { profile: Some(path), ..slow() }.run(&[]);
            beside_others(&TcpEvidence::of(&run, 0).expect("a baseline"))
        };
        let path = ProfiledPath { rate_bps: 100e6, burst_bps: 100e6, ..ProfiledPath::default() };
        assert_eq!(of(path), None);
        let beside = of(ProfiledPath { others_bps: 60e6, ..path });
        assert!(beside.is_some_and(|why| why.contains("60.0 Mbit/s of other traffic")));
        // Two steps make no line, but the faster one got more.
        assert!(of(ProfiledPath { others_bps: 70e6, tried_bps: 90e6, ..path }).is_some());
        for excess in [Excess::WaitsAfter(1_300), Excess::DroppedAfter(1_300)] {
            assert_eq!(of(ProfiledPath { burst_bps: 900e6, excess, ..path }), None);
        }
        assert_eq!(of(ProfiledPath { one_lost_of: Some(5), ..path }), None);
    }
}
