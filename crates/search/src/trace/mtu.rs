//! The path MTU: what the first link takes is sent to the target, and what a router reports instead, until it arrives.
//!
//! Where larger packets vanish while a small one right behind each is answered, there is a black hole: its hop is found by bisection over
//! the TTL, the size that it passes by bisection over the size. A small probe right behind a large one also excludes a limit of ICMP
//! answers: an answer to the small one could have been given to the large one.

use super::seen::Seen;
use super::step::Want;
use narrows_model::{AnswerKind, ProbePurpose, TraceProtocol};

/// Pairs of a lost large probe and an answered small one that make a size fail.
const FAR_PAIRS: u8 = 3;
pub(crate) const PAIRS: u8 = 2;
/// Small probes without an answer after which nothing can be said.
const UNDECIDED: u8 = 5;
/// A router that limits its answers gives about one each second.
const PAUSE_US: u64 = 1_100_000;
/// Decided probes: four places where the MTU shrinks without a report, each found in 5 steps of hops and 18 of sizes (5 of usual ones, one
/// next to it, 12 in the widest gap between two), are not more.
const SIZES: u8 = 92;

/// MTUs of the least that IP demands, of tunnels and of links (RFC 1191 section 7.1, RFC 8200 section 5; WireGuard 1420 and 1440, VXLAN
/// 1430 and 1450, GRE 1476, IPIP 1480, PPPoE 1492, with the 20 or 28 bytes less of their combinations): tried first.
const USUAL: [u32; 22] = [
    576, 1006, 1280, 1300, 1350, 1380, 1392, 1400, 1412, 1420, 1430, 1440, 1450, 1460, 1472, 1476, 1480, 1492, 1496,
    4352, 8950, 9000,
];

/// The size to try between one that passes and one that fails: a usual one; next to one that passed, whether it is the largest; else the
/// middle.
fn between(passes: u32, fails: u32) -> u32 {
    let usual: Vec<u32> = USUAL.into_iter().filter(|size| (passes + 1..fails).contains(size)).collect();
    match usual.get(usual.len() / 2) {
        Some(size) => *size,
        None if USUAL.contains(&passes) => passes + 1,
        None => u32::midpoint(passes, fails),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Does the size come to the target?
    Far,
    /// It passes the TTL at index `.0` of the hops and fails at `.1`.
    Locate(usize, usize),
    /// At the hop of this index a size passes (`.1`) and one fails (`.2`).
    Size(usize, u32, u32),
}

/// A probe on its way: large, or the small one behind it.
#[derive(Debug, Clone, Copy)]
enum Pair {
    None,
    Large(u64),
    Small(u64),
}

enum Outcome {
    Passes,
    /// With the MTU that is reported, and whether the reporting hop is known.
    Fails(Option<(u32, bool)>),
    Undecided,
}

/// The state of the measurement.
#[derive(Debug)]
pub struct Mtu {
    size: u32,
    /// TTLs that answered, in order; a 0 in front stands for this host.
    hops: Vec<u8>,
    stage: Stage,
    pair: Pair,
    failed: u8,
    undecided: u8,
    sizes: u8,
    pause_us: u64,
    reported: Option<u32>,
}

impl Mtu {
    pub(crate) fn new(seen: &Seen) -> Self {
        let answers = seen.record.probes.iter().filter(|it| it.flow == 0 && it.answer.is_some());
        let end = seen.ends.get(&0).copied().unwrap_or(u8::MAX);
        let mut hops: Vec<u8> = answers.map(|it| it.ttl).filter(|ttl| *ttl <= end).chain([0]).collect();
        hops.sort_unstable();
        hops.dedup();
        let size = seen.record.first_link_mtu.unwrap_or(0).min(u16::MAX.into());
        let (stage, pair) = (Stage::Far, Pair::None);
        Self { size, hops, stage, pair, failed: 0, undecided: 0, sizes: 0, pause_us: 0, reported: None }
    }

    /// TTL and bytes of the current large probe.
    fn target(&self) -> (u8, u32) {
        let (hop, bytes) = match self.stage {
            Stage::Far => (self.hops.len().saturating_sub(1), self.size),
            Stage::Locate(low, high) => (usize::midpoint(low, high), self.size),
            Stage::Size(hop, low, high) => (hop, between(low, high)),
        };
        (self.hops.get(hop).copied().unwrap_or(0), bytes)
    }

    pub(crate) fn want(&mut self, seen: &mut Seen, now_us: u64) -> Want {
        let small = seen.record.plan.probe_bytes;
        let tcp = seen.record.plan.protocol == TraceProtocol::Tcp;
        if !seen.record.plan.mtu || tcp || self.size <= small || self.hops.len() < 2 {
            return Want::Next;
        }
        loop {
            if now_us < self.pause_us {
                return Want::Until(self.pause_us);
            }
            let (ttl, bytes) = self.target();
            let next_id = seen.record.forgotten + seen.record.probes.len() as u64;
            match self.pair {
                Pair::None => {
                    self.pair = Pair::Large(next_id);
                    return Want::Probe(ProbePurpose::Mtu, 0, ttl, bytes);
                }
                Pair::Large(id) | Pair::Small(id) if seen.is_pending(id) => return Want::Answers,
                Pair::Large(id) => {
                    let Some(answer) = seen.answer_to(id) else {
                        self.pair = Pair::Small(next_id);
                        return Want::Probe(ProbePurpose::Mtu, 0, ttl, small);
                    };
                    let outcome = match (answer.kind, answer.mtu) {
                        (AnswerKind::TooBig, Some(mtu)) if mtu < bytes && mtu >= small => {
                            Outcome::Fails(Some((mtu, hop_of(seen, answer.from).is_some())))
                        }
                        (AnswerKind::TooBig, _) => Outcome::Fails(None),
                        _ => Outcome::Passes,
                    };
                    if self.conclude(&outcome, small) {
                        seen.record.mtu_done = matches!(outcome, Outcome::Passes);
                        return Want::Next;
                    }
                }
                Pair::Small(id) => {
                    let answered = seen.answer_to(id).is_some();
                    self.pair = Pair::None;
                    // The first decision says whether there is a hole at all.
                    let pairs = if self.stage == Stage::Far { FAR_PAIRS.max(pairs_at(seen, ttl)) } else { PAIRS };
                    if answered {
                        self.failed += 1;
                    } else {
                        self.undecided += 1;
                        self.pause_us = now_us + PAUSE_US;
                    }
                    let outcome = match (self.failed >= pairs, self.undecided >= UNDECIDED) {
                        (true, _) => Outcome::Fails(None),
                        (false, true) => Outcome::Undecided,
                        (false, false) => continue,
                    };
                    if self.conclude(&outcome, small) {
                        return Want::Next;
                    }
                }
            }
        }
    }

    /// Goes on after a probe is decided; true: the measurement is over.
    fn conclude(&mut self, outcome: &Outcome, small: u32) -> bool {
        (self.pair, self.failed, self.undecided) = (Pair::None, 0, 0);
        self.sizes += 1;
        if self.sizes > SIZES {
            return true;
        }
        let last = self.hops.len() - 1;
        let next = match (self.stage, outcome) {
            (Stage::Far, Outcome::Passes) | (_, Outcome::Undecided) => return true,
            // A hop that is known needs no search for it.
            (Stage::Far, Outcome::Fails(Some((mtu, true)))) => {
                self.size = *mtu;
                Stage::Far
            }
            (Stage::Far, Outcome::Fails(reported)) => {
                self.reported = reported.map(|(mtu, _)| mtu);
                Stage::Locate(0, last)
            }
            (Stage::Locate(_, high), Outcome::Passes) => Stage::Locate(self.middle(), high),
            (Stage::Locate(low, _), Outcome::Fails(reported)) => {
                self.reported = self.reported.or(reported.map(|(mtu, _)| mtu));
                Stage::Locate(low, self.middle())
            }
            (Stage::Size(hop, _, high), Outcome::Passes) => Stage::Size(hop, self.target().1, high),
            (Stage::Size(hop, low, _), Outcome::Fails(_)) => Stage::Size(hop, low, self.target().1),
        };
        self.stage = match next {
            Stage::Locate(low, high) if high - low <= 1 => match self.reported.take() {
                Some(mtu) => {
                    self.size = mtu;
                    Stage::Far
                }
                None => Stage::Size(high, small, self.size),
            },
            Stage::Size(_, low, high) if high - low <= 1 => {
                self.size = low;
                Stage::Far
            }
            next => next,
        };
        self.size <= small
    }

    const fn middle(&self) -> usize {
        match self.stage {
            Stage::Locate(low, high) => usize::midpoint(low, high),
            _ => 0,
        }
    }
}

/// Pairs that chance makes less often than once in a thousand sizes, by the loss of small probes to that hop; no more than five, since a
/// router that limits its answers makes each of them take a second.
fn pairs_at(seen: &Seen, ttl: u8) -> u8 {
    const MOST: f64 = 5.0;
    let small = seen.record.plan.probe_bytes;
    let of_hop = || seen.record.probes.iter().filter(|it| it.ttl == ttl && it.bytes == small);
    let (all, answered) = (of_hop().count(), of_hop().filter(|it| it.answer.is_some()).count());
    if all < 4 || answered == all {
        return 0;
    }
    let lost = 1.0 - answered as f64 / all as f64;
    (1e-3_f64.ln() / lost.ln()).ceil().clamp(0.0, MOST) as u8
}

/// The hop that an address has in the first flow.
pub(crate) fn hop_of(seen: &Seen, address: std::net::IpAddr) -> Option<u8> {
    let answers = seen.record.probes.iter().filter(|it| it.flow == 0);
    let routers = answers.filter(|it| {
        it.answer.as_ref().is_some_and(|answer| answer.from == address && answer.kind == AnswerKind::TimeExceeded)
    });
    routers.map(|it| it.ttl).min()
}
