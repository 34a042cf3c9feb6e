//! # path-capacity
//!
//! The path carries all that it can: a healthy path.
//!
//! **Shows**: the goodput lies at the slower link less headers, or a queue stands on the path (the RTT under load
//! exceeds the idle RTT) at a steady rate.
//!
//! **Mistaken for**: everything else. No window, buffer, core or shaper may explain the goodput better.
//!
//! **Fix**: none; more capacity.
//!
//! Source: RFC 6349 section 3.

use super::{Cause, Testimony, advice, cannot_tell, ceiling, counter, denies, fills_link, link_bps, link_goodput_bps};
use crate::evidence::{Evidence, Seat};
use narrows_model::fact::Unit;
use narrows_model::{Ceiling, Fix, Key, Method, units};

/// See the file's head.
pub const CAUSE: Cause = Cause {
    id: "path-capacity",
    about: "the path is at capacity: this is what it carries",
    seats: &[Seat::Path],
    needs: &[Key::new("nic.kind", Unit::Text), Key::new("nic.speed", Unit::BitsPerSecond)],
    ceiling: roof,
    witness: testify,
    look_alikes: &["path-shaper", "path-policer", "link-speed", "tcp-send-buffer", "tcp-receive-window"],
    fix,
    healthy: true,
    rank: 2,
};

fn roof(evidence: &Evidence<'_>, seat: Seat) -> Option<Ceiling> {
    let goodput = evidence.goodput_bps();
    // A queue on the path is the direct sign; without one the slower link is the most that the path can be.
    if evidence.queue_stood() == Some(true) && !cpu_bound(evidence) {
        let measured = goodput
            .max(evidence.experiments.get("more-streams").map_or(0.0, |more| more.goodput_bps.min(1.1 * goodput)));
        let how = format!("goodput while a queue of {} stood on the path", units::micros(evidence.queue_us()? as u64));
        return ceiling(CAUSE.id, evidence, seat, measured, [0.97, 1.03], Method::Measured, how);
    }
    let link = link_goodput_bps(evidence)?;
    let how = format!("slower link {} less headers", units::bps(link_bps(evidence)?));
    ceiling(CAUSE.id, evidence, seat, link, [0.95, 1.01], Method::Computed, how)
}

/// A full machine makes packets wait without any queue on the path.
fn cpu_bound(evidence: &Evidence<'_>) -> bool {
    [Seat::Sender, Seat::Receiver].into_iter().filter_map(|seat| evidence.end(seat)).any(|end| {
        end.machine_busy().is_some_and(|busy| busy > 0.93) || end.thread_share.is_some_and(|share| share > 0.88)
    })
}

/// A window or buffer that holds the sender back at the very rate that it allows: its bursts make a small queue of their own.
fn held_back(evidence: &Evidence<'_>) -> Option<(&'static str, f64)> {
    let (window, buffer) = (evidence.held_by_window()?, evidence.held_by_buffer()?);
    [
        (&super::tcp_receive_window::CAUSE, Seat::Receiver, window),
        (&super::tcp_receive_buffer_fixed::CAUSE, Seat::Receiver, window),
        (&super::tcp_send_buffer::CAUSE, Seat::Sender, buffer),
        (&super::tcp_send_buffer_fixed::CAUSE, Seat::Sender, buffer),
    ]
    .into_iter()
    .filter(|(_, _, held)| *held >= 0.2)
    .find(|(cause, seat, _)| {
        (cause.ceiling)(evidence, *seat).is_some_and(|roof| crate::roofline::sits_at(&roof, evidence.goodput_bps()))
    })
    .map(|(cause, _, held)| (cause.id, held))
}

/// Why a queue need not stand on the path: nothing is known of a host's device, or its slot may be what the queue stands in
/// front of, and the trial that would tell was not made. Without this, evidence that is missing would make a path healthy.
fn may_stand_in_a_host(evidence: &Evidence<'_>) -> Option<Testimony> {
    [Seat::Sender, Seat::Receiver].into_iter().find_map(|seat| {
        if evidence.text(seat, "nic.kind").is_none() {
            let who = super::who(evidence, seat);
            return Some(cannot_tell(format!("a queue stood, but the device of {who}, where it may be, is not known")));
        }
        let slot = &super::pcie_width::CAUSE;
        let at_work =
            (slot.ceiling)(evidence, seat).is_some_and(|roof| crate::roofline::sits_at(&roof, evidence.goodput_bps()));
        match (slot.witness)(evidence, seat) {
            open @ Testimony::CannotTell { ask: Some(_), .. } if at_work => Some(open),
            _ => None,
        }
    })
}

fn testify(evidence: &Evidence<'_>, _: Seat) -> Testimony {
    let goodput = evidence.goodput_bps();
    let at_link = fills_link(evidence);
    let queue = evidence.queue_stood();
    let mut witnesses = Vec::new();
    if at_link {
        witnesses.push(counter(format!(
            "the goodput is {} of what the slower link carries",
            units::percent(goodput / link_goodput_bps(evidence).unwrap_or(goodput))
        )));
    }
    if cpu_bound(evidence) && !at_link {
        return denies("a core is full, so packets wait in the host and not on the path");
    }
    if !at_link && let Some((id, held)) = held_back(evidence) {
        return denies(format!("{id} held the sender back {} of the time, at its ceiling", units::percent(held)));
    }
    if queue == Some(true)
        && !at_link
        && let Some(open) = may_stand_in_a_host(evidence)
    {
        return open;
    }
    match queue {
        Some(true) => witnesses.push(counter(format!(
            "a queue of {} stood on the path (RTT {} idle, {} loaded)",
            units::micros(evidence.queue_us().unwrap_or(0.0) as u64),
            units::micros(evidence.min_rtt_us.unwrap_or(0.0) as u64),
            units::micros(evidence.base.rtt_us.unwrap_or(0.0) as u64)
        ))),
        Some(false) if !at_link => return denies("no queue stood on the path and the goodput lies below the links"),
        None if !at_link => return cannot_tell("the RTT could not be read, so a queue on the path cannot be seen"),
        _ => {}
    }
    if let Some(trend) = evidence.base.trend()
        && trend > 1.2
    {
        return cannot_tell(format!(
            "the goodput was still growing when the trial ended ({trend:.2} times over its last third)"
        ));
    }
    Testimony::Says { share: if at_link { 0.97 } else { 0.85 }, witnesses }
}

fn fix(_: &Evidence<'_>, _: Seat) -> Fix {
    advice("nothing to mend: more than this needs more capacity on the path")
}

#[cfg(test)]
mod tests {
    use crate::testing::{Scene, fact, ordinary_host, with, without};
    use crate::{Experiment, diagnose_act};
    use narrows_model::Status;
    use narrows_model::fact::{Fact, Unit};

    /// 3.8 Gbit/s between links of 10, with a queue of a millisecond.
    fn queued(sender_facts: Vec<Fact>) -> Scene {
        Scene {
            goodput_bps: 3.83e9,
            min_rtt_us: 150,
            rtt_us: 1_200,
            early_peak_bps: 3.83e9,
            sender_facts,
            receiver_facts: ten_gigabit(),
            ..Scene::default()
        }
    }

    fn ten_gigabit() -> Vec<Fact> {
        with(ordinary_host(), fact("nic.speed", 10_000_000_000_i64, Unit::BitsPerSecond))
    }

    fn short_slot() -> Vec<Fact> {
        let facts = with(ten_gigabit(), fact("pcie.bandwidth", 8_000_000_000_i64, Unit::BitsPerSecond));
        with(facts, fact("pcie.bandwidth.max", 16_000_000_000_i64, Unit::BitsPerSecond))
    }

    #[test]
    fn a_queue_below_the_links_is_capacity_where_the_hosts_are_known() {
        let verdict = diagnose_act(&queued(ten_gigabit()).run(&[]), 0).expect("a baseline").verdict;
        assert_eq!((verdict.status, verdict.causes[0].id.as_str()), (Status::Healthy, "path-capacity"), "{verdict:#?}");
    }

    #[test]
    fn it_is_open_while_a_short_slot_may_be_what_it_stands_in_front_of() {
        let scene = queued(short_slot());
        let open = diagnose_act(&scene.run(&[]), 0).expect("a baseline");
        assert_eq!(open.verdict.status, Status::Unknown, "{:#?}", open.verdict);
        assert!(open.wanted.contains(&Experiment::OtherDirection), "{:?}", open.wanted);
        let other = Scene { goodput_bps: 9.4e9, ..scene.clone() };
        let verdict = diagnose_act(&scene.run(&[("other-direction", &other)]), 0).expect("a baseline").verdict;
        assert_eq!((verdict.status, verdict.causes[0].id.as_str()), (Status::Healthy, "path-capacity"), "{verdict:#?}");
    }

    #[test]
    fn it_is_open_where_nothing_is_known_of_a_device() {
        let scene = queued(without(ten_gigabit(), "nic.kind"));
        let verdict = diagnose_act(&scene.run(&[]), 0).expect("a baseline").verdict;
        assert_eq!(verdict.status, Status::Unknown, "{verdict:#?}");
        assert!(verdict.missing.iter().any(|why| why.contains("is not known")), "{:?}", verdict.missing);
    }
}
