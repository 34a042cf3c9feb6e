//! The sender's half: from the send call to the wire.

use super::Entry;
use super::books::Books;
use super::claim::Claim;
use narrows_model::Place;

/// Where the drops happened that came back to the application as `ENOBUFS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Told {
    /// In the queueing discipline.
    pub(super) qdisc: u64,
    /// In the device, or at its virtual peer.
    pub(super) device: u64,
    /// Nowhere that a counter knows of: refused.
    pub(super) nowhere: u64,
}

impl Told {
    /// The queueing discipline first, since what it dropped never reached the device.
    pub(super) fn of(books: &Books) -> Self {
        let most = books.batch_sent();
        let told = books.unsent.no_buffers;
        let qdisc = told.min(books.sent("qdisc.drops").unwrap_or(0).saturating_mul(most));
        let device = (told - qdisc).min(device_drops(books).max(at_the_peer(books)).saturating_mul(most));
        Self { qdisc, device, nowhere: told - qdisc - device }
    }
}

/// What the sender's device dropped, the backlog of a virtual peer included.
fn device_drops(books: &Books) -> u64 {
    let count = |key| books.sent(key).unwrap_or(0);
    count("nic.counter.tx_dropped").saturating_add(count("nic.counter.tx_errors"))
}

/// Of them, those that the receiver's backlog dropped: a virtual pair hands its packets over itself, and counts what the
/// other end refuses as its own drops.
pub(super) fn at_the_peer(books: &Books) -> u64 {
    let backlog = books.got("softnet.dropped").unwrap_or(0);
    if books.one_kernel { backlog.min(device_drops(books)) } else { 0 }
}

pub(super) fn entries(books: &Books) -> Vec<Entry> {
    let at = books.flow.sender();
    let entry = |id, claim, source: String| Entry { id, at, claim, source };
    let (unsent, told) = (&books.unsent, Told::of(books));
    let refused =
        [unsent.too_big, unsent.refused, unsent.other].iter().fold(told.nowhere, |sum, n| sum.saturating_add(*n));
    vec![
        entry("unsent", Claim::exactly(refused), errors(books, told)),
        entry("send-buffer", Claim::exactly(unsent.would_block), "EAGAIN at the send call".to_owned()),
        entry("send-filter", Claim::exactly(unsent.not_permitted), "EPERM at the send call".to_owned()),
        qdisc(books, told),
        device(books),
        Entry { id: "path", at: Place::Path, claim: Claim::unknown(), source: String::new() },
    ]
}

fn errors(books: &Books, told: Told) -> String {
    let unsent = &books.unsent;
    let parts: Vec<String> = [
        ("ENOBUFS", told.nowhere),
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
fn others(books: &Books) -> u64 {
    books.sent("nic.counter.tx_packets").unwrap_or(0).saturating_sub(books.accepted)
}

fn qdisc(books: &Books, told: Told) -> Entry {
    let at = books.flow.sender();
    let Some(drops) = books.sent("qdisc.drops") else {
        let claim = Claim { low: told.qdisc, high: told.qdisc, ..Claim::unknown() };
        return Entry { id: "qdisc", at, claim, source: "the queueing discipline gave no counters".to_owned() };
    };
    let mut claim = match (books.segmented, books.fragments_each()) {
        (true, _) => Claim::batches(drops, books.batch_most),
        (false, 1) => Claim::exactly(drops),
        (false, parts) => Claim { low: drops.div_ceil(parts), ..Claim::batches(drops, 1) },
    };
    let mut source = format!("{drops} drops of the queueing discipline");
    if told.qdisc > claim.low {
        claim.low = told.qdisc.min(claim.high);
    }
    if told.qdisc > 0 {
        source.push_str(&format!(", {} of them told to the application (ENOBUFS)", told.qdisc));
    }
    // It counts segments when it sends, and batches when it drops.
    if books.segmented
        && drops > 0
        && let Some(sent) = books.sent("qdisc.sent.packets")
    {
        let others = if books.tcp { 0 } else { books.sent("snmp.Tcp.OutSegs").unwrap_or(0) };
        let ours = sent.saturating_sub(others);
        claim.close_at(books.accepted.saturating_add(told.qdisc).saturating_sub(ours));
        source.push_str(&format!(" as batches; it sent {ours} segments"));
    }
    Entry { id: "qdisc", at, claim: claim.shared_with(books.accepted, others(books)), source }
}

fn device(books: &Books) -> Entry {
    let at = books.flow.sender();
    if books.sent("nic.counter.tx_dropped").is_none() {
        let source = "the device gave no counters".to_owned();
        return Entry { id: "nic-tx", at, claim: Claim::unknown(), source };
    }
    let (all, peer) = (device_drops(books), at_the_peer(books));
    let mut source = format!("{all} tx_dropped and tx_errors of the device");
    if peer > 0 {
        source.push_str(&format!(", {peer} of them booked at the receiver's backlog"));
    }
    let claim = Claim::batches(all - peer, books.batch_sent()).shared_with(books.accepted, others(books));
    Entry { id: "nic-tx", at, claim, source }
}
