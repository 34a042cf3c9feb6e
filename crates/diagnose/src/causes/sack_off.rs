//! # sack-off
//!
//! The connection was made without selective acknowledgements, so a window with several losses takes a round trip for
//! each.
//!
//! **Shows**: the option is missing in the connection, segments are lost, and the sender spends its time repairing
//! (`TCPRenoRecovery` grows where `TCPSackRecovery` would).
//!
//! **Mistaken for**: the loss itself. Without loss it costs nothing.
//!
//! **Fix**: `net.ipv4.tcp_sack=1` on the end that has it off.
//!
//! Source: RFC 2018, RFC 6675.

use super::{Cause, Testimony, advice, cannot_tell, counter, denies, no_ceiling, parameter, sysctl_fix};
use crate::evidence::{Evidence, Seat};
use narrows_model::host::fact::Unit;
use narrows_model::{Fix, Key, words::units};

/// See the file's head.
pub const CAUSE: Cause = Cause {
    id: "sack-off",
    about: "the connection has no selective acknowledgements, so repairing loss takes long",
    seats: &[Seat::Sender, Seat::Receiver, Seat::Path],
    needs: &[Key::new("tcp.sack", Unit::Flag), Key::new("netstat.TcpExt.TCPRenoRecovery", Unit::Count)],
    ceiling: no_ceiling,
    witness: testify,
    look_alikes: &["random-loss", "congestion-control", "path-policer", "path-capacity"],
    fix,
    healthy: false,
    rank: 9,
};

fn blamed(evidence: &Evidence<'_>, seat: Seat) -> Option<bool> {
    match seat {
        Seat::Path => Some(evidence.flag(Seat::Sender, "tcp.sack")? && evidence.flag(Seat::Receiver, "tcp.sack")?),
        host => evidence.flag(host, "tcp.sack").map(|on| !on),
    }
}

fn testify(evidence: &Evidence<'_>, seat: Seat) -> Testimony {
    match evidence.base.sack {
        None => return cannot_tell("the kernel does not say which options the connection has"),
        Some(true) => return denies("the connection has selective acknowledgements"),
        Some(false) => {}
    }
    match blamed(evidence, seat) {
        None => return cannot_tell("tcp_sack could not be read"),
        Some(false) => return denies(format!("{} is not where the option was lost", super::who(evidence, seat))),
        Some(true) => {}
    }
    let (Some(shares), Some(loss)) = (evidence.base.shares, evidence.base.loss_whole) else {
        return cannot_tell("the sender's kernel does not say how long it repaired loss");
    };
    if loss.lost() == 0 {
        return denies("nothing was lost, so the option is not missed");
    }
    if shares.recovery < 0.2 {
        return denies(format!("the sender repaired loss only {} of the time", units::percent(shares.recovery)));
    }
    let mut witnesses = vec![
        parameter(if seat == Seat::Path {
            "both hosts offer selective acknowledgements, yet the connection has none: something on the path strips \
             the option"
                .to_owned()
        } else {
            format!("tcp_sack is off on {}", super::who(evidence, seat))
        }),
        counter(format!(
            "the sender repaired {} lost segments for {} of the time",
            loss.lost(),
            units::percent(shares.recovery)
        )),
    ];
    if let Some(recoveries) = evidence.grew(Seat::Sender, "netstat.TcpExt.TCPRenoRecovery").filter(|n| *n > 0) {
        witnesses
            .push(counter(format!("{recoveries} recoveries without selective acknowledgements (TCPRenoRecovery)")));
    }
    Testimony::Says { share: 0.92, witnesses }
}

fn fix(evidence: &Evidence<'_>, seat: Seat) -> Fix {
    match seat {
        Seat::Path => {
            advice("find the firewall or proxy that strips TCP options, and let selective acknowledgements pass")
        }
        host => sysctl_fix(
            evidence,
            host,
            "turn selective acknowledgements on".to_owned(),
            "net.ipv4.tcp_sack",
            "1".to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{
        Hidden, Scene, assert_cannot_tell, assert_denies, assert_says, fact, named, none_proven, ordinary_host,
        testimony, with, without,
    };
    use narrows_model::{Place, TcpInfo};

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

    fn of(seat: Seat, scene: &Scene) -> Testimony {
        testimony(&CAUSE, seat, scene, &[])
    }

    #[test]
    fn long_repairs_without_the_option_are_named_at_the_end_that_has_it_off() {
        let finding = named(&truth(), &[], "sack-off", Place::Server);
        assert_eq!(finding.fix.commands[0].run, "sysctl -w net.ipv4.tcp_sack=1");
        assert_eq!(finding.witnesses.len(), 3, "{finding:#?}");
        assert_denies(&of(Seat::Sender, &truth()), "not where the option was lost");
    }

    #[test]
    fn an_option_that_both_offer_was_stripped_by_the_path() {
        let scene = Scene { receiver_facts: ordinary_host(), ..truth() };
        let finding = named(&scene, &[], "sack-off", Place::Path);
        assert!(finding.fix.commands.is_empty());
    }

    #[test]
    fn it_is_missed_only_where_repairs_take_long() {
        assert_denies(&of(Seat::Receiver, &Scene { recovery: 0.18, ..truth() }), "repaired loss only");
        assert_says(&of(Seat::Receiver, &Scene { recovery: 0.22, ..truth() }));
        assert_denies(&of(Seat::Receiver, &Scene { lost: 0, ..truth() }), "not missed");
    }

    #[test]
    fn a_lossy_path_with_the_option_is_not_at_fault_here() {
        let scene = Scene { options: TcpInfo::OPT_SACK, ..truth() };
        assert_denies(&of(Seat::Receiver, &scene), "has selective acknowledgements");
    }

    #[test]
    fn options_facts_or_times_that_cannot_be_read_leave_it_open() {
        for hidden in [&[Hidden::Options] as &[Hidden], &[Hidden::Segments], &[Hidden::Chronographs]] {
            let scene = Scene { hidden, ..truth() };
            assert_cannot_tell(&of(Seat::Receiver, &scene), "");
            none_proven(&scene, &[]);
        }
        let scene = Scene { receiver_facts: without(ordinary_host(), "tcp.sack"), ..truth() };
        assert_cannot_tell(&of(Seat::Receiver, &scene), "tcp_sack could not be read");
        assert_cannot_tell(&of(Seat::Path, &scene), "tcp_sack could not be read");
        none_proven(&scene, &[]);
    }
}
