//! # small-datagrams
//!
//! The CPU cost per datagram hardly depends on its size: small datagrams fill a core at a low bit rate.
//!
//! **Shows**: a core is full and the requested rate is not reached; larger datagrams reach the same packet rate, and
//! therefore a higher bit rate.
//!
//! **Mistaken for**: a slow path or link.
//!
//! **Fix**: larger datagrams; batches (`UDP_SEGMENT`, `sendmmsg`, `UDP_GRO`), more streams.
//!
//! Source: netperf and netblast practice; kernel `Documentation/networking/segmentation-offloads.rst`.

use crate::causes::shared::rule::*;
use crate::causes::shared::words::witness;
use crate::evidence::udp::view::UdpEnd;
use crate::experiments::udp::LARGER_DATAGRAMS;
use narrows_model::load::udp::{DatagramSizes, UdpPlan, UdpRate};

pub const CAUSE: Cause<UdpEvidence> = Cause {
    id: "small-datagrams",
    about: "small datagrams fill a core at a low bit rate",
    roles: &[Role::Sender, Role::Receiver],
    assess,
    look_alikes: &["udp-receive-buffer", "path-capacity"],
    fix,
    confirmed_by: Some(&LARGER_DATAGRAMS),
    ..Cause::COMMON
};

/// Datagrams above this are not small: less than three of them make a full packet.
const SMALL: u64 = 600;
/// A core that is full, as far as sampling can see.
const FULL: f64 = 0.85;
/// Less than this behind the plan is what pacing loses on a busy host.
const BEHIND: f64 = 0.02;

fn assess(evidence: &UdpEvidence, role: Role) -> Assessment {
    let base = &evidence.base;
    if base.size_bytes > SMALL {
        return contradicts(format!("datagrams of {} bytes are not small", base.size_bytes));
    }
    let asked_for_most = base.plan.rate(base.ledger.flow) == UdpRate::Max;
    let short = asked_for_most || base.behind > BEHIND;
    let read_late = base.dropped("receive-buffer").max(base.dropped("softnet")) >= base.missing().div_ceil(2);
    let hurts = if role == Role::Sender { short } else { base.missing() > 0 && read_late };
    if !hurts {
        return contradicts("the requested rate was reached, without loss at this end");
    }
    let Some((share, what)) = evidence.end(role).and_then(UdpEnd::busiest) else {
        return cannot_tell(format!("the times of the {}'s CPUs could not be read", evidence.place(role)));
    };
    if share < FULL {
        return contradicts(format!("no core of the {} is full ({what}: {})", evidence.place(role), units::percent(share)));
    }
    let mut witnesses = vec![counter(format!(
        "{what} of the {} is busy {} of the time at {:.0} datagrams/s of {} bytes",
        evidence.place(role),
        units::percent(share),
        base.delivered_pps(),
        base.size_bytes
    ))];
    if let Some(larger) = evidence.experiments.get(LARGER_DATAGRAMS.id) {
        let sizes = larger.size_bytes as f64 / base.size_bytes.max(1) as f64;
        let gain = larger.goodput_bps / base.goodput_bps.max(1.0);
        if sizes < 1.5 || gain < 0.5 * sizes.min(8.0) {
            return contradicts(format!("{sizes:.0} times larger datagrams carried only {gain:.1} times the bits"));
        }
        witnesses.push(witness(
            "experiment",
            format!(
                "datagrams of {} bytes carried {} where those of {} carried {}",
                larger.size_bytes,
                units::bps(larger.goodput_bps),
                base.size_bytes,
                units::bps(base.goodput_bps)
            ),
        ));
    }
    Assessment::Supports { share: 0.9, witnesses }
}

fn fix(evidence: &UdpEvidence, _: Role) -> Fix {
    Fix {
        advice: "send larger datagrams; else send in batches (UDP_SEGMENT, sendmmsg), receive in batches (UDP_GRO, \
            recvmmsg), or use more streams"
            .to_owned(),
        load: Some(UdpPlan { sizes: DatagramSizes::Largest, ..evidence.base.plan.clone() }.into()),
        ..Fix::default()
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::udp::*;
    use super::*;

    /// 100,000 a second were asked for; 64,000 were handed over.
    fn truth() -> UdpScene {
        UdpScene { offered: 512_000, intended: Some(800_000), size: 64, sender_thread: 0.97, ..UdpScene::default() }
    }

    fn larger() -> UdpScene {
        UdpScene { offered: 480_000, intended: Some(480_000), size: 1472, sender_thread: 0.97, ..UdpScene::default() }
    }

    #[test]
    fn as_many_larger_ones_a_second_prove_it() {
        let finding = named_with(&truth(), &[(LARGER_DATAGRAMS.id, &larger())], "small-datagrams", Place::Client);
        assert!(finding.fix.load.is_some());
        suspected(&truth(), "small-datagrams");
    }

    #[test]
    fn large_datagrams_a_core_with_time_or_a_rate_that_was_reached_speak_against_it() {
        let of = |scene: &UdpScene, with: &[(&str, &UdpScene)]| assessment_with(&CAUSE, Role::Sender, scene, with);
        assert_contradicts(&of(&UdpScene { size: 1472, ..truth() }, &[]), "are not small");
        assert_contradicts(&of(&UdpScene { sender_thread: 0.5, ..truth() }, &[]), "no core of the client is full");
        assert_contradicts(&of(&UdpScene { intended: None, ..truth() }, &[]), "was reached");
        let slow = UdpScene { offered: 30_000, intended: Some(480_000), ..larger() };
        assert_contradicts(&of(&truth(), &[(LARGER_DATAGRAMS.id, &slow)]), "times the bits");
    }

    #[test]
    fn without_the_times_of_the_cpus_nothing_is_known() {
        let mut trial = truth().trial();
        udp_end(&mut trial.client).host.clear();
        for sample in &mut udp_end(&mut trial.client).streams[0].samples {
            sample.thread_cpu_us = None;
        }
        let none = narrows_model::Snapshot::default();
        let evidence = UdpEvidence::of(trial.of().expect("UDP"), &[], narrows_model::Flow::Up, &none, &none).expect("a flow");
        assert_cannot_tell(&assess(&evidence, Role::Sender), "CPUs could not be read");
    }

    #[test]
    fn as_many_as_possible_without_loss_accuses_no_one() {
        healthy(&UdpScene { rate: UdpRate::Max, intended: Some(0), ..truth() });
    }
}
