//! # mtu-mismatch
//!
//! The two ends, or an end and the path, have different MTUs, and the smaller one costs goodput.
//!
//! **Shows**: the wire is full, but of headers: the segment size follows the smaller MTU, while the larger one would
//! carry clearly more. Or full-size packets get lost where no one answers that they are too big.
//!
//! **Mistaken for**: the path's capacity: the bits on the wire are at capacity, the payload is not. A host whose larger MTU
//! the path never carries (jumbo frames in its own network only) is no mismatch: what it learned of the path says so.
//!
//! **Fix**: one MTU on both hosts and all that lies between.
//!
//! Source: RFC 8899, RFC 1191; `IP_MTU`, ip(7).

use super::{Cause, Testimony, cannot_tell, ceiling, counter, denies, link_bps, parameter};
use crate::evidence::{Evidence, Seat};
use narrows_model::fact::Unit;
use narrows_model::{Ceiling, Command, Fix, Key, Method, Setting, units};

/// See the file's head.
pub const CAUSE: Cause = Cause {
    id: "mtu-mismatch",
    about: "the MTUs of the two ends or of the path differ, and the smaller one costs goodput",
    seats: &[Seat::Sender, Seat::Receiver, Seat::Path],
    needs: &[
        Key::new("nic.mtu", Unit::Bytes),
        Key::new("path.mtu", Unit::Bytes),
        Key::new("nic.name", Unit::Text),
        Key::new("nic.kind", Unit::Text),
        Key::new("nic.speed", Unit::BitsPerSecond),
    ],
    ceiling: roof,
    witness: testify,
    look_alikes: &["path-capacity", "link-speed", "random-loss"],
    fix,
    healthy: false,
    rank: 9,
};

/// A mismatch that costs less of the goodput than this is a hazard, not a cause.
const COST: f64 = 0.04;

/// The smallest MTU in force, the largest of a host's, and the seat of the smallest.
fn mtus(evidence: &Evidence<'_>) -> Option<(f64, f64, Seat)> {
    let (sender, receiver) = (evidence.number(Seat::Sender, "nic.mtu")?, evidence.number(Seat::Receiver, "nic.mtu")?);
    let largest = sender.max(receiver);
    let segment = evidence.base.mss_bytes.map(|mss| mss + f64::from(evidence.segment_header_bytes()));
    let path = evidence.number(Seat::Sender, "path.mtu").into_iter().chain(segment).reduce(f64::min);
    let smallest_host = sender.min(receiver);
    match path {
        // The segment size may lie a few bytes below the MTU for options; a real difference is larger.
        Some(path) if path < smallest_host - 40.0 && evidence.load.mss_bytes.is_none() => {
            Some((path, smallest_host, Seat::Path))
        }
        _ if sender < receiver => Some((sender, largest, Seat::Sender)),
        _ => Some((receiver, largest, Seat::Receiver)),
    }
}

/// Whether the way to the smaller one carries no more than that one does, as far as the host with the larger MTU has learned:
/// then the larger one is for its own network, and nothing here would use it.
fn path_is_no_larger(evidence: &Evidence<'_>, mtu: f64, at: Seat) -> bool {
    let larger = match at {
        Seat::Sender => Seat::Receiver,
        Seat::Receiver => Seat::Sender,
        Seat::Path => return false,
    };
    evidence.number(larger, "path.mtu").is_some_and(|path| path <= mtu + 40.0)
}

fn efficiencies(evidence: &Evidence<'_>) -> Option<(f64, f64, Seat)> {
    let (small, large, seat) = mtus(evidence)?;
    let headers = f64::from(evidence.segment_header_bytes());
    Some((evidence.wire_efficiency(small - headers), evidence.wire_efficiency(large - headers), seat))
}

fn roof(evidence: &Evidence<'_>, seat: Seat) -> Option<Ceiling> {
    let (small, large, at) = efficiencies(evidence)?;
    if at != seat || small > (1.0 - COST) * large {
        return None;
    }
    let (mtu, ..) = mtus(evidence).filter(|(mtu, _, at)| !path_is_no_larger(evidence, *mtu, *at))?;
    let link = link_bps(evidence)?;
    let how = format!("link of {} x {small:.3} payload at an MTU of {mtu:.0}", units::bps(link));
    ceiling(CAUSE.id, evidence, seat, link * small, [0.93, 1.02], Method::Computed, how)
}

fn testify(evidence: &Evidence<'_>, seat: Seat) -> Testimony {
    let (Some((mtu, large_mtu, at)), Some((small, large, _))) = (mtus(evidence), efficiencies(evidence)) else {
        return cannot_tell("the MTUs of both ends are not known");
    };
    if mtu >= large_mtu - 40.0 {
        return denies(format!("both ends and the path agree on an MTU of {mtu:.0}"));
    }
    if at != seat {
        return denies(format!("the smaller MTU is at {}", super::who(evidence, at)));
    }
    if path_is_no_larger(evidence, mtu, at) {
        return denies(format!(
            "the path carries {mtu:.0} bytes as well, so the MTU of {large_mtu:.0} is not used on it"
        ));
    }
    if small > (1.0 - COST) * large {
        return denies(format!(
            "MTUs differ ({mtu:.0} and {large_mtu:.0}), which costs less than {} of the goodput",
            units::percent(COST)
        ));
    }
    let mut witnesses = vec![parameter(format!(
        "the MTU is {mtu:.0} at {} and {large_mtu:.0} elsewhere: {} of the wire carries payload instead of {}",
        super::who(evidence, seat),
        units::percent(small),
        units::percent(large)
    ))];
    if let Some(queue) = evidence.queue_us().filter(|_| evidence.queue_stood() == Some(true)) {
        witnesses.push(counter(format!("the wire is full: a queue of {} stands", units::micros(queue as u64))));
    }
    Testimony::Says { share: 0.96, witnesses }
}

fn fix(evidence: &Evidence<'_>, seat: Seat) -> Fix {
    let large = mtus(evidence).map_or(1500.0, |(_, large, _)| large);
    let advice = format!("give both hosts and everything between them an MTU of {large:.0}");
    let (Some(device), true) = (evidence.text(seat, "nic.name"), seat != Seat::Path) else {
        return super::advice(advice);
    };
    let setting = Setting::Mtu { device: device.to_owned(), mtu: large as u32 };
    let at = evidence.place(seat);
    Fix { advice, commands: vec![Command { at, run: setting.to_string() }], settings: vec![(at, setting)], load: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, fact, ordinary_host, with};
    use crate::{diagnose_act, verdict::ActDiagnosis};
    use narrows_model::{Fact, Status};

    /// A host with an MTU, and what it learned of the path to the other one.
    fn host(mtu: i64, path: i64) -> Vec<Fact> {
        with(with(ordinary_host(), fact("nic.mtu", mtu, Unit::Bytes)), fact("path.mtu", path, Unit::Bytes))
    }

    fn diagnosed(sender: Vec<Fact>, receiver: Vec<Fact>) -> ActDiagnosis {
        let scene = Scene { sender_facts: sender, receiver_facts: receiver, ..Scene::default() };
        diagnose_act(&scene.run(&[]), 0).expect("a baseline")
    }

    #[test]
    fn the_smaller_of_two_hosts_on_one_network_costs_goodput() {
        let verdict = diagnosed(host(1500, 1500), host(9000, 9000)).verdict;
        assert_eq!(verdict.status, Status::Limited, "{verdict:#?}");
        assert_eq!((verdict.causes[0].id.as_str(), verdict.causes[0].at), (CAUSE.id, narrows_model::Place::Client));
    }

    #[test]
    fn jumbo_frames_that_the_path_never_carries_are_no_mismatch() {
        for (sender, receiver) in [(host(1500, 1500), host(9000, 1500)), (host(9000, 1500), host(1500, 1500))] {
            let verdict = diagnosed(sender, receiver).verdict;
            assert_eq!(verdict.status, Status::Healthy, "{verdict:#?}");
        }
    }
}
