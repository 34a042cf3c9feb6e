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

/// What the sender's device dropped, or one below it, the backlog of a virtual peer included.
///
/// A tunnel or VLAN counts what is refused below it as dropped, too (`iptunnel_xmit_stats`, `vlan_dev_hard_start_xmit`): the largest
/// count stands for all, less what the queueing discipline of a device below counts itself.
fn device_drops(accounting: &Accounting) -> u64 {
    let count = |key| accounting.sent(key).unwrap_or(0);
    let own = count(keys::NIC_COUNTER_TX_DROPPED).saturating_add(count(keys::NIC_COUNTER_TX_ERRORS));
    let below = accounting.sent_below(keys::LAYER_TX_DROPPED).max().unwrap_or(0);
    own.max(below).saturating_sub(accounting.sent_below(keys::LAYER_QDISC_DROPS).sum())
}

/// Of them, those that the receiver's backlog dropped: a virtual pair hands its packets over itself, and counts what the
/// other end refuses as its own drops.
pub(super) fn at_the_peer(accounting: &Accounting) -> u64 {
    let backlog = accounting.backlog().unwrap_or(0);
    if accounting.one_kernel { backlog.min(device_drops(accounting)) } else { 0 }
}

pub(super) fn entries(accounting: &Accounting) -> Vec<Entry> {
    let at = accounting.flow.sender();
    let entry = |id, claim, source: String| Entry { id, at, claim, source };
    let (unsent, reported) = (&accounting.unsent, ReportedDrops::of(accounting));
    let refused =
        [unsent.too_big, unsent.refused, unsent.other].iter().fold(reported.nowhere, |sum, n| sum.saturating_add(*n));
    let claim = |n| if accounting.refusals_unknown { Claim::unknown() } else { Claim::exactly(n) };
    vec![
        entry("unsent", claim(refused), errors(accounting, reported)),
        entry("send-buffer", claim(unsent.would_block), "EAGAIN at the send call".to_owned()),
        filter(accounting),
        qdisc(accounting, reported),
        device(accounting),
        Entry { id: "path", at: Place::Path, claim: Claim::unknown(), source: String::new() },
    ]
}

/// The send call of UDP fails. TCP counts a segment as sent that its own host refused, and sends it again at the next acknowledgement
/// (`net/ipv4/tcp_output.c`, `tcp_write_xmit`).
fn filter(accounting: &Accounting) -> Entry {
    let entry = |claim, source: String| Entry { id: "send-filter", at: accounting.flow.sender(), claim, source };
    if !accounting.tcp {
        let refused = accounting.unsent.not_permitted;
        let claim = if accounting.refusals_unknown { Claim::unknown() } else { Claim::exactly(refused) };
        return entry(claim, "EPERM at the send call".to_owned());
    }
    // A program at the egress of its device drops segments behind IP, and before the queueing discipline.
    let egress = accounting.reason(true, "TC_EGRESS").unwrap_or(0);
    match accounting.unsent_by_filter().or((egress > 0).then_some(0)) {
        Some(n) => {
            let mut source = format!("{n} packets that IP of the sender was to send, dropped by its filter");
            if egress > 0 {
                source.push_str(&format!(", {egress} TC_EGRESS"));
            }
            entry(Claim::batches(n.saturating_add(egress), accounting.batch_sent()), source)
        }
        None => entry(
            Claim::unknown(),
            "neither the sender's IP nor its rules count what was kept from being sent".to_owned(),
        ),
    }
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
        // What it sent of others is not of this flow: of a flow of TCP acknowledgements, the control connection, other connections.
        let segments = accounting.sent(keys::SNMP_TCP_OUT_SEGS).unwrap_or(0);
        let others = if accounting.tcp { segments.saturating_sub(accounting.accepted) } else { segments };
        let ours = sent.saturating_sub(others);
        let dropped = accounting.accepted.saturating_add(reported.qdisc).saturating_sub(ours);
        // Those that passed another device make it seem more than is missing.
        let missing = accounting.offered.saturating_sub(accounting.delivered);
        claim.close_at(if accounting.tcp { dropped.min(missing) } else { dropped });
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
    let below = accounting.sent_below(keys::LAYER_TX_DROPPED).max().filter(|below| *below > 0);
    if let Some(name) = accounting.lowest.as_ref().filter(|_| below.is_some()) {
        source.push_str(&format!(" and of those below it, down to {name}"));
    }
    if peer > 0 {
        source.push_str(&format!(", {peer} of them counted at the receiver's backlog"));
    }
    let claim =
        Claim::batches(all - peer, accounting.batch_sent()).shared_with(accounting.accepted, others(accounting));
    Entry { id: "nic-tx", at, claim, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_model::Flow;

    #[test]
    fn what_a_program_at_the_egress_drops_is_of_the_filter() {
        let of = |counts: &[(&str, u64)]| {
            let sender = counts.iter().map(|(key, n)| ((*key).to_owned(), *n)).collect();
            filter(&Accounting { tcp: true, sender, ..Accounting::empty(Flow::Up) }).claim
        };
        let watched = [("drop.lost_records", 0), ("drop.elsewhere", 0), ("drop.reason.TC_EGRESS", 170)];
        assert_eq!(of(&watched).dropped(), 170);
        // Of the whole kernel: nothing says that they are this host's.
        assert_eq!(of(&[("drop.lost_records", 0), ("drop.reason.TC_EGRESS", 170)]).dropped(), 0);
        assert!(!of(&[]).counted);
    }
}
