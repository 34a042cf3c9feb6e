//! # link-speed
//!
//! A host's link runs more slowly than it could, or than the other end's, and the goodput lies at it.
//!
//! **Shows**: the negotiated speed lies below the fastest supported one (or, below 1 Gbit/s and where that is not known,
//! the peer's), and the goodput is that speed less headers: 94 % of it with full Ethernet frames.
//!
//! **Mistaken for**: the path's capacity. A link at its best speed is no fault.
//!
//! **Fix**: cable, switch port, autonegotiation on both sides.
//!
//! Source: ethtool(8), `ETHTOOL_GLINKSETTINGS`.

use super::{Cause, Testimony, advice, cannot_tell, ceiling, counter, denies, parameter, real_link_bps};
use crate::evidence::{Evidence, Seat};
use narrows_model::fact::Unit;
use narrows_model::{Ceiling, Command, Fix, Key, Method, units};

/// See the file's head.
pub const CAUSE: Cause = Cause {
    id: "link-speed",
    about: "a host's link runs more slowly than it could",
    seats: &[Seat::Sender, Seat::Receiver],
    needs: &[
        Key::new("nic.speed", Unit::BitsPerSecond),
        Key::new("nic.speed.max", Unit::BitsPerSecond),
        Key::new("nic.kind", Unit::Text),
        Key::new("nic.name", Unit::Text),
    ],
    ceiling: roof,
    witness: testify,
    look_alikes: &["path-capacity", "path-shaper", "pcie-width", "local-shaper"],
    fix,
    healthy: false,
    rank: 6,
};

fn roof(evidence: &Evidence<'_>, seat: Seat) -> Option<Ceiling> {
    let speed = real_link_bps(evidence, seat)?;
    let mss = evidence.base.mss_bytes?;
    let efficiency = evidence.wire_efficiency(mss);
    let how = format!("link of {} x {efficiency:.3} payload with {mss:.0} bytes a segment", units::bps(speed));
    ceiling(CAUSE.id, evidence, seat, speed * efficiency, [0.95, 1.01], Method::Computed, how)
}

/// Whether a card could run faster its driver says, mostly. Where it does not, a card below this speed beside a faster peer is
/// one that negotiated badly; from this speed on it is as likely just another card: 1 against 10 Gbit/s is no fault.
const ORDINARY_BPS: f64 = 1e9;

fn testify(evidence: &Evidence<'_>, seat: Seat) -> Testimony {
    let Some(speed) = real_link_bps(evidence, seat) else {
        return cannot_tell(format!("the device of {} reports no link speed", super::who(evidence, seat)));
    };
    let other = if seat == Seat::Sender { Seat::Receiver } else { Seat::Sender };
    let slower_than = match (evidence.number(seat, "nic.speed.max"), real_link_bps(evidence, other)) {
        (Some(max), _) if speed < 0.99 * max => format!("its link supports {}", units::bps(max)),
        (Some(_), _) => return denies(format!("the link of {} runs at its best speed", super::who(evidence, seat))),
        (None, Some(peer)) if speed < ORDINARY_BPS && speed < 0.99 * peer => {
            format!("the other end's link runs at {}", units::bps(peer))
        }
        (None, Some(peer)) if speed < 0.99 * peer => {
            return cannot_tell("the fastest supported speed is not known, and hosts may well have different cards");
        }
        (None, Some(_)) => {
            return denies(format!("the link of {} is no slower than the other end's", super::who(evidence, seat)));
        }
        (None, None) => return cannot_tell("neither the fastest supported speed nor the other end's speed is known"),
    };
    let Some(roof) = roof(evidence, seat) else { return cannot_tell("the segment size could not be read") };
    if !crate::roofline::sits_at(&roof, evidence.goodput_bps()) {
        return denies(format!("the link would carry {}", units::bps(roof.bps)));
    }
    let mut witnesses = vec![parameter(format!(
        "the link of {} runs at {}, though {slower_than}",
        super::who(evidence, seat),
        units::bps(speed)
    ))];
    if let Some(queue) = evidence.queue_us().filter(|_| evidence.queue_stood() == Some(true)) {
        witnesses.push(counter(format!("a queue of {} stood in front of it", units::micros(queue as u64))));
    }
    Testimony::Says { share: 0.95, witnesses }
}

fn fix(evidence: &Evidence<'_>, seat: Seat) -> Fix {
    let device = evidence.text(seat, "nic.name").unwrap_or("DEVICE");
    Fix {
        commands: vec![Command { at: evidence.place(seat), run: format!("ethtool -s {device} autoneg on") }],
        ..advice("check the cable and the switch port, and let both sides negotiate the speed")
    }
}
