//! # tcp-receive-window
//!
//! The receiver's kernel cannot advertise the window that the path needs: the maximum of `tcp_rmem` is too small, or the route to the
//! sender limits the window.
//!
//! **Shows**: the receive window limits the sender most of the time, the window is constant, and data is read promptly.
//! Goodput is window / RTT.
//!
//! **Mistaken for**: a slow reader (its queue is full), a buffer fixed by the application (the socket is locked), a
//! lossy path.
//!
//! **Fix**: raise the third value of `net.ipv4.tcp_rmem` to at least twice the bandwidth-delay product, because part
//! of the buffer is overhead; a route without `window`.
//!
//! Source: `net/ipv4/tcp_input.c`, `tcp_rcv_space_adjust`; RFC 7323; ip-route(8), `window`.

use crate::causes::shared::rule::*;
use crate::causes::shared::tcp::{raise, waits_on_the_path, window_ceiling, without_metric};
use narrows_model::host::buffers::RECEIVE;
use super::receiver_app_slow::{leaves_unread, unread, unread_words};

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "tcp-receive-window",
    about: "the receiver's kernel advertises a window too small for this RTT",
    roles: &[Role::Receiver],
    needs: &[keys::ROUTE_DEVICE, keys::ROUTE_GATEWAY, 
        keys::TCP_RMEM_MIN,
        keys::TCP_RMEM_DEFAULT,
        keys::TCP_RMEM_MAX,
        keys::TCP_MODERATE_RCVBUF,
        keys::ROUTE_WINDOW,
        keys::NIC_KIND,
        keys::NIC_SPEED,
    ],
    ceiling,
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &[
        "receiver-app-slow",
        "tcp-receive-buffer-fixed",
        "window-scaling-off",
        "tcp-send-buffer",
        "random-loss",
    ],
    fix,
    rank: 5,
    per_connection: true,
    ..Cause::COMMON
};

/// A sender that waits for the window so much of the time is limited by the window that it sees, whatever the sysctls allow.
const HELD: f64 = 0.5;

/// Of a fully grown receive buffer, the part that becomes window where it was not observed: between
/// `tcp_adv_win_scale` 1 (a half) and a payload that fills its memory well (`scaling_ratio`, net/ipv4/tcp_input.c); two
/// thirds where segments of 1448 bytes come in buffers of 2304.
const WINDOW_PART: [f64; 3] = [0.45, 0.66, 0.95];

/// The window of the receiver's route to the sender, in bytes, where it is what the receiver announced: rounded down to the unit of window
/// scaling, or as much as the scale allows that was chosen for it (`tcp_select_initial_window`), where the buffer grew and the limit with it.
fn of_route(evidence: &TcpEvidence, role: Role) -> Option<f64> {
    let limit = evidence.number(role, keys::ROUTE_WINDOW).filter(|bytes| *bytes > 0.0)?;
    let announced = evidence.base.snd_wnd_bytes?;
    let scaled = (0..=14).map(|shift| 65_535.0 * f64::from(1 << shift)).find(|most| *most >= limit)?;
    let is = |of: f64, least: f64| (least..=1.01).contains(&(announced / of));
    (is(limit, 0.9) || is(scaled, 0.99)).then_some(limit)
}

fn ceiling(evidence: &TcpEvidence, role: Role) -> Option<Ceiling> {
    let base = &evidence.base;
    if base.receive_locked == Some(true) || base.window_scaling == Some(false) {
        return None;
    }
    if let Some(window) = unseen(evidence) {
        let how = format!("window of {}, announced all the time / RTT", units::bytes(window as u64));
        return window_ceiling(CAUSE.id, evidence, role, window, Method::Inferred, how);
    }
    let max = evidence.number(role, keys::TCP_RMEM_MAX)?;
    let reader_keeps_up = !leaves_unread(evidence);
    let held = reader_keeps_up && evidence.held_by_window().is_some_and(|held| held >= HELD);
    let least_us = evidence.window_rtt_us()?;
    let rtt = units::micros(base.rtt_us.filter(|us| held && *us > least_us).unwrap_or(least_us) as u64);
    // A window that the sender never waited for may grow.
    let felt = held || (grown(evidence, max) && evidence.held_by_window().is_none_or(|held| held >= 0.05));
    if let (true, Some(window)) = (felt, base.snd_wnd_bytes) {
        let given = match of_route(evidence, role) {
            Some(_) => " (all that the route gives)".to_owned(),
            None if grown(evidence, max) => format!(" (all that tcp_rmem max {} gives)", units::bytes(max as u64)),
            None => String::new(),
        };
        let window_words = units::bytes(window as u64);
        let how = format!("window of {window_words}{given} / (RTT {rtt} + the time that sending it takes)");
        // All that the parameter gives holds at any load; one that only this load met may grow with another.
        let method = if grown(evidence, max) { Method::Computed } else { Method::Inferred };
        return window_ceiling(CAUSE.id, evidence, role, window, method, how);
    }
    // The part of the buffer that became window so far, else what kernels are known to give.
    let [low, likely, high] = WINDOW_PART;
    let seen = base.snd_wnd_bytes.zip(base.rcvbuf_bytes).map(|(window, buffer)| window / buffer);
    let part = seen.filter(|part| (low..=high).contains(part)).unwrap_or(likely);
    let how =
        format!("tcp_rmem max {} x {part:.2} (the part that becomes window) / RTT {rtt}", units::bytes(max as u64));
    let bps = evidence.window_bps(max * part)?;
    ceiling_at(CAUSE.id, evidence, role, bps, [low / likely, high / likely], Method::Computed, how)
}

/// Whether the buffer stands at the maximum. A maximum below the default size counts from there: sockets begin with
/// the default.
fn grown(evidence: &TcpEvidence, max: f64) -> bool {
    evidence.base.rcvbuf_bytes.is_some_and(|buffer| buffer >= 0.95 * max)
}

/// Buffers that are filled and read promptly leave a window that varies by less.
const ALIKE: f64 = 0.9;

/// The window of a receiver that shows nothing of its socket (iperf3), where the sender waits for it most of the time: a slow reader makes
/// it shrink, and a queue of the path fills any window. Of buffers that the load asks for the kernel does not decide.
fn unseen(evidence: &TcpEvidence) -> Option<f64> {
    let (base, load) = (&evidence.base, &evidence.load);
    let (low, window) = base.snd_wnd_low_bytes.zip(base.snd_wnd_bytes)?;
    let shows = base.rcvbuf_bytes.is_some() || base.recv_q_bytes.is_some();
    let asked = load.receive_buffer_bytes.or(load.send_buffer_bytes).is_some();
    let waits = evidence.held_by_window().is_some_and(|held| held >= HELD) && evidence.queue_stood() == Some(false);
    (!shows && !asked && waits && window > 0.0 && low >= ALIKE * window).then_some(window)
}

fn assess(evidence: &TcpEvidence, role: Role) -> Ruling {
    let base = &evidence.base;
    let held = held(evidence.held_by_window(), "receive window")?;
    if evidence.split.is_some() {
        return Err(contradicts("a proxy on the path ends the connection: the window that the sender waits for is the proxy's"));
    }
    if base.receive_locked == Some(true) {
        return Err(contradicts("the application fixed the receive buffer (SO_RCVBUF); tcp_rmem does not apply"));
    }
    if base.window_scaling == Some(false) {
        return Err(contradicts("window scaling is off, so the window is at most 64 KiB independent of tcp_rmem"));
    }
    if let Some(window) = unseen(evidence) {
        return supports(
            held,
            [
                counter(evidence.waited_words(held)),
                counter(format!(
                    "the receiver announced {} all the time; a slow reader would make the window shrink",
                    units::bytes(window as u64)
                )),
            ],
        );
    }
    let (Some(unread), Some(buffer), Some(window)) = (unread(evidence), base.rcvbuf_bytes, base.snd_wnd_bytes) else {
        return Err(cannot_tell("the receiver's socket memory could not be read, so a slow reader cannot be excluded"));
    };
    if unread > 0.25 * window || leaves_unread(evidence) {
        let unread = units::bytes(unread as u64);
        return Err(contradicts(format!("{unread} unread at {}: the reader is slow, not the window", evidence.place(role))));
    }
    ended(waits_on_the_path(evidence, evidence.window_bps(window)))?;
    let max = known(evidence.number(role, keys::TCP_RMEM_MAX), "the receiver's tcp_rmem could not be read")?;
    if let Some(limit) = of_route(evidence, role) {
        let waited = counter(evidence.waited_words(held));
        let route = parameter(format!(
            "the receiver's route to the sender limits the window to {} (window), and it announced {}",
            units::bytes(limit as u64),
            units::bytes(window as u64)
        ));
        return supports(held, [Some(waited), Some(route), path_has_room(evidence)]);
    }
    if buffer < 0.9 * max && evidence.flag(role, keys::TCP_MODERATE_RCVBUF) == Some(false) {
        return Err(contradicts("the buffer cannot grow: receive autotuning is off"));
    }
    // A window that ends the sender whatever tcp_rmem says: tcp_mem, memory of the control group, a window of a route that was not read.
    if buffer < 0.9 * max && held >= HELD && !evidence.base.is_silent() && path_has_room(evidence).is_some() {
        let waited = counter(format!(
            "the sender waited for the receive window {} of the time; its buffer was {}, below the tcp_rmem maximum \
            of {}",
            units::percent(held),
            units::bytes(buffer as u64),
            units::bytes(max as u64)
        ));
        return supports(held, [Some(waited), path_has_room(evidence)]);
    }
    if buffer < 0.9 * max {
        return Err(contradicts(format!(
            "the receive buffer is {}, and tcp_rmem allows {}",
            units::bytes(buffer as u64),
            units::bytes(max as u64)
        )));
    }
    let waited = counter(format!(
        "{}; the receiving application reads promptly ({}), and the receive buffer is at the tcp_rmem maximum of {}",
        evidence.waited_words(held),
        unread_words(evidence),
        units::bytes(max as u64)
    ));
    supports(held, [Some(waited), path_has_room(evidence)])
}

fn fix(evidence: &TcpEvidence, role: Role) -> Fix {
    if unseen(evidence).is_some() {
        return advice(
            "find what limits the receiver's window there: net.ipv4.tcp_rmem, a buffer that its application fixes (SO_RCVBUF), or a proxy \
            on the path that ends the connection",
        );
    }
    if of_route(evidence, role).is_some() {
        let words = "remove the window from the route to the sender";
        return command_fix(evidence, role, words, without_metric(evidence, role, "window"));
    }
    if evidence.number(role, keys::TCP_RMEM_MAX).is_some_and(|max| !grown(evidence, max)) {
        return advice(
            "find what keeps the window below what tcp_rmem allows: memory (net.ipv4.tcp_mem, the control group's), a window of the route, or \
            the application (TCP_WINDOW_CLAMP)",
        );
    }
    raise(evidence, role, &RECEIVE)
}

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use crate::testing::profile::ProfiledPath;
    use crate::diagnose;
    use narrows_model::{BufferLock, TcpInfo, TcpPlan, Verdict};
    use super::*;

    /// The figures of the story: 256 KiB at 35 ms carry 42 Mbit/s.
    fn truth() -> Scene {
        Scene {
            goodput_bps: 42.1e6,
            rtt_us: 35_100,
            rwnd: 0.97,
            snd_wnd: 184_000,
            rcvbuf: 262_144,
            receiver_facts: with(ordinary_host(), fact("tcp.rmem.max", 262_144_i64, Unit::Bytes)),
            ..Scene::default()
        }
    }

    fn of(scene: &Scene) -> Assessment {
        assessment(&CAUSE, Role::Receiver, scene, &[])
    }

    #[test]
    fn a_far_end_that_shows_nothing_is_named_by_a_window_that_never_varies() {
        let of = |scene: &Scene, narrow: Option<u64>| {
            let four = Scene { load: TcpPlan { streams: 4, ..truth().load }, goodput_bps: 160e6, ..scene.clone() };
            let mut run = scene.run(&[("more-streams", &four)]);
            for record in &mut run.trials {
                let far = tcp_end(&mut record.trial.server);
                far.host.clear();
                for sample in far.streams.iter_mut().flat_map(|stream| &mut stream.samples) {
                    (sample.memory, sample.recv_q_bytes) = (None, None);
                }
                let own = tcp_end(&mut record.trial.client).streams.iter_mut();
                for sample in own.flat_map(|stream| stream.samples.iter_mut().step_by(4)) {
                    sample.tcp.snd_wnd_bytes = narrow.or(sample.tcp.snd_wnd_bytes);
                }
            }
            diagnose(&run, 0).expect("a baseline").verdict
        };
        let silent = Scene { receiver_facts: Vec::new(), ..truth() };
        let named = of(&silent, None);
        assert_eq!((named.status, &*named.causes[0].id), (Status::Limited, CAUSE.id), "{named:#?}");
        let fix = &named.causes[0].fix;
        assert!(fix.settings.is_empty() && fix.advice.contains("net.ipv4.tcp_rmem"), "{fix:?}");
        let open = |verdict: &Verdict| verdict.causes.iter().all(|cause| cause.id != CAUSE.id);
        assert!(open(&of(&silent, Some(90_000))), "a slow reader");
        assert!(open(&of(&Scene { rtt_us: 60_000, ..silent.clone() }, None)), "a queue");
        let mut fixed = silent;
        fixed.load.receive_buffer_bytes = Some(131_072);
        assert!(open(&of(&fixed, None)), "a buffer that the load asked for");
    }

    #[test]
    fn a_window_of_256_kib_at_35_ms_is_named() {
        let finding = named(&truth(), &[], "tcp-receive-window", Place::Server);
        assert_rejects(&finding, "receiver-app-slow", "the receiving application keeps up");
        assert_rejects(&finding, "tcp-receive-buffer-fixed", "the application did not fix the buffer");
        assert_rejects(&finding, "window-scaling-off", "has window scaling");
        assert_rejects(&finding, "tcp-send-buffer", "only 0 %");
        // 941 Mbit/s x 35 ms are 4.1 MB: twice that, of which half may be overhead, rounded up.
        assert_eq!(finding.fix.commands[0].run, "sysctl -w net.ipv4.tcp_rmem='4096 131072 16777216'");
    }

    #[test]
    fn a_size_is_said_to_be_what_it_is() {
        let small = Scene { goodput_bps: 9.7e6, rtt_us: 7_130, min_rtt_us: 7_130, snd_wnd: 8_600, rcvbuf: 20_000, ..truth() };
        let receiver_facts = with(ordinary_host(), fact("tcp.rmem.max", 20_000_i64, Unit::Bytes));
        let profile = Some(ProfiledPath { rate_bps: 54e6, ..ProfiledPath::default() });
        let finding = named(&Scene { receiver_facts, profile, ..small }, &[], "tcp-receive-window", Place::Server);
        let advice = &finding.fix.advice;
        assert!(advice.contains("to 4 MiB: more than this path needs at 52.1 Mbit/s"), "{advice}");
    }

    #[test]
    fn a_buffer_that_one_super_packet_fills_is_named_though_samples_find_it_unread() {
        let small = crate::testing::small_buffer();
        let finding = named(&small, &[], "tcp-receive-window", Place::Server);
        assert_rejects(&finding, "receiver-app-slow", "the receiving application keeps up");
        // The sender's thread does the receiver's share of the work on such a path: it fills its core while it waits.
        let busy = Scene { sender_thread: 0.93, sender_core: core(0.46, 0.5), ..small };
        named(&busy, &[], "tcp-receive-window", Place::Server);
        // A profile that ended at 1 Gbit/s, far below the goodput, says nothing of how long a window takes to send.
        let profile = Some(ProfiledPath { rate_bps: 4e9, tried_bps: 1.1e9, ..ProfiledPath::default() });
        let evidence = TcpEvidence::of(&Scene { profile, ..busy }.run(&[]), 0).expect("a baseline");
        let [low, high] = ceiling(&evidence, Role::Receiver).expect("a window").interval_bps;
        assert!(8e9 < low && high < 19e9, "{low} to {high}");
    }

    #[test]
    fn a_window_that_the_route_limits_is_named_with_the_route() {
        let receiver_facts = with(ordinary_host(), fact("route.window", 185_000_i64, Unit::Bytes));
        let scene = Scene { receiver_facts, rcvbuf: 1_000_000, ..truth() };
        let finding = named(&scene, &[], "tcp-receive-window", Place::Server);
        assert_eq!(finding.fix.commands[1].run, "ip route change DESTINATION dev DEVICE");
        // The scale of a window of 185,000 bytes is 2.
        let scaled = Scene { snd_wnd: 262_140, goodput_bps: 59.7e6, ..scene.clone() };
        let finding = named(&scaled, &[], "tcp-receive-window", Place::Server);
        assert_eq!(finding.fix.commands[1].run, "ip route change DESTINATION dev DEVICE");
        // One that the receiver stays below, or goes beyond (a metric set after the connection began), is none of it.
        assert_contradicts(&of(&Scene { snd_wnd: 100_000, ..scene.clone() }), "and tcp_rmem allows");
        assert_contradicts(&of(&Scene { snd_wnd: 250_000, ..scene }), "and tcp_rmem allows");
    }

    #[test]
    fn a_full_window_whose_round_trips_are_the_work_of_the_hosts_is_named() {
        // tcp_rmem of 2304 bytes on veth devices, both ends on one core: a lone packet takes 8 us, a window 57.
        let small = crate::testing::small_buffer();
        let receiver_facts = with(small.receiver_facts.clone(), fact("tcp.rmem.max", 2304_i64, Unit::Bytes));
        let scene = Scene {
            goodput_bps: 15.4e9,
            min_rtt_us: 8,
            rwnd: 1.0,
            receiver_waits: Some(0.21),
            receiver_facts,
            ..small
        };
        let finding = named(&scene, &[], "tcp-receive-window", Place::Server);
        let contention = assessment(&super::super::cpu_contention::CAUSE, Role::Receiver, &scene, &[]);
        assert_contradicts(&contention, "tcp-receive-window limited the sender 100 % of the time, at its ceiling");
        // The ceiling is that of the round trips under load: 116,352 bytes each 57 us are 16.3 Gbit/s.
        assert!(finding.ceiling_bps.is_some_and(|bps| (16.2e9..16.4e9).contains(&bps)), "{finding:#?}");
        // More connections on a full core carry no more: that refutes no limit of each connection.
        let crowded = Scene { receiver_waits: Some(0.4), ..scene.clone() };
        named(&scene, &[("more-streams", &crowded)], "tcp-receive-window", Place::Server);
        let refuted = verdict(&scene, &[("more-streams", &Scene { receiver_waits: Some(0.1), ..scene.clone() })]);
        assert_ne!(refuted.status, Status::Limited, "{refuted:#?}");
    }

    #[test]
    fn a_queue_of_the_path_is_no_work_of_the_hosts() {
        // The same window at four times the idle RTT behind a queue: the path may be what takes the round trips.
        let queued = Scene { goodput_bps: 10.5e6, rtt_us: 140_000, ..truth() };
        let evidence = TcpEvidence::of(&queued.run(&[]), 0).expect("a baseline");
        assert!(ceiling(&evidence, Role::Receiver).is_some_and(|it| it.interval_bps[0] > 30e6));
    }

    #[test]
    fn its_look_alikes_speak_for_themselves() {
        assert_contradicts(&of(&Scene { recv_q: 60_000, ..truth() }), "the reader is slow, not the window");
        let fixed = BufferLock { send: false, receive: true };
        assert_contradicts(&of(&Scene { lock: fixed, ..truth() }), "SO_RCVBUF");
        assert_contradicts(&of(&Scene { options: TcpInfo::OPT_SACK, ..truth() }), "window scaling is off");
    }

    #[test]
    fn a_buffer_that_may_still_grow_is_not_at_its_limit() {
        let of_buffer = |rcvbuf| of(&Scene { rcvbuf, ..truth() });
        assert_contradicts(&of_buffer(235_000), "and tcp_rmem allows");
        assert_supports(&of_buffer(237_000));
    }

    #[test]
    fn a_fifth_of_the_time_must_be_lost_to_it() {
        // With a window that is not full at most instants, the limited_time alone decides.
        let held = |rwnd| of(&Scene { rwnd, cwnd: 50, ..truth() });
        assert_contradicts(&held(0.19), "only 19 %");
        assert_supports(&held(0.21));
    }

    #[test]
    fn a_window_whose_ceiling_is_elsewhere_is_a_hazard() {
        // The same window at 10 ms carries 147 Mbit/s: 42 have another cause.
        let verdict = verdict(&Scene { min_rtt_us: 10_000, rtt_us: 10_100, ..truth() }, &[]);
        assert_eq!(verdict.status, Status::Unknown, "{verdict:#?}");
        assert!(verdict.hazards[0].contains("which is not what was measured"), "{:?}", verdict.hazards);
    }

    #[test]
    fn what_a_kernel_or_a_host_does_not_tell_leaves_it_open() {
        for hidden in [&[Hidden::LimitedTimes] as &[Hidden], &[Hidden::SocketMemory], &[Hidden::RecvQ]] {
            let scene = Scene { hidden, ..truth() };
            assert_cannot_tell(&of(&scene), "");
            none_proven(&scene, &[]);
        }
        let scene = Scene { receiver_facts: without(ordinary_host(), "tcp.rmem.max"), ..truth() };
        assert_cannot_tell(&of(&scene), "tcp_rmem could not be read");
        none_proven(&scene, &[]);
    }
}
