//! # qdisc-drop
//!
//! The sender's own queueing discipline drops the packets: its queue is too short for the bursts that TCP hands it.
//!
//! **Shows**: `drops` of the discipline grow about as much as TCP retransmits. The path is innocent.
//!
//! **Mistaken for**: loss on the path.
//!
//! **Fix**: a longer queue (`limit`, `txqueuelen`).
//!
//! Source: tc(8), `TCA_STATS2`.

use super::{Cause, Testimony, cannot_tell, counter, denies, no_ceiling, setting_fix};
use crate::evidence::{Evidence, Seat};
use narrows_model::fact::Unit;
use narrows_model::{Fix, Key, Setting, units};

/// See the file's head.
pub const CAUSE: Cause = Cause {
    id: "qdisc-drop",
    about: "the sender's own queue drops packets before they leave the host",
    seats: &[Seat::Sender],
    needs: &[
        Key::new("qdisc.drops", Unit::Count),
        Key::new("nic.name", Unit::Text),
        Key::new("nic.kind", Unit::Text),
        Key::new("nic.speed", Unit::BitsPerSecond),
        Key::new("qdisc.rate", Unit::BitsPerSecond),
        Key::new("qdisc.root.kind", Unit::Text),
    ],
    ceiling: no_ceiling,
    witness: testify,
    look_alikes: &["random-loss", "path-policer", "local-shaper", "path-capacity"],
    fix,
    healthy: false,
    rank: 8,
};

fn testify(evidence: &Evidence<'_>, seat: Seat) -> Testimony {
    let Some(dropped) = evidence.grew(seat, "qdisc.drops") else {
        return cannot_tell("the counters of the sender's queueing discipline could not be read");
    };
    if dropped == 0 {
        return denies("the sender's queueing discipline dropped nothing");
    }
    let Some(loss) = evidence.base.loss_whole else {
        return cannot_tell("the sender's retransmissions could not be read");
    };
    #[allow(clippy::cast_precision_loss)]
    let part = dropped as f64 / loss.lost().max(1) as f64;
    if part < 0.5 {
        return denies(format!(
            "the queueing discipline dropped {dropped} packets, but {} segments were lost",
            loss.lost()
        ));
    }
    // At the rate of the shaper or of the link, drops are how a full queue tells TCP to slow down.
    let rate = evidence.number(seat, "qdisc.rate").or_else(|| super::real_link_bps(evidence, seat));
    if let (Some(rate), Some(mss)) = (rate, evidence.base.mss_bytes) {
        let full = rate * evidence.wire_efficiency(mss);
        if evidence.goodput_bps() >= 0.9 * full {
            return denies(format!(
                "the drops come at the rate of the device or its shaper ({}): its queue is full because it is at \
                 capacity",
                units::bps(rate)
            ));
        }
    }
    Testimony::Says {
        share: part.min(1.0),
        witnesses: vec![
            counter(format!("the sender's queueing discipline dropped {dropped} packets")),
            counter(format!(
                "TCP had to send {} segments again: the drops account for {}",
                loss.lost(),
                units::percent(part.min(1.0))
            )),
        ],
    }
}

fn fix(evidence: &Evidence<'_>, seat: Seat) -> Fix {
    let device = evidence.text(seat, "nic.name").unwrap_or("DEVICE").to_owned();
    let kind = evidence.text(seat, "qdisc.root.kind").unwrap_or("queueing discipline");
    let advice = format!("give {device} a longer queue: replace its {kind} by the default one, or raise the limit");
    setting_fix(evidence, seat, advice, Setting::RootQdisc { device, kind: "default".to_owned() })
}
