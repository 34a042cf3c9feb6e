//! # local-shaper
//!
//! A queueing discipline on the sender's own device ends the rate: `tbf`, `htb`, `cake`, `fq maxrate`.
//!
//! **Shows**: the discipline has a configured rate, the goodput lies at it, and its `overlimits` grow.
//!
//! **Mistaken for**: a shaper of the path; the send buffer, since the local queue holds the data.
//!
//! **Fix**: remove or raise it.
//!
//! Source: tc(8), `TCA_STATS2`.

use super::{Cause, Testimony, cannot_tell, ceiling, counter, denies, parameter, setting_fix};
use crate::evidence::{Evidence, Seat};
use narrows_model::fact::Unit;
use narrows_model::{Ceiling, Fix, Key, Method, Setting, units};

/// See the file's head.
pub const CAUSE: Cause = Cause {
    id: "local-shaper",
    about: "a queueing discipline on the sender's own device limits the rate",
    seats: &[Seat::Sender],
    needs: &[
        Key::new("qdisc.rate", Unit::BitsPerSecond),
        Key::new("qdisc.overlimits", Unit::Count),
        Key::new("nic.name", Unit::Text),
        Key::new("qdisc.root.kind", Unit::Text),
    ],
    ceiling: roof,
    witness: testify,
    look_alikes: &["path-shaper", "tcp-send-buffer", "qdisc-drop", "path-capacity"],
    fix,
    healthy: false,
    rank: 8,
};

fn roof(evidence: &Evidence<'_>, seat: Seat) -> Option<Ceiling> {
    let rate = evidence.number(seat, "qdisc.rate")?;
    let mss = evidence.base.mss_bytes?;
    // The discipline counts IP packets with 14 bytes of Ethernet header, or without on a device that has none.
    let efficiency = mss / (mss + f64::from(evidence.segment_header_bytes()) + 14.0);
    let how = format!("configured rate {} x {efficiency:.3} payload", units::bps(rate));
    ceiling(CAUSE.id, evidence, seat, rate * efficiency, [0.93, 1.03], Method::Computed, how)
}

fn testify(evidence: &Evidence<'_>, seat: Seat) -> Testimony {
    let Some(rate) = evidence.number(seat, "qdisc.rate") else {
        return match evidence.text(seat, "qdisc.root.kind") {
            Some(kind) => denies(format!("the sender's queueing discipline ({kind}) has no rate")),
            None => cannot_tell("the sender's queueing disciplines could not be read"),
        };
    };
    match evidence.grew(seat, "qdisc.overlimits") {
        None => cannot_tell("the counters of the sender's queueing discipline could not be read"),
        Some(0) => denies(format!("the shaper of {} never had to hold a packet back", units::bps(rate))),
        Some(times) => Testimony::Says {
            share: 0.9,
            witnesses: vec![
                counter(format!("the sender's queueing discipline held packets back {times} times (overlimits)")),
                parameter(format!("it is configured to {}", units::bps(rate))),
            ],
        },
    }
}

fn fix(evidence: &Evidence<'_>, seat: Seat) -> Fix {
    let device = evidence.text(seat, "nic.name").unwrap_or("DEVICE").to_owned();
    let kind = evidence.text(seat, "qdisc.root.kind").unwrap_or("shaper");
    let advice = format!("remove the {kind} shaper from {device}, or raise its rate if it is there on purpose");
    setting_fix(evidence, seat, advice, Setting::RootQdisc { device, kind: "default".to_owned() })
}
