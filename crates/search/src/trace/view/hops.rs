//! The hops: who answered, how fast, how often.

use crate::trace::paths::flows_for;
use narrows_model::trace::report::{TraceHop, TraceNode};
use narrows_model::words::figures::float;
use narrows_model::{AnswerKind, ProbePurpose, TraceAnswer, TraceProbe, TraceProtocol, TraceRecord};
use narrows_stats::median;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Two hops differ where chance makes so much difference on a path no more often than this.
const CHANCE: f64 = 0.01;
/// What Linux allows a router: answers at once, and the time of each further one to the same host (icmp(7), `icmp_ratelimit`, and
/// `XRLIM_BURST_FACTOR` of net/ipv4/icmp.c).
const BURST: f64 = 6.0;
const TOKEN_US: f64 = 1e6;

/// The last hop that is shown: the end of the path, or the first silent hop behind the last that answers.
pub(super) fn last(record: &TraceRecord) -> u8 {
    let answered = |wanted: fn(AnswerKind) -> bool| {
        let of = record.probes.iter().filter(move |it| it.answer.as_ref().is_some_and(|answer| wanted(answer.kind)));
        of.map(|it| it.ttl)
    };
    // Flows over unequal paths end at different TTLs: the longest of them is shown. Where probes are lost the first answer of the end is to
    // a higher TTL than its own, so that a flow whose routers do not show a longer path has none.
    let mut ends: BTreeMap<u16, u8> = BTreeMap::new();
    for probe in record.probes.iter().filter(|it| it.answer.as_ref().is_some_and(|answer| answer.kind.is_end())) {
        let end = ends.entry(probe.flow).or_insert(probe.ttl);
        *end = probe.ttl.min(*end);
    }
    let nearest = ends.values().min().copied();
    let longer = record.probes.iter().filter(|it| {
        let passed = it.answer.as_ref().is_some_and(|answer| answer.kind == AnswerKind::TimeExceeded);
        passed && nearest.is_some_and(|nearest| it.ttl >= nearest)
    });
    let longest = longer.filter_map(|it| ends.get(&it.flow)).max().copied();
    let routers = answered(|kind| kind == AnswerKind::TimeExceeded).max().unwrap_or(0);
    let first = record.plan.first_ttl.max(1);
    match longest.max(nearest) {
        Some(end) => end,
        None => routers.saturating_add(1).max(first).min(record.plan.max_ttl.max(first)),
    }
}

/// The probes that count at this hop. Those with a higher TTL than the last hop's count there only where none of its own was answered: of
/// them only the answered ones are known to have come so far.
fn at(record: &TraceRecord, ttl: u8, last: u8) -> Vec<&TraceProbe> {
    let counts = |probe: &&TraceProbe| probe.purpose != ProbePurpose::Mtu;
    let own = || record.probes.iter().filter(counts).filter(move |probe| probe.ttl == ttl);
    if ttl < last || own().any(|probe| probe.answer.is_some()) {
        return own().collect();
    }
    let is_end = |probe: &&TraceProbe| probe.answer.as_ref().is_some_and(|answer| answer.kind.is_end());
    own().chain(record.probes.iter().filter(counts).filter(|probe| probe.ttl > last).filter(is_end)).collect()
}

pub(super) fn hop(record: &TraceRecord, ttl: u8, last: u8) -> TraceHop {
    let probes = at(record, ttl, last);
    let counted = counted(record);
    let sent = probes.iter().filter(|it| counted(it)).count();
    let mut by_address: BTreeMap<IpAddr, Vec<(&TraceProbe, &TraceAnswer)>> = BTreeMap::new();
    for (probe, answer) in probes.iter().filter_map(|it| Some((*it, it.answer.as_ref()?))) {
        by_address.entry(answer.from).or_default().push((probe, answer));
    }
    let mut nodes: Vec<TraceNode> = by_address.into_iter().map(|(from, all)| node(record, from, &all)).collect();
    nodes.sort_by_key(|node| std::cmp::Reverse(node.answered));
    let answered: u32 = nodes.iter().map(|node| node.answered).sum();
    let answered_flows: BTreeSet<u16> = probes.iter().filter(|it| it.answer.is_some()).map(|it| it.flow).collect();
    let flows: BTreeSet<u16> = probes.iter().map(|it| it.flow).collect();
    let sent = u32::try_from(sent).unwrap_or(u32::MAX);
    TraceHop {
        ttl,
        sent,
        answered,
        loss: (sent > 0).then(|| 1.0 - f64::from(answered.min(sent)) / f64::from(sent)),
        limits_answers: false,
        pmtu_bytes: None,
        flows: u16::try_from(flows.len()).unwrap_or(u16::MAX),
        complete: !nodes.is_empty() && answered_flows.len() >= flows_for(nodes.len()).into(),
        nodes,
    }
}

/// Whether a probe is answered or lost: in a trace that goes on, it may still be answered.
fn counted(record: &TraceRecord) -> impl Fn(&TraceProbe) -> bool + '_ {
    let newest = record.probes.iter().map(|it| it.sent_us).max().unwrap_or(0);
    let wait = record.plan.wait_ms.saturating_mul(1_000);
    move |it| it.answer.is_some() || it.sent_us.saturating_add(wait) <= newest || !running(record)
}

/// Lost and sent, of the probes to a hop whose answers the limit of Linux cannot have stopped: they came no faster than its bucket fills,
/// even if earlier traffic left it empty, or the hop answered more than the bucket holds.
pub(super) fn unlimited(record: &TraceRecord, hop: &TraceHop, last: u8) -> [u64; 2] {
    let of_hop = |from: IpAddr| hop.nodes.iter().any(|node| node.address == from.to_string());
    let answers = |probe: &TraceProbe| probe.answer.as_ref().is_some_and(|it| of_hop(it.from));
    // What a hop answers of packets to those behind it (a rejection, a packet too big) is of the same bucket.
    let also = record.probes.iter().any(|it| it.ttl > hop.ttl && answers(it));
    let draws: Vec<&TraceProbe> =
        record.probes.iter().filter(|it| it.ttl == hop.ttl || (also && it.ttl > hop.ttl)).collect();
    let us = |probe: Option<&&TraceProbe>| probe.map_or(0.0, |it| float(it.sent_us));
    let span_us = us(draws.last()) - us(draws.first());
    let answered = draws.iter().filter(|it| answers(it)).count() as u64;
    // Routers of equal-cost paths have a bucket each.
    let free = float(answered) > (BURST + span_us / TOKEN_US) * float(hop.nodes.len() as u64);
    let own: BTreeSet<*const TraceProbe> = at(record, hop.ttl, last).into_iter().map(std::ptr::from_ref).collect();
    let counted = counted(record);
    // What the kernel sent again of a SYN without an answer took tokens, too, at times that nobody knows.
    let again = record.plan.protocol == TraceProtocol::Tcp && record.unmatched > 0;
    let (mut tokens, mut before_us, mut all) = (0.0_f64, us(draws.first()), [0, 0]);
    for probe in &draws {
        tokens = (tokens + (float(probe.sent_us) - before_us) / TOKEN_US).min(BURST);
        before_us = float(probe.sent_us);
        let clear = tokens >= 1.0 && !again;
        // A probe that may have taken the last token has left none.
        tokens = if clear { tokens - 1.0 } else { 0.0 };
        if (clear || free) && own.contains(&std::ptr::from_ref(*probe)) && counted(probe) {
            all = [all[0] + u64::from(probe.answer.is_none()), all[1] + 1];
        }
    }
    all
}

/// A view of a trace that goes on.
fn running(record: &TraceRecord) -> bool {
    record.plan.continuous
}

fn node(record: &TraceRecord, from: IpAddr, all: &[(&TraceProbe, &TraceAnswer)]) -> TraceNode {
    let rtt = |(probe, answer): &(&TraceProbe, &TraceAnswer)| {
        answer.at_us.checked_sub(probe.sent_us).map(|us| float(us) / 1e3)
    };
    let rtts: Vec<f64> = all.iter().filter_map(rtt).collect();
    let least = rtts.iter().copied().fold(f64::INFINITY, f64::min);
    let worst = rtts.iter().copied().fold(0.0, f64::max);
    let newest = all.iter().rev().find_map(|(_, answer)| answer.reply_ttl);
    let flows: BTreeSet<u16> = all.iter().map(|(probe, _)| probe.flow).collect();
    let marks: BTreeSet<String> =
        all.iter().map(|(_, answer)| answer.kind.mark()).filter(|mark| !mark.is_empty()).collect();
    TraceNode {
        address: from.to_string(),
        name: record.names.get(&from).cloned(),
        flows: flows.into_iter().collect(),
        answered: u32::try_from(all.len()).unwrap_or(u32::MAX),
        rtt_ms: median(&rtts).map(|middle| [least, middle, worst]),
        reply_ttl: newest,
        return_hops: newest.filter(|_| marks.is_empty()).map(return_hops),
        mpls: all.iter().rev().map(|(_, answer)| &answer.mpls).find(|it| !it.is_empty()).cloned().unwrap_or_default(),
        marks: marks.into_iter().collect(),
    }
}

/// Hops of the reverse path: hosts begin with a TTL of 64, 128 or 255 (RFC 1700 and today's systems).
pub(super) const fn return_hops(reply_ttl: u8) -> u8 {
    let first = if reply_ttl <= 64 {
        64
    } else if reply_ttl <= 128 {
        128
    } else {
        255
    };
    (first - reply_ttl).saturating_add(1)
}

/// Marks the hops that lose answers which later hops do not lose, by more than chance: the packets themselves went through.
pub(super) fn mark_limits(hops: &mut [TraceHop]) {
    let count = hops.iter().filter(|hop| hop.answered > 0).count() as u64;
    // Lost and sent, of all hops behind that do not limit their answers.
    let mut behind = [0_u64; 2];
    for hop in hops.iter_mut().rev().filter(|hop| hop.answered > 0) {
        let here = lost_of(hop);
        hop.limits_answers = more(here, behind, count);
        if !hop.limits_answers {
            behind = [behind[0] + here[0], behind[1] + here[1]];
        }
    }
}

/// Whether more is lost here than there, by more than chance, where so many such questions are put (Boole's inequality).
pub(super) fn more(here: [u64; 2], there: [u64; 2], questions: u64) -> bool {
    narrows_stats::more_often(here, there).is_some_and(|chance| chance * float(questions) < CHANCE)
}

/// Probes of a hop that have no answer, and all of them.
pub(super) fn lost_of(hop: &TraceHop) -> [u64; 2] {
    [hop.sent.saturating_sub(hop.answered).into(), hop.sent.into()]
}
