//! The sender's half: from the send call to the wire.

use super::accounting::Accounting;
use super::claim::{Claim, Entry};
use narrows_model::Place;
use narrows_model::keys;

/// Where the drops happened that came back to the application as `ENOBUFS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ReportedDrops {
    /// In the queueing discipline.
    pub(super) qdisc: u64,
    /// In the device, or at its virtual peer.
    pub(super) device: u64,
    /// Nowhere that a counter knows of: refused.
    pub(super) nowhere: u64,
}

impl ReportedDrops {
    /// The queueing discipline first, since what it dropped never reached the device.
    pub(super) fn of(accounting: &Accounting) -> Self {
        let most = accounting.batch_sent();
        let reported = accounting.unsent.no_buffers;
        let qdisc = reported.min(accounting.sent(keys::QDISC_DROPS).unwrap_or(0).saturating_mul(most));
        let device = (reported - qdisc).min(device_drops(accounting).max(at_the_peer(accounting)).saturating_mul(most));
        Self { qdisc, device, nowhere: reported - qdisc - device }
    }
}

/// What the sender's device dropped, the backlog of a virtual peer included.
fn device_drops(accounting: &Accounting) -> u64 {
    let count = |key| accounting.sent(key).unwrap_or(0);
    count(keys::NIC_COUNTER_TX_DROPPED).saturating_add(count(keys::NIC_COUNTER_TX_ERRORS))
}

/// Of them, those that the receiver's backlog dropped: a virtual pair hands its packets over itself, and counts what the
/// other end refuses as its own drops.
pub(super) fn at_the_peer(accounting: &Accounting) -> u64 {
    let backlog = accounting.got(keys::SOFTNET_DROPPED).unwrap_or(0);
    if accounting.one_kernel { backlog.min(device_drops(accounting)) } else { 0 }
}

pub(super) fn entries(accounting: &Accounting) -> Vec<Entry> {
    let at = accounting.flow.sender();
    let entry = |id, claim, source: String| Entry { id, at, claim, source };
    let (unsent, reported) = (&accounting.unsent, ReportedDrops::of(accounting));
    let refused =
        [unsent.too_big, unsent.refused, unsent.other].iter().fold(reported.nowhere, |sum, n| sum.saturating_add(*n));
    vec![
        entry("unsent", Claim::exactly(refused), errors(accounting, reported)),
        entry("send-buffer", Claim::exactly(unsent.would_block), "EAGAIN at the send call".to_owned()),
        entry("send-filter", Claim::exactly(unsent.not_permitted), "EPERM at the send call".to_owned()),
        qdisc(accounting, reported),
        device(accounting),
        Entry { id: "path", at: Place::Path, claim: Claim::unknown(), source: String::new() },
    ]
}

fn errors(accounting: &Accounting, reported: ReportedDrops) -> String {
    let unsent = &accounting.unsent;
    let parts: Vec<String> = [
        ("ENOBUFS", reported.nowhere),
        ("EMSGSIZE", unsent.too_big),
        ("ECONNREFUSED", unsent.refused),
        ("other errors", unsent.other),
    ]
    .iter()
    .filter(|(_, n)| *n > 0)
    .map(|(name, n)| format!("{n} {name}"))
    .collect();
    if parts.is_empty() {
        "errors at the send call".to_owned()
    } else {
        format!("{} at the send call", parts.join(", "))
    }
}

/// Packets of the sender that are not of this flow, as far as its device counts them.
fn others(accounting: &Accounting) -> u64 {
    accounting.sent(keys::NIC_COUNTER_TX_PACKETS).unwrap_or(0).saturating_sub(accounting.accepted)
}

fn qdisc(accounting: &Accounting, reported: ReportedDrops) -> Entry {
    let at = accounting.flow.sender();
    let Some(drops) = accounting.sent(keys::QDISC_DROPS) else {
        let claim = Claim { low: reported.qdisc, high: reported.qdisc, ..Claim::unknown() };
        return Entry { id: "qdisc", at, claim, source: "the queueing discipline gave no counters".to_owned() };
    };
    let mut claim = match (accounting.segmented, accounting.fragments_each()) {
        (true, _) => Claim::batches(drops, accounting.batch_most),
        (false, 1) => Claim::exactly(drops),
        (false, parts) => Claim { low: drops.div_ceil(parts), ..Claim::batches(drops, 1) },
    };
    let mut source = format!("{drops} drops of the queueing discipline");
    if reported.qdisc > claim.low {
        claim.low = reported.qdisc.min(claim.high);
    }
    if reported.qdisc > 0 {
        source.push_str(&format!(", {} of them reported to the application (ENOBUFS)", reported.qdisc));
    }
    // It counts segments when it sends, and batches when it drops.
    if accounting.segmented
        && drops > 0
        && let Some(sent) = accounting.sent(keys::QDISC_SENT_PACKETS)
    {
        let others = if accounting.tcp { 0 } else { accounting.sent(keys::SNMP_TCP_OUT_SEGS).unwrap_or(0) };
        let ours = sent.saturating_sub(others);
        claim.close_at(accounting.accepted.saturating_add(reported.qdisc).saturating_sub(ours));
        source.push_str(&format!(" as batches; it sent {ours} segments"));
    }
    Entry { id: "qdisc", at, claim: claim.shared_with(accounting.accepted, others(accounting)), source }
}

fn device(accounting: &Accounting) -> Entry {
    let at = accounting.flow.sender();
    if accounting.sent(keys::NIC_COUNTER_TX_DROPPED).is_none() {
        let source = "the device gave no counters".to_owned();
        return Entry { id: "nic-tx", at, claim: Claim::unknown(), source };
    }
    let (all, peer) = (device_drops(accounting), at_the_peer(accounting));
    let mut source = format!("{all} tx_dropped and tx_errors of the device");
    if peer > 0 {
        source.push_str(&format!(", {peer} of them counted at the receiver's backlog"));
    }
    let claim =
        Claim::batches(all - peer, accounting.batch_sent()).shared_with(accounting.accepted, others(accounting));
    Entry { id: "nic-tx", at, claim, source }
}
