//! # pacing-cap
//!
//! The socket has a rate limit: `SO_MAX_PACING_RATE` by the application, or `maxrate` of `fq`.
//!
//! **Shows**: `tcpi_max_pacing_rate` is finite and the goodput matches it; no loss, no window limit.
//!
//! **Mistaken for**: a slow application, a shaper on the path.
//!
//! **Fix**: remove or raise the limit.
//!
//! Source: `include/net/sock.h`, `sk_max_pacing_rate`; tc-fq(8).

use crate::causes::shared::rule::*;
use narrows_model::load::tcp::TcpPlan;

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "pacing-cap",
    about: "the sending socket has a cap on its rate",
    roles: &[Role::Sender],
    ceiling,
    assess,
    look_alikes: &["sender-app-slow", "path-shaper", "local-shaper", "path-capacity", "tcp-send-buffer"],
    fix,
    rank: 7,
    per_connection: true,
    ..Cause::COMMON
};

/// A path that carries no more than this times the cap would give as little without it.
const HARDLY_MORE: f64 = 1.1;

fn ceiling(evidence: &TcpEvidence, role: Role) -> Option<Ceiling> {
    let streams = evidence.base.streams as f64;
    let cap = evidence.base.max_pacing_bps?;
    let whose = if evidence.server_limit_bps.is_some() { "this server's --open-rate: " } else { "" };
    let how = format!("{whose}cap of {} on each of {streams:.0} sockets", units::bps(cap));
    // Pacing counts headers too where a qdisc does it, and payload alone where TCP does.
    let low = evidence.wire_efficiency(evidence.base.mss_bytes.unwrap_or(1448.0));
    ceiling_at(CAUSE.id, evidence, role, cap * streams, [low * 0.98, 1.01], Method::Computed, how)
}

fn assess(evidence: &TcpEvidence, _: Role) -> Assessment {
    let base = &evidence.base;
    let Some(cap) = base.max_pacing_bps else { return contradicts("the sending sockets have no cap on their rate") };
    if let Some(limit) = evidence.server_limit_bps {
        let limit = units::bps(limit);
        return contradicts(format!("the cap is this server's limit for clients without its token, {limit} (--open-rate)"));
    }
    let Some(shares) = base.shares else { return cannot_tell("the sender's kernel does not report what limited it") };
    let windows = shares.receive_window + shares.send_buffer;
    if shares.receive_window > 0.5 {
        return contradicts(format!(
            "the receive window limited the sender {} of the time",
            units::percent(shares.receive_window)
        ));
    }
    if evidence.queue_stood() == Some(true) && !evidence.path_has_room() {
        return contradicts("the RTT rose as behind a full queue: the path's capacity is below the cap");
    }
    let allowed = cap * base.streams as f64;
    if let Some(capacity) = evidence.capacity_goodput_bps().filter(|capacity| *capacity < HARDLY_MORE * allowed) {
        return contradicts(format!(
            "the path carries {}, little more than the cap of {}",
            units::bps(capacity),
            units::bps(allowed)
        ));
    }
    Assessment::Supports {
        share: (1.0 - windows).max(0.5),
        witnesses: [
            Some(parameter(format!(
                "the kernel reports a cap of {} on the socket (SO_MAX_PACING_RATE or fq maxrate)",
                units::bps(cap)
            ))),
            path_has_room(evidence).or_else(|| {
                Some(counter("no queue on the path, and the receive window did not limit the sender"))
            }),
        ]
        .into_iter()
        .flatten()
        .collect(),
    }
}

fn fix(evidence: &TcpEvidence, _: Role) -> Fix {
    Fix {
        load: evidence.load.pacing_bps.is_some().then(|| TcpPlan { pacing_bps: None, ..evidence.load.clone() }.into()),
        ..advice(
            "drop or raise the cap: SO_MAX_PACING_RATE in the application, or maxrate of the fq queueing discipline",
        )
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use crate::testing::profile::ProfiledPath;
    use super::*;

    /// SO_MAX_PACING_RATE of 200 Mbit/s.
    fn truth() -> Scene {
        Scene { goodput_bps: 198e6, rtt_us: 35_100, cwnd: 1_200, max_pacing_bytes_s: 25_000_000, ..Scene::default() }
    }

    #[test]
    fn a_cap_just_below_what_the_path_carries_costs_next_to_nothing() {
        let of = |rate_bps| {
            let path = ProfiledPath { rate_bps, burst_bps: rate_bps, ..ProfiledPath::default() };
            assessment(&CAUSE, Role::Sender, &Scene { goodput_bps: 170e6, profile: Some(path), ..truth() }, &[])
        };
        assert_contradicts(&of(220e6), "little more than the cap of 200 Mbit/s");
        assert_supports(&of(240e6));
    }

    #[test]
    fn a_cap_on_the_socket_is_named() {
        let mut scene = truth();
        scene.load.pacing_bps = Some(200_000_000);
        let finding = named(&scene, &[], "pacing-cap", Place::Client);
        assert_rejects(&finding, "sender-app-slow", "had data to send 100 %");
        assert_rejects(&finding, "path-shaper", "pacing-cap at the sender");
        assert_rejects(&finding, "local-shaper", "has no rate");
        assert_eq!(finding.fix.load.expect("the load without its cap").get::<TcpPlan>().expect("TCP").pacing_bps, None);
    }

    #[test]
    fn the_cap_counts_for_each_stream() {
        let load = TcpPlan { streams: 4, ..truth().load };
        named(&Scene { goodput_bps: 790e6, load: load.clone(), ..truth() }, &[], "pacing-cap", Place::Client);
        // One cap's worth over four streams is something else.
        none_proven(&Scene { load, ..truth() }, &[]);
    }

    #[test]
    fn an_infinite_cap_is_none() {
        let scene = Scene { max_pacing_bytes_s: u64::MAX, congestion_control: "bbr", ..truth() };
        assert_contradicts(&assessment(&CAUSE, Role::Sender, &scene, &[]), "no cap");
        none_proven(&scene, &[]);
    }

    #[test]
    fn a_queue_or_a_window_says_that_the_cap_is_not_reached() {
        let of = |scene| assessment(&CAUSE, Role::Sender, &scene, &[]);
        assert_contradicts(&of(Scene { rtt_us: 40_000, ..truth() }), "the RTT rose as behind a full queue: the path's capacity is below the cap");
        assert_contradicts(&of(Scene { rwnd: 0.52, ..truth() }), "receive window");
        assert_supports(&of(Scene { rwnd: 0.48, ..truth() }));
    }

    #[test]
    fn a_kernel_without_chronographs_leaves_it_open() {
        let scene = Scene { hidden: &[Hidden::LimitedTimes], ..truth() };
        assert_cannot_tell(&assessment(&CAUSE, Role::Sender, &scene, &[]), "does not report");
        none_proven(&scene, &[]);
    }
}
