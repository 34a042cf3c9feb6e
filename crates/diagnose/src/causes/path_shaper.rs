//! # path-shaper
//!
//! A shaper on the path holds the rate below what the links carry: a contract, mostly.
//!
//! **Shows**: a first burst passes faster than the steady rate (its bucket), then a queue of fixed depth stands at a
//! constant rate below both links.
//!
//! **Mistaken for**: a slower link on the path (no first burst), a policer (no queue).
//!
//! **Fix**: the contract or the device that shapes.
//!
//! Source: RFC 2475 2.3.3.3; ITU-T Y.1564 on bucket depth.

use super::{Cause, Testimony, advice, cannot_tell, ceiling, counter, denies, link_bps};
use crate::evidence::{Evidence, Seat};
use narrows_model::fact::Unit;
use narrows_model::{Ceiling, Fix, Key, Method, units};

/// See the file's head.
pub const CAUSE: Cause = Cause {
    id: "path-shaper",
    about: "a shaper on the path holds the rate below what the links carry",
    seats: &[Seat::Path],
    needs: &[
        Key::new("nic.kind", Unit::Text),
        Key::new("nic.speed", Unit::BitsPerSecond),
        Key::new("qdisc.rate", Unit::BitsPerSecond),
    ],
    ceiling: roof,
    witness: testify,
    look_alikes: &["path-capacity", "path-policer", "local-shaper", "link-speed"],
    fix,
    healthy: false,
    rank: 5,
};

/// A first burst this much faster than the steady rate is a bucket and not the noise of acknowledgements.
const BURST: f64 = 1.5;

fn burst(evidence: &Evidence<'_>) -> Option<f64> {
    Some(evidence.base.early_peak_bps? / evidence.goodput_bps())
}

fn roof(evidence: &Evidence<'_>, seat: Seat) -> Option<Ceiling> {
    if evidence.queue_stood()? && burst(evidence)? >= BURST {
        let how = "steady goodput behind the shaper's queue".to_owned();
        return ceiling(CAUSE.id, evidence, seat, evidence.goodput_bps(), [0.97, 1.03], Method::Measured, how);
    }
    None
}

fn testify(evidence: &Evidence<'_>, _: Seat) -> Testimony {
    let goodput = evidence.goodput_bps();
    if evidence.number(Seat::Sender, "qdisc.rate").is_some_and(|rate| goodput > 0.85 * rate) {
        return denies("the sender's own shaper explains the rate");
    }
    match evidence.queue_stood() {
        None => return cannot_tell("the RTT could not be read, so a queue on the path cannot be seen"),
        Some(false) => return denies("no queue stood on the path"),
        Some(true) => {}
    }
    if link_bps(evidence).is_some_and(|link| goodput > 0.85 * link) {
        return denies("the goodput is close to what the slower link carries");
    }
    let Some(burst) = burst(evidence) else {
        return cannot_tell("the delivery rate of the first moments is not known");
    };
    if burst < BURST {
        return denies(format!("the first burst was no faster than the steady rate ({burst:.1} times)"));
    }
    Testimony::Says {
        share: 0.9,
        witnesses: vec![
            counter(format!("a first burst passed at {burst:.1} times the steady rate")),
            counter(format!(
                "then a queue of {} stood at a steady {}",
                units::micros(evidence.queue_us().unwrap_or(0.0) as u64),
                units::bps(goodput)
            )),
        ],
    }
}

fn fix(evidence: &Evidence<'_>, _: Seat) -> Fix {
    advice(format!(
        "look into the contract or the device that shapes the path to about {}; no setting of the hosts raises it",
        units::bps(evidence.goodput_bps())
    ))
}
