//! # congestion-control
//!
//! The congestion control in use makes too little of this path: it slows down at each rare loss and takes long to
//! come back.
//!
//! **Shows**: the congestion window holds the sender back while no queue stands and few segments are lost; another
//! congestion control carries clearly more over the same path.
//!
//! **Mistaken for**: random loss (then many segments are lost), a path at capacity (then no other does better).
//!
//! **Fix**: `net.ipv4.tcp_congestion_control`.
//!
//! Source: RFC 9438 section 1; Cardwell et al., *BBR*, ACM Queue 14(5), 2016.

use super::{Cause, Testimony, ask, cannot_tell, ceiling, counter, denies, experiment, sysctl_fix};
use crate::evidence::{Evidence, Seat};
use crate::experiment::Experiment;
use narrows_model::fact::Unit;
use narrows_model::{Ceiling, Fix, Key, Method, units};

/// See the file's head.
pub const CAUSE: Cause = Cause {
    id: "congestion-control",
    about: "the congestion control in use makes too little of this path",
    seats: &[Seat::Sender],
    needs: &[Key::new("tcp.congestion_control", Unit::Text), Key::new("tcp.congestion_control.available", Unit::Text)],
    ceiling: roof,
    witness: testify,
    look_alikes: &["random-loss", "path-capacity", "path-policer", "tcp-receive-window", "tcp-send-buffer"],
    fix,
    healthy: false,
    rank: 4,
};

/// Another congestion control must carry this much more before the one in use is blamed.
const GAIN: f64 = 1.3;

/// The part of the time in which nothing but the congestion window (or recovery) held the sender back.
fn window_share(evidence: &Evidence<'_>) -> Option<f64> {
    let busy = evidence.base.shares?.busy;
    Some((busy - evidence.held_by_window()? - evidence.held_by_buffer()?).max(0.0))
}

fn roof(evidence: &Evidence<'_>, seat: Seat) -> Option<Ceiling> {
    if window_share(evidence)? < 0.5 || evidence.queue_stood()? {
        return None;
    }
    let window = evidence.base.cwnd_bytes?;
    let how = format!(
        "median congestion window {} / RTT {}",
        units::bytes(window as u64),
        units::micros(evidence.min_rtt_us? as u64)
    );
    ceiling(CAUSE.id, evidence, seat, evidence.window_bps(window)?, [0.8, 1.2], Method::Inferred, how)
}

fn testify(evidence: &Evidence<'_>, _: Seat) -> Testimony {
    let (Some(share), Some(queue)) = (window_share(evidence), evidence.queue_stood()) else {
        return cannot_tell("the sender's kernel does not say what held it back");
    };
    if share < 0.5 {
        return denies(format!(
            "the congestion window held the sender back only {} of the time",
            units::percent(share)
        ));
    }
    if queue {
        return denies("the congestion window is large enough to keep a queue on the path");
    }
    let in_use = evidence.base.congestion_control.as_deref().unwrap_or("the one in use");
    let Some(other) = evidence.experiments.get(Experiment::OtherCongestionControl.id()) else {
        return ask(
            Experiment::OtherCongestionControl,
            "the congestion window holds the sender back; whether another congestion control does better was not \
             measured",
        );
    };
    let gain = other.goodput_bps / evidence.goodput_bps();
    if gain < GAIN {
        return denies(format!("BBR carries no more ({})", units::bps(other.goodput_bps)));
    }
    Testimony::Says {
        share: share * 0.8,
        witnesses: vec![
            counter(format!(
                "the congestion window held the sender back {} of the time while no queue stood on the path",
                units::percent(share)
            )),
            experiment(format!("BBR carries {}, {gain:.1} times what {in_use} does", units::bps(other.goodput_bps))),
        ],
    }
}

fn fix(evidence: &Evidence<'_>, seat: Seat) -> Fix {
    sysctl_fix(
        evidence,
        seat,
        "use BBR (and fq as the queueing discipline where the kernel has it)".to_owned(),
        "net.ipv4.tcp_congestion_control",
        "bbr".to_owned(),
    )
}
