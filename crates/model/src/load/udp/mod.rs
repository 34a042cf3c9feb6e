//! UDP streams: the plan of a trial, the same for both ends.

pub mod record;
pub mod report;

use crate::load::kind::{Cap, Carrier, Load, Plan, StreamSpec, TrialOf};
use crate::load::kind::{check_omitted, within, within_if};
use crate::load::tcp::TcpPlan;
use crate::load::udp::record::{UdpEndRecord, UdpReceived, UdpSample, UdpSent, UdpStreamRecord};
use crate::words::place::{Direction, Flow, Place};
use crate::words::units;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The load that a flow is asked to carry, over all its streams.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UdpRate {
    /// Bits of UDP payload a second.
    Bps(u64),
    /// Datagrams a second.
    Pps(f64),
    /// As fast as the sockets take them.
    Max,
}

/// How large the datagrams are: bytes of UDP payload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
pub enum DatagramSizes {
    /// The largest that the path MTU carries in one packet, found when the stream is opened.
    #[default]
    Largest,
    /// These, one after another and again from the start: one size, a list, or a mix.
    Sequence(Vec<u32>),
}

impl DatagramSizes {
    /// The sizes that are given; none of the largest.
    pub fn list(&self) -> &[u32] {
        match self {
            Self::Largest => &[],
            Self::Sequence(list) => list,
        }
    }
}

/// Whether a batch of datagrams is handed over as one (`UDP_SEGMENT`, `UDP_GRO`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "lowercase")]
pub enum Batching {
    /// The engine decides by rate, size and what the kernel can.
    #[default]
    Auto,
    /// Always, where the kernel can.
    On,
    /// Each datagram by itself.
    Off,
}

/// One UDP trial, the same words for both ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UdpPlan {
    /// Streams per flow, 1 to [`UdpPlan::MAX_STREAMS`].
    pub streams: u32,
    /// Which way the data goes.
    pub direction: Direction,
    /// The load of the flow that goes up.
    pub rate_up: UdpRate,
    /// The load of the flow that goes down.
    pub rate_down: UdpRate,
    /// Sizes of the datagrams.
    pub sizes: DatagramSizes,
    /// How long the senders send.
    pub duration_ms: u64,
    /// The first part of the trial that no summary counts.
    pub omit_ms: u64,
    /// How often both ends take a sample.
    pub interval_ms: u64,
    /// The most datagrams that leave a stream back to back; `None`: as few as the rate allows without losing it (about
    /// 100 µs of datagrams, at least one).
    pub burst_datagrams: Option<u32>,
    /// `SO_SNDBUF` asked for; `None`: sized to the rate.
    pub send_buffer_bytes: Option<u32>,
    /// `SO_RCVBUF` asked for; `None`: sized to the rate, as far as `net.core.rmem_max` lets it.
    pub receive_buffer_bytes: Option<u32>,
    /// DSCP of both ends, 0 to 63.
    pub dscp: u8,
    /// Batches on the sending side.
    pub segmentation: Batching,
    /// Batches on the receiving side.
    pub coalescing: Batching,
    /// Whether a datagram above the path MTU may be sent in fragments; otherwise it is refused before the trial.
    pub allow_fragments: bool,
}

impl UdpPlan {
    /// The most streams per flow that an end admits.
    pub const MAX_STREAMS: u32 = 128;
    /// The smallest datagram: the header of the probe.
    pub const MIN_BYTES: u32 = 20;
    /// The largest UDP payload over IPv4.
    pub const MAX_BYTES: u32 = 65_507;
    /// The longest list of sizes.
    pub const MAX_SIZES: usize = 1024;
    /// The longest trial that an end admits.
    pub const LONGEST_MS: u64 = 24 * 3600 * 1000;

    /// The flows of the trial.
    pub fn flows(&self) -> &'static [Flow] {
        self.direction.flows()
    }

    /// The load of a flow.
    pub const fn rate(&self, flow: Flow) -> UdpRate {
        match flow {
            Flow::Up => self.rate_up,
            Flow::Down => self.rate_down,
        }
    }

    /// The time, in seconds, over which the rate of one stream of a flow is taken: from its first to its last departure or
    /// arrival, whichever is longer, and one pacing interval, for the last burst takes its time, too. Where fewer than two
    /// pacing intervals passed it is the planned duration: a few datagrams that leave at once have no rate of their own. A receiver that
    /// stopped counting before the sender stopped has a time of its own.
    pub fn rate_seconds(&self, flow: Flow, sent: Option<&UdpSent>, received: Option<&UdpReceived>) -> f64 {
        let sent_ns = sent.filter(|_| received.is_none_or(|it| it.uncounted == 0)).map(|it| it.active_ns);
        let active_ns = sent_ns.into_iter().chain(received.map(|it| it.active_ns)).max();
        let departures = sent.map(|it| it.datagrams).or(received.map(|it| it.datagrams)).unwrap_or(0);
        let burst = match self.rate(flow) {
            UdpRate::Max => 1,
            UdpRate::Bps(_) | UdpRate::Pps(_) => sent.map_or(1, |it| it.burst_max).max(1),
        };
        match active_ns {
            Some(active_ns @ 1..) if departures / 3 >= burst => {
                let last_burst = (departures - 1) % burst + 1;
                active_ns as f64 / 1e9 * (departures as f64 / (departures - last_burst) as f64)
            }
            _ => self.duration_ms as f64 / 1e3,
        }
    }
}

impl Default for UdpPlan {
    /// One stream up at 1 Mbit/s for ten seconds, the largest unfragmented datagrams.
    fn default() -> Self {
        Self {
            streams: 1,
            direction: Direction::Up,
            rate_up: UdpRate::Bps(1_000_000),
            rate_down: UdpRate::Bps(1_000_000),
            sizes: DatagramSizes::Largest,
            duration_ms: 10_000,
            omit_ms: 0,
            interval_ms: 1_000,
            burst_datagrams: None,
            send_buffer_bytes: None,
            receive_buffer_bytes: None,
            dscp: 0,
            segmentation: Batching::Auto,
            coalescing: Batching::Auto,
            allow_fragments: false,
        }
    }
}

impl Plan for UdpPlan {
    fn check(&self) -> Result<(), String> {
        within("streams", self.streams, 1, Self::MAX_STREAMS)?;
        within("duration in ms", self.duration_ms, 10, Self::LONGEST_MS)?;
        check_omitted(self.omit_ms, self.duration_ms)?;
        within("interval in ms", self.interval_ms, 10, 3_600_000)?;
        for flow in self.flows() {
            match self.rate(*flow) {
                UdpRate::Bps(bps) => within("rate in bit/s", bps, 1, 1 << 50)?,
                UdpRate::Pps(pps) if !(pps.is_finite() && (0.01..=1e12).contains(&pps)) => {
                    return Err(format!("rate in packets/s is {pps}, but must be from 0.01 to 10^12"));
                }
                UdpRate::Pps(_) | UdpRate::Max => {}
            }
        }
        if let DatagramSizes::Sequence(sizes) = &self.sizes {
            within("number of datagram sizes", sizes.len(), 1, Self::MAX_SIZES)?;
            for size in sizes {
                within("datagram size", *size, Self::MIN_BYTES, Self::MAX_BYTES)?;
            }
        }
        within_if("burst in datagrams", self.burst_datagrams, 1, 65_536)?;
        within_if("send buffer", self.send_buffer_bytes, 1024, 1 << 30)?;
        within_if("receive buffer", self.receive_buffer_bytes, 1024, 1 << 30)?;
        within("dscp", self.dscp, 0, 63)
    }

    fn duration_ms(&self) -> Option<u64> {
        Some(self.duration_ms)
    }

    fn streams(&self) -> Vec<StreamSpec> {
        StreamSpec::list(0, self.streams, self.flows(), Carrier::Udp)
    }

    fn tcp_options(&self, _id: u32) -> Option<TcpPlan> {
        None
    }

    fn needs_inventory(&self) -> bool {
        true
    }

    fn omitted_ms(&self) -> u64 {
        self.omit_ms
    }

    fn rate_limit_bps(&self) -> Option<u64> {
        let of = |flow: &Flow| if let UdpRate::Bps(bps) = self.rate(*flow) { Some(bps) } else { None };
        self.flows().iter().map(of).collect::<Option<Vec<_>>>()?.into_iter().max()
    }

    fn times_mut(&mut self) -> Option<[&mut u64; 2]> {
        Some([&mut self.interval_ms, &mut self.omit_ms])
    }

    fn describe(&self) -> String {
        let rate = match self.rate(self.flows().first().copied().unwrap_or(Flow::Up)) {
            UdpRate::Bps(bps) => format!("UDP at {}", units::bps(bps as f64)),
            UdpRate::Pps(pps) => format!("UDP at {pps} datagrams/s"),
            UdpRate::Max => "UDP as fast as possible".to_owned(),
        };
        format!("{rate} {} for {}", self.direction, units::micros(self.duration_ms * 1000))
    }
}

impl Load for UdpPlan {
    type Record = UdpEndRecord;
    type Sample = UdpSample;

    /// UDP has no slow start to leave behind.
    fn for_proof(&self) -> Self {
        const MAX_MS: u64 = 2_000;
        if self.duration_ms <= MAX_MS {
            return self.clone();
        }
        Self { duration_ms: MAX_MS, omit_ms: 0, ..self.clone() }
    }

    fn capped(mut self, cap: &Cap) -> Result<Self, String> {
        cap.check_streams(self.streams)?;
        cap.refuse(self.dscp > 0, "a DSCP")?;
        for rate in [&mut self.rate_up, &mut self.rate_down] {
            *rate = match *rate {
                UdpRate::Bps(bps) => UdpRate::Bps(bps.min(cap.max_bps)),
                // What a number of packets is in bits depends on sizes that may not be known yet.
                UdpRate::Pps(_) => {
                    let whom = if cap.guest { "without a token" } else { "for a token with a rate" };
                    return Err(format!("a rate in packets/s is not allowed: {whom} this server accepts bit/s only"));
                }
                UdpRate::Max => UdpRate::Bps(cap.max_bps),
            };
        }
        Ok(self)
    }

    fn is_within(&self, asked: &Self) -> bool {
        let is_paced = |asked: UdpRate, now: UdpRate| match (asked, now) {
            (UdpRate::Max, _) => true,
            (UdpRate::Bps(asked), UdpRate::Bps(now)) => now <= asked,
            (asked, now) => asked == now,
        };
        is_paced(asked.rate_up, self.rate_up)
            && is_paced(asked.rate_down, self.rate_down)
            && *asked == Self { rate_up: asked.rate_up, rate_down: asked.rate_down, ..self.clone() }
    }

    fn partial_record(place: Place, streams: Vec<(u32, Flow, Vec<UdpSample>)>, remark: String) -> UdpEndRecord {
        let stream = |(id, flow, samples)| UdpStreamRecord {
            id,
            flow,
            method: "unknown".to_owned(),
            samples,
            ..UdpStreamRecord::default()
        };
        UdpEndRecord::partial(place, streams.into_iter().map(stream).collect(), remark)
    }
}

/// A trial of UDP streams.
pub type UdpTrial<'a> = TrialOf<'a, UdpPlan>;

/// By how much the one-way delay of a flow grew over a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DelayGrowth {
    /// Microseconds; of several streams of the one where it grew least.
    pub us: i64,
    /// Whether the receiver compared the least of many delays; else it is the last datagram's beside the first one's, and one late
    /// datagram is enough.
    pub is_robust: bool,
}

impl UdpTrial<'_> {
    /// `None` where an end recorded nothing of it.
    pub fn delay_growth(&self, flow: Flow) -> Option<DelayGrowth> {
        let of =
            |place| self.end(place).map(|end| end.streams.iter().filter(|it| it.flow == flow)).into_iter().flatten();
        let growth = |stream: &UdpStreamRecord| {
            let sent = stream.sent.as_ref().filter(|sent| sent.datagrams > 1)?;
            let other = of(flow.receiver()).find(|other| other.id == stream.id)?;
            let received = other.received.as_ref().filter(|received| received.distinct > 1)?;
            if let Some(growth_ns) = received.delay_growth_ns {
                return Some(DelayGrowth { us: growth_ns / 1000, is_robust: true });
            }
            let us = i64::try_from(received.active_ns / 1000).ok()?.checked_sub_unsigned(sent.active_ns / 1000)?;
            Some(DelayGrowth { us, is_robust: false })
        };
        of(flow.sender()).filter_map(growth).min_by_key(|it| it.us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_plan_is_sound() {
        assert_eq!(UdpPlan::default().check(), Ok(()));
    }

    #[test]
    fn a_bad_plan_names_the_field_and_the_limits() {
        let plan = UdpPlan { sizes: DatagramSizes::Sequence(vec![64, 12]), ..UdpPlan::default() };
        assert_eq!(plan.check(), Err("datagram size is 12, but must be from 20 to 65507".to_owned()));
        let plan = UdpPlan { rate_up: UdpRate::Pps(f64::NAN), ..UdpPlan::default() };
        assert!(plan.check().is_err());
        // The rate of a flow that there is not may be anything.
        let plan = UdpPlan { rate_down: UdpRate::Bps(0), ..UdpPlan::default() };
        assert_eq!(plan.check(), Ok(()));
    }

    #[test]
    fn a_receiver_that_stopped_counting_first_has_its_own_time() {
        let plan = UdpPlan { rate_up: UdpRate::Max, duration_ms: 3_000, ..UdpPlan::default() };
        let sent = UdpSent { datagrams: 3_051, active_ns: 3_050_000_000, ..UdpSent::default() };
        let seconds = |uncounted| {
            let got = UdpReceived { active_ns: 3_000_000_000, uncounted, ..UdpReceived::default() };
            (plan.rate_seconds(Flow::Up, Some(&sent), Some(&got)) * 100.0).round() / 100.0
        };
        assert_eq!([seconds(0), seconds(50)], [3.05, 3.0]);
        assert_eq!((plan.rate_seconds(Flow::Up, Some(&sent), None) * 100.0).round(), 305.0);
    }

    #[test]
    fn a_rate_counts_over_whole_pacing_intervals() {
        let plan = UdpPlan { duration_ms: 1_000, rate_up: UdpRate::Bps(1_000_000), ..UdpPlan::default() };
        let seconds = |datagrams, burst_max, active_ns| {
            plan.rate_seconds(Flow::Up, Some(&UdpSent { datagrams, burst_max, active_ns, ..UdpSent::default() }), None)
        };
        // Four departures 0.1 s apart are those of 0.4 s; so are four bursts of ten.
        assert!((seconds(4, 1, 300_000_000) - 0.4).abs() < 1e-9);
        assert!((seconds(40, 10, 300_000_000) - 0.4).abs() < 1e-9);
        // One datagram, or bursts with a single interval between them, leave the planned duration.
        assert_eq!((seconds(1, 1, 0), seconds(0, 0, 0), seconds(20, 10, 50)), (1.0, 1.0, 1.0));
        assert_eq!(plan.rate_seconds(Flow::Up, None, None), 1.0);
        // As fast as possible: bursts say nothing.
        let plan = UdpPlan { rate_up: UdpRate::Max, ..plan };
        let sent = UdpSent { datagrams: 101, burst_max: 101, active_ns: 100_000, ..UdpSent::default() };
        assert!((plan.rate_seconds(Flow::Up, Some(&sent), None) - 101e-6).abs() < 1e-12);
    }
}
