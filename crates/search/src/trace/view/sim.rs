//! A simulated path and clock, on which the planner runs to its end.

use crate::trace::{Order, Planner, Step};
use narrows_model::trace::TracePlan;
use narrows_model::{AnswerKind, TraceAnswer, TraceProtocol, TraceRecord};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// The IP packet that the first link takes.
pub(super) const FIRST_LINK: u32 = 1500;
const HOP_US: u64 = 2_000;

/// A path: routers 1 to `routers`, then the target.
#[derive(Debug, Clone, Default)]
pub(super) struct Net {
    pub(super) routers: u8,
    /// The MTU of the link in front of a hop, where it is not that of the first link.
    pub(super) mtu: BTreeMap<u8, u32>,
    /// Routers that do not report packets that are too big for the link behind them.
    pub(super) holes: BTreeSet<u8>,
    /// Hops that never answer.
    pub(super) silent: BTreeSet<u8>,
    /// A router that rejects what it would forward.
    pub(super) filter: Option<(u8, AnswerKind)>,
    /// Nodes of a hop.
    pub(super) wide: BTreeMap<u8, u16>,
    /// Hops whose ICMP errors are a burst of six, then one a second.
    pub(super) limited: BTreeSet<u8>,
    /// Answers of the burst that were given before.
    pub(super) spent: u64,
    /// Part of the packets that is lost at random in front of `lost_from`, in each direction, and the seed.
    pub(super) lost_part: f64,
    pub(super) seed: u64,
    /// One of so many probes to each hop is lost, by its number; 0: none.
    pub(super) lost_each: u64,
    /// The first hop behind the loss.
    pub(super) lost_from: u8,
    /// Routers that quote too little to tell the probe.
    pub(super) short_quotes: bool,
    /// More hops on the reverse path.
    pub(super) longer_back: u8,
}

pub(super) fn target() -> IpAddr {
    IpAddr::from([10, 0, 255, 1])
}

impl Net {
    pub(super) fn new(routers: u8) -> Self {
        Self { routers, ..Self::default() }
    }

    pub(super) fn address(&self, hop: u8, flow: u16) -> IpAddr {
        let nodes = self.wide.get(&hop).copied().unwrap_or(1);
        // A hash, so that consecutive flows are not spread evenly.
        let node = (u32::from(flow).wrapping_mul(2_654_435_761) >> 16) % u32::from(nodes);
        if hop > self.routers { target() } else { IpAddr::from([10, 0, hop, u8::try_from(node).unwrap() + 1]) }
    }

    /// The largest packet that comes to a hop.
    pub(super) fn pmtu(&self, hop: u8) -> u32 {
        let least = (1..=hop).filter_map(|at| self.mtu.get(&at)).min();
        least.copied().unwrap_or(FIRST_LINK)
    }

    /// Whether chance takes this packet.
    fn chance(&self, packet: u64) -> bool {
        // SplitMix64 (Steele, Lea, Flood, 2014).
        let mut it = self.seed.wrapping_mul(1_000_003).wrapping_add(packet).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        it = (it ^ (it >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        it = (it ^ (it >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        f64::from(u32::try_from((it ^ (it >> 31)) >> 32).unwrap()) < self.lost_part * f64::from(u32::MAX)
    }

    /// Who answers a probe, and what.
    fn fate(&self, order: &Order) -> Option<(u8, AnswerKind, Option<u32>)> {
        for hop in 1..=self.routers + 1 {
            if self.mtu.get(&hop).is_some_and(|mtu| order.bytes > *mtu) {
                let mtu = self.mtu.get(&hop).copied();
                return (hop > 1 && !self.holes.contains(&(hop - 1))).then_some((hop - 1, AnswerKind::TooBig, mtu));
            }
            if hop > self.routers {
                return Some((hop, AnswerKind::Reached, None));
            }
            if order.ttl == hop {
                return Some((hop, AnswerKind::TimeExceeded, None));
            }
            if let Some((_, kind)) = self.filter.filter(|(at, _)| *at == hop) {
                return Some((hop, kind, None));
            }
        }
        None
    }
}

pub(super) fn plan() -> TracePlan {
    TracePlan {
        asked: "server".into(),
        target: target(),
        protocol: TraceProtocol::Udp,
        port: 33_434,
        first_ttl: 1,
        max_ttl: 30,
        gap: 5,
        rounds: 6,
        continuous: false,
        flows: 64,
        interval_ms: 1_100,
        wait_ms: 1_000,
        probe_bytes: 64,
        ports: Vec::new(),
        mtu: true,
        names: false,
    }
}

/// Runs the planner to its end; the record and the time that it took, microseconds.
pub(super) fn run(net: &Net, plan: TracePlan) -> (TraceRecord, u64) {
    run_until(net, plan, u64::MAX)
}

/// The same, interrupted after so many microseconds.
pub(super) fn run_until(net: &Net, plan: TracePlan, end_us: u64) -> (TraceRecord, u64) {
    const START: u64 = 1_800_000_000_000_000;
    let udp = plan.protocol == TraceProtocol::Udp;
    let mut planner = Planner::new(plan, START, false);
    planner.set_first_link_mtu(FIRST_LINK);
    let mut now = START;
    let mut on_way: BTreeMap<(u64, u64), (u16, TraceAnswer)> = BTreeMap::new();
    let mut tokens: BTreeMap<u8, (u64, u64)> = BTreeMap::new();
    for _ in 0..20_000 {
        if now - START >= end_us {
            planner.interrupt();
            return (planner.finish(), end_us);
        }
        while let Some((&(at, id), _)) = on_way.first_key_value().filter(|((at, _), _)| *at <= now) {
            let Some((flow, answer)) = on_way.remove(&(at, id)) else { continue };
            if net.short_quotes && answer.kind != AnswerKind::Reached {
                planner.answer_of_flow(flow, answer);
            } else {
                planner.answer(id, answer);
            }
        }
        match planner.next(now) {
            Step::Done => return (planner.finish(), now - START),
            Step::Wait(until) => {
                let next = on_way.first_key_value().map_or(until, |((at, _), _)| until.min(*at));
                assert!(next > now || !on_way.is_empty() || until > now, "waits for the past");
                now = next.max(now + 1);
            }
            Step::Send(order) => {
                assert!(order.ttl >= 1 && order.bytes <= FIRST_LINK, "{order:?}");
                let Some((hop, kind, mtu)) = net.fate(&order) else { continue };
                let lost = net.lost_each > 0 && hop >= net.lost_from && (order.id * 7 + 3) % net.lost_each == 0;
                let behind = hop >= net.lost_from;
                if lost || net.silent.contains(&hop) || (behind && net.chance(2 * order.id)) {
                    continue;
                }
                let error = kind != AnswerKind::Reached || udp;
                if error && net.limited.contains(&hop) {
                    let (left, last) = tokens.entry(hop).or_insert((6 - net.spent, now));
                    let gained = (now - *last) / 1_000_000;
                    (*left, *last) = ((*left + gained).min(6), *last + gained * 1_000_000);
                    if *left == 0 {
                        continue;
                    }
                    *left -= 1;
                }
                if behind && net.chance(2 * order.id + 1) {
                    continue;
                }
                let at_us = now + HOP_US * u64::from(hop);
                let back = hop - 1 + net.longer_back;
                let from = net.address(hop, order.flow);
                let answer = TraceAnswer {
                    at_us,
                    from,
                    kind,
                    reply_ttl: Some(64 - back),
                    mtu,
                    mpls: Vec::new(),
                    refused: false,
                };
                on_way.insert((at_us, order.id), (order.flow, answer));
            }
        }
    }
    panic!("it does not end: {net:?}");
}
