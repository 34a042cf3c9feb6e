//! # pcie-width
//!
//! The card sits in a slot, or behind a bridge, with fewer or slower PCIe lanes than it could use.
//!
//! **Shows**: the current width or speed of the card or of any parent lies below the card's own maximum, and the
//! goodput plateaus near what those lanes carry, both ways alike.
//!
//! **Mistaken for**: the link's speed, a full core.
//!
//! **Fix**: another slot.
//!
//! Source: `/sys/bus/pci/devices/*/{current,max}_link_{speed,width}`.

use super::{Cause, Testimony, advice, ask, cannot_tell, ceiling, denies, experiment, parameter};
use crate::evidence::{Evidence, Seat};
use crate::experiment::Experiment;
use narrows_model::fact::Unit;
use narrows_model::{Ceiling, Fix, Key, Method, units};

/// See the file's head.
pub const CAUSE: Cause = Cause {
    id: "pcie-width",
    about: "the network card has fewer or slower PCIe lanes than it needs",
    seats: &[Seat::Sender, Seat::Receiver],
    needs: &[
        Key::new("pcie.bandwidth", Unit::BitsPerSecond),
        Key::new("pcie.bandwidth.max", Unit::BitsPerSecond),
        Key::new("pcie.width", Unit::Lanes),
        Key::new("pcie.width.max", Unit::Lanes),
        Key::new("nic.kind", Unit::Text),
        Key::new("nic.speed", Unit::BitsPerSecond),
    ],
    ceiling: roof,
    witness: testify,
    look_alikes: &["link-speed", "app-core-saturated", "path-capacity"],
    fix,
    healthy: false,
    rank: 7,
};

/// Payload that a PCIe link carries of its bit rate after line coding: headers of transactions, flow control and
/// descriptors take the rest; old chipsets with payloads of 128 bytes and one read in flight were seen to reach less
/// than half.
const EFFICIENCY: [f64; 3] = [0.45, 0.8, 0.93];

fn roof(evidence: &Evidence<'_>, seat: Seat) -> Option<Ceiling> {
    let bandwidth = evidence.number(seat, "pcie.bandwidth")?;
    let [low, likely, high] = EFFICIENCY;
    let how = format!("PCIe carries {} after line coding x {likely} for its protocol", units::bps(bandwidth));
    ceiling(CAUSE.id, evidence, seat, bandwidth * likely, [low / likely, high / likely], Method::Computed, how)
}

fn testify(evidence: &Evidence<'_>, seat: Seat) -> Testimony {
    let (Some(bandwidth), Some(max)) =
        (evidence.number(seat, "pcie.bandwidth"), evidence.number(seat, "pcie.bandwidth.max"))
    else {
        return cannot_tell(format!(
            "the device of {} is no PCIe card, or its lanes could not be read",
            super::who(evidence, seat)
        ));
    };
    if bandwidth >= 0.99 * max {
        return denies(format!("the card of {} has all its lanes at full speed", super::who(evidence, seat)));
    }
    if super::link_bps(evidence).is_some_and(|link| link < 0.5 * bandwidth) {
        return denies("the link is much slower than the lanes");
    }
    let slot = parameter(format!(
        "the slot of {} carries {}{} and the card could use {}",
        super::who(evidence, seat),
        units::bps(bandwidth),
        lanes(evidence, seat),
        units::bps(max)
    ));
    let Some(other) = evidence.experiments.get(Experiment::OtherDirection.id()) else {
        return ask(
            Experiment::OtherDirection,
            "a PCIe limit shows in both directions; the other one was not measured",
        );
    };
    let ratio = other.goodput_bps / evidence.goodput_bps();
    if !(0.8..=1.25).contains(&ratio) {
        return denies(format!("the other direction carries {}, a different plateau", units::bps(other.goodput_bps)));
    }
    Testimony::Says {
        share: 0.8,
        witnesses: vec![
            slot,
            experiment(format!("both directions end at the same plateau ({})", units::bps(other.goodput_bps))),
        ],
    }
}

/// The card's lanes, where some of them are missing; a bridge on the way may be what is narrow.
fn lanes(evidence: &Evidence<'_>, seat: Seat) -> String {
    match (evidence.number(seat, "pcie.width"), evidence.number(seat, "pcie.width.max")) {
        (Some(now), Some(max)) if now < max => format!(" on {now} of {max} lanes"),
        _ => String::new(),
    }
}

fn fix(_: &Evidence<'_>, _: Seat) -> Fix {
    advice("move the card to a slot with all the lanes that it supports; check the slot's wiring and the BIOS setting")
}
