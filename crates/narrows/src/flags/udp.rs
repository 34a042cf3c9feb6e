//! A UDP load.

use super::load::LoadArgs;
use super::rate::RateArg;
use super::values::rate;
use super::words;
use crate::failure::Failure;
use clap::Args;
use narrows_model::words::figures::{float, pps};
use narrows_model::words::units::{self, micros};
use narrows_model::{Batching, DatagramSizes, Family, Flow, Plan, UdpPlan, UdpRate};

words! {
    /// Whether batches of datagrams pass the kernel as one (GSO, GRO).
    BatchingWord for Batching {
        /// Chosen by rate, size and kernel
        Auto,
        /// Always
        On,
        /// Never
        Off,
    }
}

/// What only a UDP load has. The command says under which heading.
#[derive(Debug, Args)]
pub(crate) struct UdpLoadArgs {
    #[command(flatten)]
    rate: RateArg,
    /// Rate in the down direction, if different
    #[arg(long, value_parser = rate, value_name = "RATE", hide_short_help = true)]
    rate_down: Option<UdpRate>,
    /// Maximum burst, in datagrams
    #[arg(long, value_name = "N", hide_short_help = true)]
    burst: Option<u32>,
    /// Use UDP GSO when sending (UDP_SEGMENT)
    #[arg(long, alias = "segmentation", value_enum, default_value = "auto", hide_short_help = true)]
    gso: BatchingWord,
    /// Use UDP GRO when receiving (UDP_GRO)
    #[arg(long, alias = "coalescing", value_enum, default_value = "auto", hide_short_help = true)]
    gro: BatchingWord,
    /// Allow IP fragmentation of datagrams above the path MTU
    #[arg(long, hide_short_help = true)]
    fragments: bool,
}

impl UdpLoadArgs {
    /// The plan, resolved and checked. The family is known once the other end is.
    pub(crate) fn plan(&self, load: &LoadArgs, family: Family) -> Result<UdpPlan, Failure> {
        let plan = UdpPlan {
            streams: load.streams.streams,
            direction: load.direction.direction(),
            rate_up: self.rate.rate,
            rate_down: self.rate_down.unwrap_or(self.rate.rate),
            sizes: load.size.size.datagrams(family)?,
            duration_ms: load.duration.ms(),
            omit_ms: load.omit.ms().unwrap_or(0),
            interval_ms: load.interval.ms(),
            burst_datagrams: self.burst,
            send_buffer_bytes: load.sockets.send_buffer_bytes()?,
            receive_buffer_bytes: load.sockets.receive_buffer_bytes()?,
            dscp: load.sockets.dscp,
            segmentation: self.gso.into(),
            coalescing: self.gro.into(),
            allow_fragments: self.fragments,
        };
        plan.check().map_err(Failure::usage)?;
        plan.direction.flows().iter().try_for_each(|flow| check_datagrams(&plan, *flow))?;
        Ok(plan)
    }
}

/// One datagram per stream has no rate and no order: at least two must be due. What the largest one is the path says, so that its size
/// counts as the least that every path carries (RFC 8200).
fn check_datagrams(plan: &UdpPlan, flow: Flow) -> Result<(), Failure> {
    const DUE: f64 = 2.0;
    let bytes = match &plan.sizes {
        DatagramSizes::Largest => 1280,
        DatagramSizes::Sequence(sizes) => sizes.iter().copied().min().unwrap_or(1280),
    };
    let (streams, seconds) = (float(plan.streams.into()), float(plan.duration_ms) / 1e3);
    let least_pps = DUE * streams / seconds;
    let least_bps = least_pps * float(u64::from(bytes) * 8);
    let (asked, least) = match plan.rate(flow) {
        UdpRate::Bps(bps) if (bps as f64) < least_bps => (units::bps(bps as f64), units::bps(least_bps.ceil())),
        UdpRate::Pps(asked) if asked < least_pps => (pps(asked), pps(least_pps)),
        _ => return Ok(()),
    };
    let time = micros(plan.duration_ms.saturating_mul(1000));
    Err(Failure::usage(format!(
        "cannot measure at {asked}: in {time} each stream would send less than two datagrams; use --rate {least} or more, a smaller \
         --size or a longer --duration"
    )))
}
