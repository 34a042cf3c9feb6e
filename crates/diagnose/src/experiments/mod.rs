//! Experiments: where two hypotheses are left, the program does not guess but measures what separates them.

use crate::evidence::paced::{self, Part};
use crate::evidence::tcp::Evidence;
use crate::role::Role;
use narrows_model::UdpPlan;
use narrows_model::load::tcp::{Application, Limit, TcpPlan, ZeroCopy};
pub mod udp;

use serde::{Deserialize, Serialize};

/// One more trial, with one thing changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Experiment {
    /// Four times the streams: a limit of each connection multiplies, a limit of the path does not.
    MoreStreams,
    /// The same load the other way: tells a limit of both ways from a limit of one.
    OtherDirection,
    /// The kernel tunes the buffers that the application had fixed.
    LargerBuffer,
    /// A congestion control that does not take loss for a sign of a full queue.
    OtherCongestionControl,
    /// Paced at half the goodput: loss that a full queue or a policer makes ends, random loss stays.
    PacedHalf,
    /// UDP below, at and above the goodput, evenly spaced and in bursts ([`crate::evidence::paced`]): several trials, none of TCP.
    PacedUdp,
    /// Both ends keep their cores awake, so that the kernel's tick sees what interrupts take.
    AwakeCores,
    /// Both ends of the engine on the client alone: what the tester itself can do.
    Loopback,
}

impl Experiment {
    /// Every experiment.
    pub const ALL: [Self; 8] = [
        Self::MoreStreams,
        Self::OtherDirection,
        Self::LargerBuffer,
        Self::OtherCongestionControl,
        Self::PacedHalf,
        Self::PacedUdp,
        Self::AwakeCores,
        Self::Loopback,
    ];

    /// The public id.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::MoreStreams => "more-streams",
            Self::OtherDirection => "other-direction",
            Self::LargerBuffer => "larger-buffer",
            Self::OtherCongestionControl => "other-congestion-control",
            Self::PacedHalf => "paced-half",
            Self::PacedUdp => "paced-udp",
            Self::AwakeCores => "awake-cores",
            Self::Loopback => "loopback",
        }
    }

    /// The experiment of that id.
    #[must_use]
    pub fn by_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|experiment| experiment.id() == id)
    }

    /// What is done, in a sentence.
    #[must_use]
    pub const fn what(self) -> &'static str {
        match self {
            Self::MoreStreams => "the same load with four times the streams",
            Self::OtherDirection => "the same load in the other direction",
            Self::LargerBuffer => "the same load with buffers that the kernel tunes",
            Self::OtherCongestionControl => "the same load under BBR, which does not slow down at each loss",
            Self::PacedHalf => "the same load paced at half of the measured goodput",
            Self::PacedUdp => "UDP below and above the measured goodput, evenly spaced and in bursts",
            Self::AwakeCores => {
                "the same load while both ends keep their cores awake, so that the kernel sees what interrupts take"
            }
            Self::Loopback => "both ends of the engine on the client alone",
        }
    }

    /// The UDP trials of [`Experiment::PacedUdp`] that were not made yet, in their order, with the ids that they shall have in
    /// the run; empty for other experiments.
    #[must_use]
    pub fn udp_plans(self, evidence: &Evidence<'_>) -> Vec<(&'static str, UdpPlan)> {
        if self != Self::PacedUdp {
            return Vec::new();
        }
        let wanted: Vec<Part> = evidence.paced_udp.wanted().collect();
        let plans = paced::plans(evidence.goodput_bps(), evidence.flow).into_iter();
        plans.filter(|(part, _)| wanted.contains(part)).map(|(part, plan)| (part.id(), plan)).collect()
    }

    /// The plan of the trial; `None` where it is not possible on these hosts or would change nothing.
    #[must_use]
    pub fn plan(self, evidence: &Evidence<'_>) -> Option<TcpPlan> {
        let load = &evidence.load;
        let short = TcpPlan { limit: Limit::DurationMs(3_000), omit_ms: 1_000, ..load.clone() };
        match self {
            Self::MoreStreams => {
                let streams = load.streams.saturating_mul(4).min(TcpPlan::MOST_STREAMS);
                (streams > load.streams).then_some(TcpPlan { streams, ..short })
            }
            Self::OtherDirection => Some(TcpPlan { direction: evidence.flow.reversed().direction(), ..short }),
            Self::LargerBuffer => (load.send_buffer_bytes.is_some() || load.receive_buffer_bytes.is_some())
                .then_some(TcpPlan { send_buffer_bytes: None, receive_buffer_bytes: None, ..short }),
            Self::OtherCongestionControl => {
                let available = evidence.host(Role::Sender)?.get("tcp.congestion_control.available")?;
                let has_bbr = available.value.to_string().split_whitespace().any(|name| name == "bbr");
                let in_use = evidence.base.congestion_control.as_deref() == Some("bbr");
                (has_bbr && !in_use).then_some(TcpPlan { congestion_control: Some("bbr".into()), ..short })
            }
            Self::PacedHalf => {
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                let half = (evidence.goodput_bps() / 2.0 / f64::from(load.streams)) as u64;
                // The first second may still drain what the pacing rate cannot know of; it is short all the same.
                (half >= 80_000).then_some(TcpPlan { pacing_bps: Some(half), omit_ms: 500, ..short })
            }
            // Its trials are of UDP: `udp_plans`.
            Self::PacedUdp => None,
            Self::AwakeCores => Some(TcpPlan { awake: true, ..short }),
            Self::Loopback => Some(TcpPlan {
                streams: load.streams,
                zero_copy: ZeroCopy::Auto,
                application: Application::default(),
                limit: Limit::DurationMs(1_000),
                omit_ms: 200,
                interval_ms: load.interval_ms,
                message_bytes: load.message_bytes,
                ..TcpPlan::default()
            }),
        }
    }
}
