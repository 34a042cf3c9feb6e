//! Drawn scenarios: paths, loads and faults from stated distributions, so that no rule can be made for them.
//!
//! | What | From |
//! | --- | --- |
//! | rate | 2 Mbit/s to 600 Mbit/s (what the emulator carries beside both ends on two cores), log-uniform; the way back has 0.5 to 1 of it |
//! | round-trip time | 0.6 to 150 ms, log-uniform |
//! | queue | 0.4 to 3 bandwidth-delay products, log-uniform, at least 30 kB |
//! | jitter | in a third of the paths up to 12 % of the round-trip time |
//! | congestion control | CUBIC in half of them, else Reno or BBR |
//! | direction, family | up or down; IPv6 in a quarter |
//! | faults | none in 40 %, one in 45 %, two in 15 % (of UDP one at most) |
//! | severity | leaves 12 to 90 % of the path to the load |

use super::{Case, CaseFault};
use narrows_lab::emulator::random::Random;
use narrows_model::lab::Impairment;
use narrows_model::{Flow, Place};

/// What a drawn case is made of.
#[derive(Debug, Clone, PartialEq)]
pub struct Drawn {
    pub case: Case,
    /// What was injected, each with what takes it back.
    pub parts: Vec<DrawnPart>,
}

/// Something that was injected.
#[derive(Debug, Clone, PartialEq)]
pub struct DrawnPart {
    /// The cause that should be named, and where.
    pub cause: (String, Place),
    /// The fault of the lab …
    pub fault: Option<CaseFault>,
    /// … or the flags of the load.
    pub args: Vec<String>,
}

/// The path of a case in the direction of its data.
struct Way {
    rtt_s: f64,
    flow: Flow,
}

impl Way {
    fn bytes(&self, bps: f64) -> f64 {
        bps / 8.0 * self.rtt_s
    }
}

/// Makes a fault that leaves `bps` to the load.
type Make = fn(&Way, f64, &mut Random) -> DrawnPart;

const TCP: [Make; 11] = [
    |way, bps, _| {
        host("tcp-receive-window", way.flow.receiver(), format!("{:.0}", (1.9 * way.bytes(bps)).max(9_000.0)))
    },
    |way, bps, _| host("tcp-send-buffer", way.flow.sender(), format!("{:.0}", (1.7 * way.bytes(bps)).max(9_000.0))),
    |way, bps, _| {
        // The square-root law of Reno, below which CUBIC does not fall (RFC 9438 4.3).
        let segments = (way.bytes(bps) / 1448.0).max(2.0);
        path("random-loss", format!("{:.6}", (1.5 / (segments * segments)).clamp(2e-5, 0.04)))
    },
    |_, bps, _| path("path-policer", rate(bps)),
    |_, bps, _| path("path-shaper", rate(bps)),
    |way, bps, _| flag("pacing-cap", way.flow.sender(), "--pacing-rate", rate(bps)),
    |way, bps, _| flag("receiver-app-slow", way.flow.receiver(), "--app-read-rate", rate(bps)),
    |way, bps, _| flag("sender-app-slow", way.flow.sender(), "--app-write-rate", rate(bps)),
    |way, bps, _| host("local-shaper", way.flow.sender(), rate(bps)),
    |way, bps, _| {
        let bytes = format!("{:.0}", (1.9 * way.bytes(bps)).max(9_000.0));
        flag("tcp-receive-buffer-fixed", way.flow.receiver(), "--receive-buffer", bytes)
    },
    |_, _, random| path("reordering", format!("{:.4}", log_uniform(random, 0.002, 0.05))),
];

const UDP: [Make; 3] = [
    |_, _, random| path("random-loss", format!("{:.5}", log_uniform(random, 0.003, 0.05))),
    |_, bps, _| path("path-policer", rate(bps)),
    |way, _, random| host("filter-drop", way.flow.receiver(), format!("{:.0}", log_uniform(random, 20.0, 200.0))),
];

fn host(id: &str, at: Place, value: String) -> DrawnPart {
    let fault = CaseFault { id: id.to_owned(), at, value: Some(value) };
    DrawnPart { cause: (id.to_owned(), at), fault: Some(fault), args: Vec::new() }
}

fn path(id: &str, value: String) -> DrawnPart {
    host(id, Place::Path, value)
}

fn flag(id: &str, at: Place, flag: &str, value: String) -> DrawnPart {
    DrawnPart { cause: (id.to_owned(), at), fault: None, args: vec![flag.to_owned(), value] }
}

fn rate(bps: f64) -> String {
    format!("{bps:.0}")
}

fn uniform(random: &mut Random, low: f64, high: f64) -> f64 {
    low + (high - low) * random.unit()
}

fn log_uniform(random: &mut Random, low: f64, high: f64) -> f64 {
    low * (high / low).powf(random.unit())
}

fn one_of<'a, T>(random: &mut Random, of: &'a [T]) -> &'a T {
    &of[usize::try_from(random.up_to(of.len() as u64 - 1)).unwrap_or(0)]
}

/// The case of a seed with this number; the same for ever, whatever comes before it.
pub fn draw(seed: u64, number: u64, udp: bool) -> Drawn {
    let mut random = Random::new(seed.wrapping_mul(0x9e37_79b9).wrapping_add(number));
    let random = &mut random;
    let flow = if random.chance(0.5) { Flow::Up } else { Flow::Down };
    let (rate_bps, rtt_s) = (log_uniform(random, 2e6, 600e6), log_uniform(random, 0.6e-3, 0.15));
    let queue_bytes = (rate_bps / 8.0 * rtt_s * log_uniform(random, 0.4, 3.0)).max(30_000.0) as u64;
    let jitter_us = if random.chance(0.33) { uniform(random, 0.01, 0.12) * rtt_s * 1e6 } else { 0.0 };
    let delay_us = (rtt_s * 5e5) as u64;
    let data = Impairment {
        rate_bps: rate_bps as u64,
        delay_us,
        queue_bytes,
        jitter_us: jitter_us as u64,
        ..Impairment::default()
    };
    let back_bps = rate_bps * uniform(random, 0.5, 1.0);
    let back = Impairment { rate_bps: back_bps as u64, delay_us, queue_bytes, ..Impairment::default() };
    let way = Way { rtt_s, flow };
    let mut args: Vec<String> = Vec::new();
    let kinds: &[Make] = if udp { &UDP } else { &TCP };
    let chance = random.unit();
    let faults = if chance < 0.4 { 0 } else { 1 + usize::from(!udp && chance > 0.85) };
    let offered_bps = if udp { uniform(random, 0.3, 0.85) * rate_bps } else { rate_bps };
    let mut parts: Vec<DrawnPart> = Vec::new();
    while parts.len() < faults {
        let left = uniform(random, 0.12, 0.9) * offered_bps;
        let part = one_of(random, kinds)(&way, left, random);
        // Two of one kind, or two rates of the path, are one.
        if parts.iter().all(|other| other.cause != part.cause && !(sets_rate(other) && sets_rate(&part))) {
            parts.push(part);
        }
    }
    if udp {
        // Without a fault now and then more than the path carries.
        let over = faults == 0 && random.chance(0.5);
        let offered_bps = if over { uniform(random, 1.2, 2.5) * rate_bps } else { offered_bps };
        args.extend(["--udp".to_owned(), rate(offered_bps)]);
    } else {
        args.extend(["-C".to_owned(), (*one_of(random, &["cubic", "cubic", "reno", "bbr"])).to_owned()]);
    }
    args.extend(parts.iter().flat_map(|part| part.args.clone()));
    let case = Case {
        scenario: format!("draw-{seed}-{number}"),
        about: "a drawn path".to_owned(),
        truth: None,
        also: Vec::new(),
        flow,
        ways: if flow == Flow::Up { [data, back] } else { [back, data] },
        faults: parts.iter().filter_map(|part| part.fault.clone()).collect(),
        args,
        ipv6: random.chance(0.25),
        busy_cores: 0,
        neighbours: 0,
    };
    Drawn { case, parts }
}

fn sets_rate(part: &DrawnPart) -> bool {
    matches!(part.cause.0.as_str(), "path-policer" | "path-shaper")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_a_seed_is_the_same_for_ever_and_its_parts_are_what_the_lab_knows() {
        assert_eq!(draw(7, 3, false), draw(7, 3, false));
        assert_ne!(draw(7, 3, false), draw(8, 3, false));
        let mut kinds = std::collections::BTreeSet::new();
        for number in 0..400 {
            for udp in [false, true] {
                let drawn = draw(1, number, udp);
                let spec = narrows_lab::LabSpec {
                    up: drawn.case.ways[0].clone(),
                    down: drawn.case.ways[1].clone(),
                    ..narrows_lab::LabSpec::default()
                };
                spec.check().expect("a sound path");
                for part in &drawn.parts {
                    let (id, at) = &part.cause;
                    assert!(narrows_diagnose::causes::names().any(|(known, _)| known == id), "{id}");
                    if let Some(fault) = &part.fault {
                        let known = narrows_lab::faults::find(&fault.id).expect("a fault of the lab");
                        known.value((*at).into(), fault.value.as_deref()).expect("a value that it takes");
                    }
                    kinds.insert((udp, id.clone()));
                }
            }
        }
        assert_eq!(kinds.len(), TCP.len() + UDP.len());
    }

    #[test]
    fn shares_are_as_the_table_says() {
        let parts = |n: usize| (0..1000).filter(|number| draw(2, *number, false).parts.len() == n).count();
        assert!((350..450).contains(&parts(0)) && (400..500).contains(&parts(1)) && (110..190).contains(&parts(2)));
    }
}
