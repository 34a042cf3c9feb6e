//! # window-scaling-off
//!
//! The connection has no window scaling, so the window is at most 64 KiB.
//!
//! **Shows**: the option is missing in the connection, the window never exceeds 65,535 bytes, and it limits the sender.
//!
//! **Mistaken for**: tcp-receive-window. If both hosts have the parameter on, a middlebox strips the option.
//!
//! **Fix**: `net.ipv4.tcp_window_scaling=1` on the end that has it off; else the middlebox.
//!
//! Source: RFC 7323 section 2; `TCPI_OPT_WSCALE`.

use crate::causes::shared::rule::*;
use crate::causes::shared::tcp::slowed_by_hosts;

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "window-scaling-off",
    about: "the connection has no window scaling, so its window is at most 64 KiB",
    roles: &[Role::Sender, Role::Receiver, Role::Path],
    needs: &[keys::TCP_WINDOW_SCALING],
    ceiling,
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["tcp-receive-window", "tcp-receive-buffer-fixed", "receiver-app-slow"],
    fix,
    rank: 8,
    per_connection: true,
    ..Cause::COMMON
};

/// The largest window without scaling.
const WINDOW_BYTES: f64 = 65_535.0;

/// Whether this role is the one to blame: a host with the parameter off, or the path where both have it on.
fn blamed(evidence: &TcpEvidence, role: Role) -> Option<bool> {
    match role {
        Role::Path => Some(
            evidence.flag(Role::Sender, keys::TCP_WINDOW_SCALING)?
                && evidence.flag(Role::Receiver, keys::TCP_WINDOW_SCALING)?,
        ),
        host => evidence.flag(host, keys::TCP_WINDOW_SCALING).map(|on| !on),
    }
}

fn ceiling(evidence: &TcpEvidence, role: Role) -> Option<Ceiling> {
    if evidence.base.window_scaling != Some(false) || !blamed(evidence, role)? {
        return None;
    }
    let how =
        format!("64 KiB, the largest window without scaling / RTT {}", units::micros(evidence.window_rtt_us()? as u64));
    // The receiver announces less than the whole field where its buffer's overhead eats into it.
    let low = 0.4 * slowed_by_hosts(evidence, evidence.held_by_window());
    ceiling_at(CAUSE.id, evidence, role, evidence.window_bps(WINDOW_BYTES)?, [low, 1.02], Method::Computed, how)
}

fn assess(evidence: &TcpEvidence, role: Role) -> Ruling {
    if known(evidence.base.window_scaling, "the kernel does not report the options of the connection")? {
        return Err(contradicts("the connection has window scaling"));
    }
    if !known(blamed(evidence, role), "tcp_window_scaling could not be read")? {
        return Err(contradicts(format!("the option was not lost at {}", who(evidence, role))));
    }
    let held = held(evidence.held_by_window(), "window of 64 KiB")?;
    let witnesses = [
        counter(evidence.waited_words(held)),
        parameter(if role == Role::Path {
            "both hosts offer window scaling, but the connection has none: the path strips the option".to_owned()
        } else {
            format!("tcp_window_scaling is off on {}", who(evidence, role))
        }),
    ];
    supports(held, witnesses)
}

fn fix(evidence: &TcpEvidence, role: Role) -> Fix {
    match role {
        Role::Path => advice("find the firewall or proxy that strips TCP options, and allow window scaling"),
        host => sysctl_fix(
            evidence,
            host,
            "enable window scaling".to_owned(),
            "net.ipv4.tcp_window_scaling",
            "1".to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use narrows_model::TcpInfo;
    use super::*;

    /// 64 KiB at 35 ms: 15 Mbit/s at most.
    fn truth() -> Scene {
        Scene {
            goodput_bps: 14.2e6,
            rtt_us: 35_100,
            rwnd: 0.96,
            snd_wnd: 65_535,
            options: TcpInfo::OPT_SACK | TcpInfo::OPT_TIMESTAMPS,
            receiver_facts: with(ordinary_host(), fact("tcp.window_scaling", false, Unit::Flag)),
            ..Scene::default()
        }
    }

    fn of(role: Role, scene: &Scene) -> Assessment {
        assessment(&CAUSE, role, scene, &[])
    }

    #[test]
    fn a_window_of_64_kib_is_named_at_the_end_that_has_the_option_off() {
        let finding = named(&truth(), &[], "window-scaling-off", Place::Server);
        assert_rejects(&finding, "tcp-receive-window", "window scaling is off");
        assert_rejects(&finding, "receiver-app-slow", "the receiving application keeps up");
        assert_eq!(finding.fix.commands[0].run, "sysctl -w net.ipv4.tcp_window_scaling=1");
    }

    #[test]
    fn on_a_short_path_the_hosts_take_most_of_the_round_trip() {
        // 64 KiB each 60 us would be 8.7 Gbit/s; each 300 us under load they are 1.75.
        let short = Scene { goodput_bps: 1.6e9, min_rtt_us: 60, rtt_us: 300, segments: 1_100_000, ..truth() };
        let virtual_path = crate::testing::virtual_hosts(short);
        let receiver_facts = with(virtual_path.receiver_facts.clone(), fact("tcp.window_scaling", false, Unit::Flag));
        named(&Scene { receiver_facts, ..virtual_path }, &[], "window-scaling-off", Place::Server);
    }

    #[test]
    fn an_option_that_both_offer_was_stripped_by_the_path() {
        let scene = Scene { receiver_facts: ordinary_host(), ..truth() };
        assert!(named(&scene, &[], "window-scaling-off", Place::Path).fix.commands.is_empty());
        assert_contradicts(&of(Role::Path, &truth()), "the option was not lost at");
    }

    #[test]
    fn a_connection_with_the_option_has_another_limit() {
        let scene = Scene { options: TcpInfo::OPT_WSCALE, ..truth() };
        assert_contradicts(&of(Role::Receiver, &scene), "has window scaling");
    }

    #[test]
    fn a_window_that_seldom_fills_is_no_matter() {
        let held = |rwnd| of(Role::Receiver, &Scene { rwnd, cwnd: 20, ..truth() });
        assert_contradicts(&held(0.19), "only 19 %");
        assert_supports(&held(0.21));
    }

    #[test]
    fn options_facts_or_times_that_cannot_be_read_leave_it_open() {
        for hidden in [&[Hidden::Options] as &[Hidden], &[Hidden::LimitedTimes]] {
            let scene = Scene { hidden, ..truth() };
            assert_cannot_tell(&of(Role::Receiver, &scene), "");
            none_proven(&scene, &[]);
        }
        let scene = Scene { receiver_facts: without(ordinary_host(), "tcp.window_scaling"), ..truth() };
        assert_cannot_tell(&of(Role::Receiver, &scene), "could not be read");
        none_proven(&scene, &[]);
    }
}
