//! # local-shaper
//!
//! A queueing discipline on the sender's own interface limits the rate: `tbf`, `htb`, `cake`, `fq maxrate`.
//!
//! **Shows**: the discipline has a configured rate, the goodput matches it, and its `overlimits` grow.
//!
//! **Mistaken for**: a shaper on the path; the send buffer, because the local queue holds the data.
//!
//! **Fix**: remove it or raise its rate.
//!
//! Source: tc(8), `TCA_STATS2`.

use crate::causes::shared::layers::qdisc_device;
use crate::causes::shared::rule::*;

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "local-shaper",
    about: "a queueing discipline on the sender's own interface limits the rate",
    roles: &[Role::Sender],
    needs: &[
        keys::QDISC_RATE,
        keys::QDISC_RATE_KIND,
        keys::QDISC_OVERLIMITS,
        keys::NIC_NAME,
        keys::QDISC_DEVICE,
        keys::NIC_KIND,
        keys::NIC_SPEED,
        keys::QDISC_ROOT_KIND,
    ],
    ceiling,
    assess,
    look_alikes: &["path-shaper", "tcp-send-buffer", "qdisc-drop", "path-capacity"],
    fix,
    rank: 8,
    explains_link: true,
    device: true,
    ..Cause::COMMON
};

fn ceiling(evidence: &TcpEvidence, role: Role) -> Option<Ceiling> {
    let of_flow = evidence.text(role, keys::QDISC_RATE_KIND) == Some("fq");
    let flows = if of_flow { evidence.base.streams as f64 } else { 1.0 };
    let rate = flows * evidence.number(role, keys::QDISC_RATE)?;
    let mss = evidence.base.mss_bytes?;
    // The discipline counts IP packets with 14 bytes of Ethernet header, or without on a device that has none.
    let efficiency = mss / (mss + f64::from(evidence.segment_header_bytes()) + 14.0);
    let how = format!("configured rate {} x {efficiency:.3} payload", units::bps(rate));
    ceiling_at(CAUSE.id, evidence, role, rate * efficiency, [0.93, 1.03], Method::Computed, how)
}

fn assess(evidence: &TcpEvidence, role: Role) -> Assessment {
    let Some(rate) = evidence.number(role, keys::QDISC_RATE) else {
        return match evidence.text(role, keys::QDISC_ROOT_KIND) {
            Some(kind) => contradicts(format!("the sender's queueing discipline ({kind}) has no rate")),
            None => cannot_tell("the sender's queueing disciplines could not be read"),
        };
    };
    if ceiling(evidence, role).is_none() {
        return cannot_tell(
            "the segment size could not be read, so goodput and shaper rate cannot be compared",
        );
    }
    if evidence.at_link() {
        return contradicts("the slower link is at capacity even without the shaper");
    }
    match evidence.grew(role, keys::QDISC_OVERLIMITS) {
        None => cannot_tell("the counters of the sender's queueing discipline could not be read"),
        Some(0) => contradicts(format!("the shaper of {} never delayed a packet", units::bps(rate))),
        Some(times) => Assessment::Supports {
            share: 0.9,
            witnesses: vec![
                counter(format!("the sender's queueing discipline delayed packets {times} times (overlimits)")),
                parameter(format!("its configured rate is {}", units::bps(rate))),
            ],
        },
    }
}

fn fix(evidence: &TcpEvidence, role: Role) -> Fix {
    let device = qdisc_device(evidence, role).to_owned();
    let kind = evidence.text(role, keys::QDISC_ROOT_KIND).unwrap_or("shaper");
    let advice = format!("remove the {kind} shaper from {device}, or raise its rate if it is intended");
    setting_fix(evidence, role, advice, Setting::RootQdisc { device, kind: "default".to_owned() })
}

#[cfg(test)]
mod tests {
    use crate::testing::{*, no_more};
    use crate::testing::profile::{Excess, ProfiledPath};
    use narrows_model::load::tcp::TcpPlan;
    use super::*;

    /// tbf at 200 Mbit/s: 191 Mbit/s of payload, and a queue in the sender's own host.
    fn truth() -> Scene {
        let facts = with(ordinary_host(), fact("qdisc.rate", 200_000_000_i64, Unit::BitsPerSecond));
        Scene {
            goodput_bps: 191e6,
            early_peak_bps: 900e6,
            rtt_us: 60_000,
            sender_facts: with(facts, fact("qdisc.root.kind", "tbf", Unit::Text)),
            sender_counts: vec![("qdisc.overlimits", 9_000), ("qdisc.drops", 0)],
            ..Scene::default()
        }
    }

    #[test]
    fn a_token_bucket_on_the_own_device_is_named() {
        let finding = named(&truth(), &[], "local-shaper", Place::Client);
        assert_rejects(&finding, "path-shaper", "the sender's own shaper explains the rate");
        assert_rejects(&finding, "qdisc-drop", "dropped nothing");
        assert_rejects(&finding, "tcp-send-buffer", "only 0 %");
        assert_eq!(finding.fix.commands[0].run, "tc qdisc del dev eth0 root");
    }

    #[test]
    fn the_rate_of_fq_is_of_each_connection() {
        let facts = with(truth().sender_facts, fact("qdisc.rate.kind", "fq", Unit::Text));
        let load = TcpPlan { streams: 2, ..truth().load };
        let two = Scene { sender_facts: facts, load, goodput_bps: 382e6, ..truth() };
        named(&two, &[], "local-shaper", Place::Client);
        let one = ceiling(&TcpEvidence::of(&truth().run(&[]), 0).expect("a baseline"), Role::Sender).expect("a ceiling");
        let both = ceiling(&TcpEvidence::of(&two.run(&[]), 0).expect("a baseline"), Role::Sender).expect("a ceiling");
        assert!((both.bps / one.bps - 2.0).abs() < 1e-6, "{} and {}", one.bps, both.bps);
    }

    #[test]
    fn a_shaper_that_never_held_a_packet_back_is_none() {
        let scene = Scene { sender_counts: vec![("qdisc.overlimits", 0)], ..truth() };
        assert_contradicts(&assessment(&CAUSE, Role::Sender, &scene, &[]), "never delayed a packet");
        let scene = Scene { sender_facts: without(truth().sender_facts, "qdisc.rate"), ..truth() };
        assert_contradicts(&assessment(&CAUSE, Role::Sender, &scene, &[]), "has no rate");
    }

    #[test]
    fn a_profile_that_went_through_the_shaper_makes_it_no_path_at_capacity() {
        let path = ProfiledPath { rate_bps: 200e6, burst_bps: 900e6, excess: Excess::WaitsAfter(80), ..ProfiledPath::default() };
        let foretold = |path| {
            let finding = named(&Scene { profile: Some(path), ..truth() }, &[], "local-shaper", Place::Client);
            finding.prediction
        };
        // The bucket lets trains pass, which the path slowed to its own rate: 900 Mbit/s, 1448 of 1500 bytes of it payload.
        let slowed = foretold(path).expect("a prediction");
        assert!((865e6..872e6).contains(&slowed.bps) && slowed.interval_bps.is_some(), "{slowed:?}");
        // They passed as fast as they were sent, or far too fast for the path to be seen: nothing above the shaper is known.
        for unknown in [ProfiledPath { sends_bps: 880e6, ..path }, ProfiledPath { burst_bps: 4e9, ..path }] {
            assert!(foretold(unknown).is_none(), "at least what was measured is no prediction");
        }
    }

    #[test]
    fn a_rate_that_the_goodput_does_not_lie_at_is_a_hazard() {
        for goodput_bps in [150e6, 230e6] {
            let scene = Scene { goodput_bps, early_peak_bps: goodput_bps, ..truth() };
            let verdict = crate::testing::verdict(&scene, &no_more(&scene));
            assert_eq!(verdict.status, Status::Healthy, "{verdict:#?}");
            assert!(verdict.hazards[0].starts_with("local-shaper was seen on the client but is not the limit"), "{:?}", verdict.hazards);
        }
        for goodput_bps in [172e6, 205e6] {
            named(&Scene { goodput_bps, ..truth() }, &[], "local-shaper", Place::Client);
        }
    }

    #[test]
    fn counters_or_segments_that_cannot_be_read_leave_it_open() {
        let scene = Scene { sender_counts: Vec::new(), ..truth() };
        assert_cannot_tell(&assessment(&CAUSE, Role::Sender, &scene, &[]), "counters");
        let scene = Scene { hidden: &[Hidden::Mss], ..truth() };
        assert_cannot_tell(&assessment(&CAUSE, Role::Sender, &scene, &[]), "segment size");
        let scene = Scene { sender_facts: Vec::new(), rtt_us: 35_100, ..truth() };
        assert_cannot_tell(&assessment(&CAUSE, Role::Sender, &scene, &[]), "could not be read");
        none_proven(&scene, &[]);
    }
}
