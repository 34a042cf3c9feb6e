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
use narrows_model::fact::Unit;
use narrows_model::{Fix, Key, units};

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
