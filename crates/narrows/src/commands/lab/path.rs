//! Flags of an emulated path.

use crate::failure::Failure;
use crate::flags::values::{bps, duration, ratio, size};
use crate::flags::{DirectionArg, LinkSpeedArg, PathRateArg, SeedArg};
use clap::{Args, ValueEnum};
use narrows_model::Direction;
use narrows_model::lab::Impairment;
use narrows_runner::emulated::{LabSpec, Topology};
use std::time::Duration;

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Shape {
    /// client - path - server
    Pair,
    /// client - path - router - server, forwarded by the kernel
    Chain,
    /// tester - router - tester: a DUT between the ports of its tester
    Dut,
}

/// A path.
#[derive(Debug, Args)]
#[command(
    mut_arg("direction", |it| it.default_value("both").help("Direction that the path flags apply to")),
    mut_arg("link_speed", |it| it.help("Link speed that the hosts' interfaces report (default: 10G)"))
)]
pub(super) struct PathArgs {
    /// Topology of the lab
    #[arg(long, value_enum, default_value = "pair")]
    topology: Shape,
    /// With --topology dut: add a switch before the DUT
    #[arg(long)]
    switch: bool,
    /// Run SNMP agents on router and switch (needs snmpd)
    #[arg(long)]
    snmpd: bool,
    #[command(flatten)]
    direction: DirectionArg,
    #[command(flatten)]
    rate: PathRateArg,
    /// Overhead added to the IP length of each packet, in bytes
    #[arg(long, default_value_t = 38, value_name = "BYTES", hide_short_help = true)]
    overhead: u32,
    /// Round-trip time, half of it in each direction
    #[arg(long, value_parser = duration, value_name = "TIME", conflicts_with = "delay")]
    rtt: Option<Duration>,
    /// One-way delay
    #[arg(long, value_parser = duration, value_name = "TIME")]
    delay: Option<Duration>,
    /// Maximum random addition to the delay
    #[arg(long, value_parser = duration, value_name = "TIME", hide_short_help = true)]
    jitter: Option<Duration>,
    /// Random loss, as a share of packets
    #[arg(long, value_parser = ratio, value_name = "SHARE")]
    loss: Option<f64>,
    /// Burst loss (Gilbert-Elliott): probabilities of entering and leaving the bad state, and loss in it
    #[arg(long, value_parser = ratio, num_args = 3, value_names = ["ENTER", "LEAVE", "LOSS"], hide_short_help = true)]
    burst_loss: Option<Vec<f64>>,
    /// Reordering, as a share of packets
    #[arg(long, value_parser = ratio, value_name = "SHARE", hide_short_help = true)]
    reorder: Option<f64>,
    /// Duplication, as a share of packets
    #[arg(long, value_parser = ratio, value_name = "SHARE", hide_short_help = true)]
    duplicate: Option<f64>,
    /// Queue limit, in packets (default with --rate: 1000)
    #[arg(long, value_name = "PACKETS")]
    queue: Option<u64>,
    /// Queue limit, in bytes
    #[arg(long, value_parser = size, value_name = "SIZE", hide_short_help = true)]
    queue_bytes: Option<u64>,
    /// Token bucket depth of a shaper, in bytes
    #[arg(long, value_parser = size, value_name = "SIZE", requires = "rate")]
    burst: Option<u64>,
    /// Policer rate, in bit/s
    #[arg(long, value_parser = bps, value_name = "RATE", hide_short_help = true)]
    police: Option<u64>,
    /// Token bucket depth of the policer, in bytes
    #[arg(long, value_parser = size, value_name = "SIZE", default_value = "128k", hide_short_help = true)]
    police_burst: u64,
    /// MTU of the path, in bytes; larger packets get an ICMP error
    #[arg(long, value_name = "BYTES")]
    path_mtu: Option<u32>,
    /// With --path-mtu: send no ICMP error (black hole)
    #[arg(long, requires = "path_mtu", hide_short_help = true)]
    no_icmp: bool,
    /// MTU of the hosts, in bytes
    #[arg(long, default_value_t = 1500, value_name = "BYTES")]
    mtu: u32,
    #[command(flatten)]
    link: LinkSpeedArg,
    #[command(flatten)]
    seed: SeedArg,
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl PathArgs {
    /// The lab with this path.
    pub(super) fn spec(&self, name: &str) -> Result<LabSpec, Failure> {
        let one_way = self.delay.map(micros).or(self.rtt.map(|rtt| micros(rtt) / 2));
        let burst = self.burst_loss.as_deref().unwrap_or(&[0.0, 0.0, 0.0]);
        let impaired = Impairment {
            rate_bps: self.rate.rate.unwrap_or(0),
            overhead_bytes: self.overhead,
            burst_bytes: self.burst.unwrap_or(0),
            delay_us: one_way.unwrap_or(0),
            jitter_us: self.jitter.map_or(0, micros),
            loss: self.loss.unwrap_or(0.0),
            burst_loss_enter: burst[0],
            burst_loss_leave: burst[1],
            burst_loss: burst[2],
            reorder: self.reorder.unwrap_or(0.0),
            duplicate: self.duplicate.unwrap_or(0.0),
            queue_bytes: self.queue_bytes.unwrap_or(0),
            queue_packets: self.queue.unwrap_or(0),
            police_bps: self.police.unwrap_or(0),
            police_burst_bytes: if self.police.is_some() { self.police_burst } else { 0 },
            mtu: self.path_mtu.unwrap_or(0),
            mtu_icmp: !self.no_icmp,
            ..Impairment::default()
        };
        // Rate and delay apply to both directions, the impairments to the named one.
        let clean = Impairment { rate_bps: impaired.rate_bps, delay_us: impaired.delay_us, ..Impairment::default() };
        let (up, down) = match self.direction.direction() {
            Direction::Both => (impaired.clone(), impaired),
            Direction::Up => (impaired, clean),
            Direction::Down => (clean, impaired),
        };
        let topology = match (self.topology, self.switch) {
            (Shape::Pair, false) => Topology::Pair,
            (Shape::Chain, false) => Topology::Chain,
            (Shape::Dut, false) => Topology::Dut,
            (Shape::Dut, true) => Topology::DutSwitch,
            (Shape::Pair | Shape::Chain, true) => return Err(Failure::usage("--switch needs --topology dut")),
        };
        let spec = LabSpec {
            name: name.to_owned(),
            topology,
            up,
            down,
            link_speed_bps: self.link.link_speed,
            mtu: self.mtu,
            seed: self.seed.seed,
            snmpd: self.snmpd,
        };
        spec.check().map_err(Failure::usage)?;
        Ok(spec)
    }
}
