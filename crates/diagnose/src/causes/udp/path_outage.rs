//! # path-outage
//!
//! The path carries nothing for a time, once or again and again: a link that flaps, a radio link that fades or hands over, a
//! route or spanning tree that changes.
//!
//! **Shows**: long runs of datagrams are lost, and those before and after arrive without delay. A run is as long in time at any rate.
//!
//! **Mistaken for**: random loss in bursts (of milliseconds), a policer or a full queue (some of what exceeds the rate passes), a host
//! that is stopped (what was on its way meanwhile arrives late).
//!
//! **Fix**: find the hop that stops forwarding by its log at these times.
//!
//! Source: RFC 7680; ITU-T Y.1540, section 7 (unavailability is a time, not a loss ratio).

use crate::causes::shared::paced::Lost;
use crate::causes::shared::rule::*;
use crate::causes::shared::udp::at_stage;

pub const CAUSE: Cause<UdpEvidence> = Cause {
    id: "path-outage",
    about: "the path carries nothing for a time",
    roles: &[Role::Path],
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["random-loss", "path-policer", "path-capacity", "udp-receive-buffer"],
    fix: |_, _| {
        advice(
            "find the hop that stops forwarding: its log at these times (link state, roaming or handover of a radio link, changes of \
             routes or of the spanning tree)",
        )
    },
    stages: &["path"],
    rank: 2,
    ..Cause::COMMON
};

/// The bursts of radio links and interference last for milliseconds; a path that passes some of what exceeds its rate passes one of so
/// many datagrams in this time, as in a profile (`narrows_search::profile`).
const OUTAGE_US: f64 = 50_000.0;
const VANISH: f64 = 20.0;
/// A host that was stopped, or a queue, delays what arrives by more than this part of the time.
const DELAYED: f64 = 0.5;

fn assess(evidence: &UdpEvidence, _: Role) -> Ruling {
    let (_, share, first) = at_stage(evidence, "path", None)?;
    let (base, load) = (&evidence.base, Lost::of(&evidence.base));
    let runs = load.counted_runs()?;
    let run = load.lost as f64 / runs as f64;
    let time_us = run * 1e6 / base.offered_pps();
    let [median_us, _, most_us] = known(base.delay_us, "the receiving end does not measure how late datagrams come")?;
    let [time, late] = [time_us, most_us - median_us].map(|us| units::micros(us.max(0.0) as u64));
    if run < VANISH || time_us < OUTAGE_US {
        return Err(contradicts(format!("the losses come in runs of about {run:.0} datagrams ({time})")));
    }
    if most_us - median_us >= DELAYED * time_us {
        return Err(contradicts(format!(
            "{run:.0} datagrams were lost in a row ({time}), and others came late by {late}: a host was stopped, or a queue overflowed"
        )));
    }
    let times = counter(format!(
        "the path carried nothing for {time} on average, {runs} times; no other datagram was late by more than {late}"
    ));
    let step = evidence.profile.as_ref().and_then(|profile| profile.shape.longest_outage());
    let step = step.map(|step| {
        let (time, rate) = (units::micros(step.outage_us as u64), units::bps(step.offered_bps));
        experiment(format!("UDP at {rate}, evenly paced, lost every datagram for {time} and hardly any other"))
    });
    supports(share, [Some(first), Some(times), step])
}

#[cfg(test)]
mod tests {
    use crate::testing::udp::*;
    use super::*;

    /// 8,500 datagrams a second, of which three times 2,000 in a row are lost.
    fn truth() -> UdpScene {
        UdpScene { died: Died { path: 6_000, ..Died::default() }, loss_run: 2_000, ..UdpScene::default() }
    }

    fn of(scene: &UdpScene) -> Assessment {
        assessment(&CAUSE, Role::Path, scene)
    }

    #[test]
    fn long_runs_without_delay_are_outages() {
        let finding = named(&truth(), "path-outage", Place::Path);
        assert!(
            finding.witnesses[1].says.starts_with("the path carried nothing for 236 ms"),
            "{:?}",
            finding.witnesses
        );
        rejects(&finding, "udp-receive-buffer", "nothing was dropped");
    }

    #[test]
    fn bursts_of_milliseconds_and_stopped_hosts_are_none() {
        assert_contradicts(&of(&UdpScene { loss_run: 10, ..truth() }), "in runs of about 10 datagrams");
        assert_contradicts(&of(&UdpScene { loss_run: 400, ..truth() }), "in runs of about 400 datagrams");
        assert_contradicts(&of(&UdpScene { delay_us: [50, 100, 200_000], ..truth() }), "came late by 200 ms");
        let open = UdpScene { loss_run: 0, ..truth() };
        assert_cannot_tell(&of(&open), "in a row");
        let died = Died { buffer: 6_000, ..Died::default() };
        assert_contradicts(&of(&UdpScene { died, ..truth() }), "nothing was dropped");
    }
}
