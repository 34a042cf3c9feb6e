//! # tcp-proxy
//!
//! Something on the path ends the sender's TCP connection and makes another one to the receiver: the sender sees a near end that
//! acknowledges at once, and its window is the proxy's.
//!
//! **Shows**: TCP's smallest RTT is far below that of UDP over the same path, or the two hosts' sockets have window scales that do not
//! belong to one connection; the sender waits for a receive window while the receiver's
//! buffer is neither full nor at its maximum.
//!
//! **Mistaken for**: a small receive window or a slow reader of the receiver.
//!
//! **Fix**: none on the hosts: look at the accelerator, firewall or load balancer that proxies the connection.
//!
//! Source: RFC 3135 section 2 (performance enhancing proxies that split connections). Not seen on a real path.

use crate::causes::shared::rule::*;
use crate::evidence::tcp::NO_MORE;
use crate::experiments::tcp::MORE_STREAMS;
use super::receiver_app_slow::leaves_unread;

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "tcp-proxy",
    about: "a proxy on the path ends the connection, and its window holds the sender back",
    roles: &[Role::Path],
    needs: &[keys::TCP_RMEM_MAX],
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["tcp-receive-window", "tcp-receive-buffer-fixed", "receiver-app-slow", "path-capacity"],
    fix: |_, _| {
        advice("look for what proxies TCP between the two hosts (an accelerator, a firewall, a load balancer): its buffers and its far side limit")
    },
    rank: 8,
    ..Cause::COMMON
};

/// The RTT of UDP is of programs that answer, which may take so much longer than a kernel's acknowledgement.
const LONGER: f64 = 2.0;
const PROGRAMS_US: f64 = 2_000.0;

fn assess(evidence: &TcpEvidence, _: Role) -> Ruling {
    let base = &evidence.base;
    let idle = evidence.profile.as_ref().and_then(|profile| profile.shape.idle_rtt_us);
    let two = if let Some(split) = &evidence.split {
        counter(format!("the connection of the sender does not end at the receiver: {split}"))
    } else {
        let (udp, tcp_us) = known(idle.zip(base.min_rtt_us), "the RTTs of UDP and TCP could not be compared")?;
        let [tcp, udp_words] = [tcp_us, udp.min].map(|us| units::micros(us as u64));
        if udp.min < LONGER * tcp_us + PROGRAMS_US {
            return Err(contradicts(format!("the smallest RTT of TCP is {tcp}, and that of UDP {udp_words}")));
        }
        experiment(format!(
            "the smallest RTT of TCP is {tcp}, and that of UDP over the same path {udp_words}: something on the way acknowledges for the \
             receiver"
        ))
    };
    let held = known(evidence.held_by_window(), "the sender's kernel does not say what held it back")?;
    if held < 0.2 {
        let seen = "something acknowledges for the receiver, but its window limited the sender only";
        return Err(contradicts(format!("{seen} {} of the time", units::percent(held))));
    }
    if leaves_unread(evidence) {
        return Err(contradicts("data waits unread at the receiver: its application is slow"));
    }
    let max = evidence.number(Role::Receiver, keys::TCP_RMEM_MAX);
    let (buffer, max) = known(base.rcvbuf_bytes.zip(max), "the receiver's buffer or its tcp_rmem could not be read")?;
    if base.receive_locked == Some(true) || buffer >= 0.9 * max {
        return Err(contradicts("the receiver's own buffer is as large as it may be"));
    }
    // Its window also closes where what leaves on its far side is all that the path carries.
    if !evidence.path_has_room() {
        let more = made(evidence, &MORE_STREAMS, "the path behind a proxy may be full; more streams were not measured")?;
        if more.goodput_bps < NO_MORE * evidence.goodput_bps() {
            let more = units::bps(more.goodput_bps);
            return Err(contradicts(format!("four times the streams carried {more}: the window of a proxy is not the limit")));
        }
    }
    let waits = counter(format!(
        "{}, while the receiver's buffer had room to grow",
        evidence.waited_words(held)
    ));
    let witnesses = [Some(two), Some(waits), path_has_room(evidence)];
    supports(held, witnesses)
}

#[cfg(test)]
mod tests {
    use crate::testing::{*, no_more};
    use crate::testing::profile::ProfiledPath;
    use super::*;

    /// A proxy 4 ms away on a path of 35 ms.
    fn truth() -> Scene {
        Scene { min_rtt_us: 4_000, rtt_us: 4_300, rwnd: 0.8, snd_wnd: 65_536, rcvbuf: 500_000, ..slow() }
    }

    fn of(scene: &Scene) -> Assessment {
        assessment(&CAUSE, Role::Path, scene, &[])
    }

    #[test]
    fn a_near_end_that_acknowledges_for_the_receiver_is_named() {
        named(&truth(), &[], "tcp-proxy", Place::Path);
    }

    /// One at the far end, whose window is that of another connection: 200 Mbit/s leave it, and no profile was made.
    fn far() -> Scene {
        Scene {
            goodput_bps: 191e6,
            rtt_us: 35_100,
            rwnd: 1.0,
            snd_wnd: 850_000,
            rcvbuf: 500_000,
            scales: Some([(11 << 4) | 7; 2]),
            profile: None,
            ..Scene::default()
        }
    }

    #[test]
    fn a_proxy_whose_far_side_is_full_is_said_beside_a_healthy_verdict() {
        assert_asks(&of(&far()), &MORE_STREAMS);
        let more = |goodput_bps| Scene { goodput_bps, ..far() };
        let verdict = verdict(&far(), &no_more(&more(195e6)));
        assert_eq!((verdict.status, &*verdict.causes[0].id), (Status::Healthy, "path-capacity"), "{verdict:#?}");
        assert!(verdict.hazards[0].starts_with("a proxy on the path ends the TCP connection"), "{:?}", verdict.hazards);
        let finding = named(&far(), &no_more(&more(600e6)), "tcp-proxy", Place::Path);
        assert!(finding.witnesses[0].says.contains("announced a window scale of 11"), "{:?}", finding.witnesses);
    }

    #[test]
    fn one_that_does_not_hold_the_sender_back_and_a_receiver_that_does_are_not_it() {
        assert_contradicts(&of(&Scene { rwnd: 0.0, snd_wnd: 12_000_000, ..truth() }), "only 0 %");
        assert_contradicts(&of(&Scene { min_rtt_us: 35_000, rtt_us: 35_200, ..truth() }), "that of UDP 35.0 ms");
        assert_contradicts(&of(&Scene { rcvbuf: 33_554_432, ..truth() }), "as large as it may be");
        assert_contradicts(&of(&Scene { rcvbuf_filled: 0.9, ..truth() }), "waits unread");
        // Programs that answer take a millisecond longer than a kernel.
        let near = Some(ProfiledPath { idle_rtt_us: 1_500, ..ProfiledPath::default() });
        assert_contradicts(&of(&Scene { min_rtt_us: 60, rtt_us: 200, profile: near, ..truth() }), "smallest RTT of TCP is 60 us");
        assert_cannot_tell(&of(&Scene { profile: None, ..truth() }), "could not be compared");
        assert_cannot_tell(&of(&Scene { hidden: &[Hidden::Rtt], ..truth() }), "could not be compared");
    }
}
