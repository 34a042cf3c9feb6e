//! Between the hosts: what left one device and did not reach the other; and the end of all ranges.

use super::accounting::Accounting;
use super::claim::{Claim, Entry, close};
use narrows_model::keys;

/// Packets of neighbours' discovery and of the control connection that only one of two snapshots has.
const EDGE: u64 = 16;

/// Bytes of an Ethernet header.
const LINK_BYTES: u64 = 14;

/// What the devices say of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Devices {
    /// So many more datagrams left than arrived; the packets of both, and by how much other traffic may blur them.
    Lost { lost: i128, sent: u64, got: u64, blur: u64 },
    /// They count batches, or fragments, and not the same at both ends.
    OtherUnits,
    /// One of them does not count.
    Silent,
}

/// Where the stages that lie behind IP of the receiver begin.
const AFTER_IP: [&str; 4] = ["receive-filter", "reassembly", "checksum", "receive-buffer"];

/// Stages whose counters know no sockets.
const OF_ALL_TRAFFIC: [&str; 2] = ["qdisc", "receive-filter"];

/// Closes every range and accounting the path. By how much other traffic may blur what is left unexplained.
pub(super) fn book(accounting: &Accounting, entries: &mut [Entry], missing: i128, remarks: &mut Vec<String>) -> u64 {
    close_behind_ip(accounting, entries);
    let left =
        |entries: &[Entry]| missing - entries.iter().map(|entry| i128::from(entry.claim.dropped())).sum::<i128>();
    let devices = devices(accounting, entries, left(entries));
    let expected = match devices {
        Devices::Lost { lost, .. } => lost.max(0),
        Devices::OtherUnits | Devices::Silent => 0,
    };
    if let Ok(extra @ 1..) = u64::try_from(left(entries) - expected) {
        let known = matches!(devices, Devices::Lost { .. });
        let open = |claim: &Claim| !claim.closed && claim.low > 0;
        let mut some: Vec<&mut Claim> = entries.iter_mut().map(|entry| &mut entry.claim).filter(|c| open(c)).collect();
        match some.as_mut_slice() {
            // What the path lost is counted, so what else is missing is what the only one left holds.
            [only] if known => only.close_at(only.low.saturating_add(extra)),
            _ => {
                close(entries.iter_mut().map(|entry| &mut entry.claim), extra);
            }
        }
    }
    // Of a few that the devices cannot tell from other traffic, the counter that includes such traffic as well may be wrong.
    let unclear = matches!(devices, Devices::Lost { lost, blur, .. } if lost.unsigned_abs() <= u128::from(blur));
    let few = |n: i128| n.unsigned_abs() <= u128::from(EDGE);
    let apart = left(entries) - if unclear && few(left(entries)) { 0 } else { expected };
    if apart != 0
        && few(apart)
        && let Some(near) = entries.iter_mut().find(|entry| entry.claim.near)
    {
        near.claim.move_by(apart);
    }
    give_back(accounting, entries, expected - left(entries), remarks);
    let rest = left(entries);
    let Some(path) = entries.iter_mut().find(|entry| entry.id == "path") else { return 0 };
    let whole = |n: i128| u64::try_from(n.max(0)).unwrap_or(u64::MAX);
    let (mut blurred, mut too_much) = (0, 0);
    match devices {
        Devices::Lost { lost, sent, got, blur } => {
            let batches = if accounting.tcp { " (a batch of segments counts as one)" } else { "" };
            path.source = format!("{sent} packets left the sender's device, {got} reached the receiver's{batches}");
            let apart = whole((lost - rest).abs());
            if apart <= blur && rest >= 0 {
                // Two independent counts agree within the uncertainty from other traffic.
                path.claim = Claim { shared: apart, ..Claim::exactly(whole(rest)) };
            } else if !accounting.tcp && lost > missing {
                // The numbers of datagrams are exact, and the devices carried other traffic, which the hosts do not count alike.
                path.claim = Claim { counted: false, ..Claim::exactly(whole(rest)) };
                path.source =
                    "by subtraction, what no other stage lost: the devices carried other packets as well".to_owned();
            } else {
                path.claim = Claim::exactly(whole(lost));
                blurred = blur;
                too_much = if accounting.tcp { 0 } else { whole((lost - rest).max(-rest)) };
            }
        }
        Devices::OtherUnits | Devices::Silent => {
            path.claim = Claim { counted: false, ..Claim::exactly(whole(rest)) };
            let why = match (devices, accounting.tcp) {
                (Devices::Silent, _) => "a device gave no counters",
                (_, true) => "the devices count batches, not segments",
                (_, false) => "the devices count batches or fragments, not datagrams",
            };
            path.source = format!("by subtraction, what no other stage lost: {why}");
        }
    }
    // Then what a host dropped of all its traffic is of other datagrams, too.
    for entry in entries.iter_mut().filter(|entry| OF_ALL_TRAFFIC.contains(&entry.id) && entry.claim.low > 0) {
        entry.claim.shared = entry.claim.shared.saturating_add(too_much);
    }
    if rest < 0 && matches!(devices, Devices::Lost { .. }) {
        remarks.push(
            "more drops were counted than packets are missing: some counters include other traffic or the same packet twice"
                .to_owned(),
        );
    }
    blurred
}

/// Segments of TCP that were lost beside the datagrams of UDP: what one end sent and the other did not get, or what was sent
/// again (a pure acknowledgement never is). One kernel's counters have both directions.
fn lost_segments(accounting: &Accounting) -> u64 {
    if accounting.tcp {
        return 0;
    }
    let [out, got, again] = [keys::SNMP_TCP_OUT_SEGS, keys::SNMP_TCP_IN_SEGS, keys::SNMP_TCP_RETRANS_SEGS];
    let gone = |out: Option<u64>, got: Option<u64>| out.zip(got).map_or(0, |(out, got)| out.saturating_sub(got));
    let forth = gone(accounting.sent(out), accounting.got(got)).max(accounting.sent(again).unwrap_or(0));
    let back = gone(accounting.got(out), accounting.sent(got)).max(accounting.got(again).unwrap_or(0));
    forth.saturating_add(if accounting.one_kernel { back } else { 0 })
}

/// Where the stages claim more than is missing: a stage that other traffic shares gives back what TCP lost, for its
/// segments were dropped by the same counter.
fn give_back(accounting: &Accounting, entries: &mut [Entry], too_much: i128, remarks: &mut Vec<String>) {
    let Ok(too_much @ 1..) = u64::try_from(too_much) else { return };
    let shares = |claim: &Claim| claim.shared >= too_much && claim.low >= too_much;
    if too_much <= lost_segments(accounting)
        && let Some(entry) = entries.iter_mut().find(|entry| shares(&entry.claim))
    {
        entry.claim.give_back(too_much);
        remarks.push(format!(
            "{too_much} of the drops counted at {} were segments of TCP, which shares the counter",
            entry.id
        ));
    }
}

/// Behind IP of the receiver each segment was counted on arrival: what is missing from there on is what these stages dropped.
fn close_behind_ip(accounting: &Accounting, entries: &mut [Entry]) {
    if !entries.iter().any(|entry| AFTER_IP.contains(&entry.id) && !entry.claim.closed)
        || accounting.fragments_each() > 1
    {
        return;
    }
    let Some(arrivals) = accounting.arrivals() else { return };
    let behind = || AFTER_IP.iter();
    let booked: u64 = entries
        .iter()
        .filter(|entry| behind().any(|id| *id == entry.id))
        .fold(0, |sum, entry| sum.saturating_add(entry.claim.dropped()));
    let lost = arrivals.saturating_sub(accounting.delivered).saturating_sub(accounting.duplicated);
    let mut open: Vec<&mut Claim> = entries
        .iter_mut()
        .filter(|entry| AFTER_IP.contains(&entry.id))
        .map(|entry| &mut entry.claim)
        .filter(|claim| !claim.closed && claim.low > 0)
        .collect();
    let extra = lost.saturating_sub(booked);
    if let [only] = open.as_mut_slice() {
        only.close_at(only.low.saturating_add(extra));
    } else {
        close(open.into_iter(), extra);
    }
}

/// Datagrams that left and did not arrive, by the bytes that both devices counted: a batch has the payload of all of its
/// datagrams, whatever it is counted as. As a range. `None` where the datagrams are of several sizes or a device counts no bytes.
fn lost_by_bytes(accounting: &Accounting, sent: u64, got: u64) -> Option<[i128; 2]> {
    let payload = i128::from(accounting.payload.filter(|bytes| *bytes > 0)?);
    let bytes = i128::from(accounting.sent(keys::NIC_COUNTER_TX_BYTES)?)
        - i128::from(accounting.got(keys::NIC_COUNTER_RX_BYTES)?);
    // Each packet has its own headers; whether a device counts those of its link, too, is not known.
    let packets = i128::from(sent) - i128::from(got);
    let without = |header: u64| {
        let lost = (bytes - packets * i128::from(header) + payload / 2).div_euclid(payload);
        lost + i128::from(accounting.duplicated)
    };
    let [a, b] = [accounting.header_bytes(), accounting.header_bytes() + LINK_BYTES].map(without);
    Some([a.min(b), a.max(b)])
}

/// `left`: what is missing and no stage of a host has.
fn devices(accounting: &Accounting, entries: &[Entry], left: i128) -> Devices {
    let (sent, got) = (accounting.sent(keys::NIC_COUNTER_TX_PACKETS), accounting.got(keys::NIC_COUNTER_RX_PACKETS));
    let (Some(sent), Some(got)) = (sent, got) else { return Devices::Silent };
    let dropped = |ids: &[&str]| -> u64 {
        entries
            .iter()
            .filter(|entry| ids.contains(&entry.id))
            .fold(0, |sum, entry| sum.saturating_add(entry.claim.dropped()))
    };
    // What the socket took, less what was dropped before the wire; a drop that was reported was not among what it took.
    let reported = super::sending::ReportedDrops::of(accounting);
    let to_wire = accounting
        .accepted
        .saturating_add(reported.qdisc)
        .saturating_add(reported.device)
        .saturating_sub(dropped(&["qdisc", "nic-tx"]))
        // A socket of TCP counts what a filter refused; one of UDP did not take it.
        .saturating_sub(if accounting.tcp { dropped(&["send-filter"]) } else { 0 });
    let at_the_peer = super::sending::at_the_peer(accounting);
    let arrived = accounting.delivered.saturating_add(accounting.duplicated);
    let tcp = accounting
        .sent(keys::SNMP_TCP_OUT_SEGS)
        .unwrap_or(0)
        .saturating_add(accounting.got(keys::SNMP_TCP_IN_SEGS).unwrap_or(0));
    let blur = EDGE.saturating_add(sent.saturating_sub(to_wire).saturating_add(tcp) / 4);
    if accounting.fragments_each() > 1 {
        return Devices::OtherUnits;
    }
    let each_a_packet = sent.saturating_add(at_the_peer) >= to_wire && got >= arrived;
    if each_a_packet {
        let mut lost = i128::from(sent) + i128::from(accounting.duplicated) - i128::from(got);
        // A batch of segments may be one packet of either device: what was lost lies between their packets and their payload.
        if accounting.tcp
            && let Some([_, by_bytes]) = lost_by_bytes(accounting, sent, got).filter(|[_, most]| *most > lost)
        {
            lost = left.clamp(lost, by_bytes);
        }
        return Devices::Lost { lost, sent, got, blur };
    }
    // The devices' headers of links make a percent of a long load of TCP, whose sockets count exactly.
    if accounting.batch_got() > 1
        && !accounting.tcp
        && let Some([least, most]) = lost_by_bytes(accounting, sent, got)
    {
        return Devices::Lost { lost: left.clamp(least, most), sent, got, blur: EDGE };
    }
    // In whatever batches: as many left as arrived, but for a few, of which each may have held a whole batch.
    if accounting.batch_got() > 1 && sent.abs_diff(got) <= EDGE {
        let most = i128::from(sent.saturating_sub(got).saturating_mul(accounting.batch_got()));
        return Devices::Lost { lost: left.clamp(0, most), sent, got, blur: EDGE };
    }
    if accounting.batch_got() > 1 {
        return Devices::OtherUnits;
    }
    let lost = i128::from(sent) + i128::from(accounting.duplicated) - i128::from(got);
    Devices::Lost { lost, sent, got, blur }
}
