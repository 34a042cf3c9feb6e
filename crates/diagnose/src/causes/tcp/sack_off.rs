//! # sack-off
//!
//! The connection has no selective acknowledgements, so several losses in a window take one round trip each.
//!
//! **Shows**: the option is missing in the connection, segments are lost, and the sender is in recovery
//! (`TCPRenoRecovery` grows where `TCPSackRecovery` would).
//!
//! **Mistaken for**: the loss itself. Without loss it costs nothing.
//!
//! **Fix**: `net.ipv4.tcp_sack=1` on the host that has it off.
//!
//! Source: RFC 2018, RFC 6675.

use crate::causes::shared::rule::*;

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "sack-off",
    about: "the connection has no selective acknowledgements, so loss recovery is slow",
    roles: &[Role::Sender, Role::Receiver, Role::Path],
    needs: &[keys::TCP_SACK, keys::NETSTAT_TCP_EXT_TCP_RENO_RECOVERY],
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["random-loss", "congestion-control", "path-policer", "path-capacity"],
    fix,
    rank: 9,
    ..Cause::COMMON
};

fn blamed(evidence: &TcpEvidence, role: Role) -> Option<bool> {
    match role {
        Role::Path => Some(evidence.flag(Role::Sender, keys::TCP_SACK)? && evidence.flag(Role::Receiver, keys::TCP_SACK)?),
        host => evidence.flag(host, keys::TCP_SACK).map(|on| !on),
    }
}

fn assess(evidence: &TcpEvidence, role: Role) -> Ruling {
    if known(evidence.base.sack, "the kernel does not report the options of the connection")? {
        return Err(contradicts("the connection has selective acknowledgements"));
    }
    if !known(blamed(evidence, role), "tcp_sack could not be read")? {
        return Err(contradicts(format!("the option was not lost at {}", who(evidence, role))));
    }
    let (Some(shares), Some(loss)) = (evidence.base.shares, evidence.base.loss_whole) else {
        return Err(cannot_tell("the sender's kernel does not report its time in loss recovery"));
    };
    if loss.lost() == 0 {
        return Err(contradicts("no loss, so the option does not matter"));
    }
    if shares.recovery < 0.2 {
        return Err(contradicts(format!("the sender was in recovery only {} of the time", units::percent(shares.recovery))));
    }
    let mut witnesses = vec![
        parameter(if role == Role::Path {
            "both hosts offer selective acknowledgements, but the connection has none: the path strips the option".to_owned()
        } else {
            format!("tcp_sack is off on {}", who(evidence, role))
        }),
        counter(format!(
            "the sender recovered {} lost segments in {} of the time",
            loss.lost(),
            units::percent(shares.recovery)
        )),
    ];
    if let Some(recoveries) = evidence.grew(Role::Sender, keys::NETSTAT_TCP_EXT_TCP_RENO_RECOVERY).filter(|n| *n > 0) {
        witnesses
            .push(counter(format!("{recoveries} recoveries without selective acknowledgements (TCPRenoRecovery)")));
    }
    supports(0.92, witnesses)
}

fn fix(evidence: &TcpEvidence, role: Role) -> Fix {
    match role {
        Role::Path => {
            advice("find the firewall or proxy that strips TCP options, and allow selective acknowledgements")
        }
        host => sysctl_fix(
            evidence,
            host,
            "enable selective acknowledgements".to_owned(),
            "net.ipv4.tcp_sack",
            "1".to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use narrows_model::TcpInfo;
    use super::*;

    /// The receiver has the option off on a path that loses now and then.
    fn truth() -> Scene {
        Scene {
            goodput_bps: 50e6,
            rtt_us: 35_100,
            cwnd: 150,
            lost: 300,
            segments: 35_000,
            recovery: 0.5,
            options: TcpInfo::OPT_TIMESTAMPS | TcpInfo::OPT_WSCALE,
            receiver_facts: with(ordinary_host(), fact("tcp.sack", false, Unit::Flag)),
            sender_counts: vec![("netstat.TcpExt.TCPRenoRecovery", 12)],
            ..Scene::default()
        }
    }

    fn of(role: Role, scene: &Scene) -> Assessment {
        assessment(&CAUSE, role, scene, &[])
    }

    #[test]
    fn long_repairs_without_the_option_are_named_at_the_end_that_has_it_off() {
        let finding = named(&truth(), &[], "sack-off", Place::Server);
        assert_eq!(finding.fix.commands[0].run, "sysctl -w net.ipv4.tcp_sack=1");
        assert_eq!(finding.witnesses.len(), 3, "{finding:#?}");
        assert_contradicts(&of(Role::Sender, &truth()), "the option was not lost at");
    }

    #[test]
    fn an_option_that_both_offer_was_stripped_by_the_path() {
        let scene = Scene { receiver_facts: ordinary_host(), ..truth() };
        let finding = named(&scene, &[], "sack-off", Place::Path);
        assert!(finding.fix.commands.is_empty());
    }

    #[test]
    fn it_is_missed_only_where_repairs_take_long() {
        assert_contradicts(&of(Role::Receiver, &Scene { recovery: 0.18, ..truth() }), "the sender was in recovery only");
        assert_supports(&of(Role::Receiver, &Scene { recovery: 0.22, ..truth() }));
        assert_contradicts(&of(Role::Receiver, &Scene { lost: 0, ..truth() }), "no loss, so the option does not matter");
    }

    #[test]
    fn a_lossy_path_with_the_option_is_not_at_fault_here() {
        let scene = Scene { options: TcpInfo::OPT_SACK, ..truth() };
        assert_contradicts(&of(Role::Receiver, &scene), "has selective acknowledgements");
    }

    #[test]
    fn options_facts_or_times_that_cannot_be_read_leave_it_open() {
        for hidden in [&[Hidden::Options] as &[Hidden], &[Hidden::Segments], &[Hidden::LimitedTimes]] {
            let scene = Scene { hidden, ..truth() };
            assert_cannot_tell(&of(Role::Receiver, &scene), "");
            none_proven(&scene, &[]);
        }
        let scene = Scene { receiver_facts: without(ordinary_host(), "tcp.sack"), ..truth() };
        assert_cannot_tell(&of(Role::Receiver, &scene), "tcp_sack could not be read");
        assert_cannot_tell(&of(Role::Path, &scene), "tcp_sack could not be read");
        none_proven(&scene, &[]);
    }
}
