//! `narrows generate`: raw frames in many flows, up to line rate.

use crate::failure::{Failure, Outcome};
use crate::flags::values::duration;
use crate::flags::{
    DurationArg, FrameRateArg, FrameSizeArg, IntervalArg, LinkSpeedArg, ResultArgs, SaveArgs, SeedArg, words,
};
use crate::output::{deliver, style};
use crate::session::stop_on_interrupt;
use clap::{ArgAction, Args as ClapArgs};
use narrows_model::load::frame_words::{parse_endpoints, parse_sizes};
use narrows_model::load::frames::{Endpoints, FrameInterval, Mac, SendMode, Transport, Walk};
use narrows_model::load::frames_report::FramesReport;
use narrows_render as render;
use narrows_render::frames::progress::{End, received, sent};
use narrows_render::frames::text;
use narrows_runner::frames::{self, NextHop, Order, OrderError};
use narrows_runner::stored::{self, Begun};
use narrows_views::frames::{Scale, received_interval, sent_interval};
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

/// Send raw frames in many flows, up to line rate
#[derive(Debug, ClapArgs)]
#[command(
    mut_arg("seed", |it| it.requires("random").help("Seed of --random").hide_short_help(true)),
    mut_arg("interval", |it| it.hide_short_help(true)),
    after_help = "Examples:\n  \
    narrows generate eth1 --gateway 198.18.0.1 -S 198.18.0.2:2000-198.18.0.2:3999\n  \
    narrows generate eth1 --destination-mac 02:00:00:00:00:02 -b 1Mpps -l 64,1518\n  \
    narrows generate eth1 -S 2001:2:0:100::2 -D 2001:2:0:200::2 --rate 50%\n\
    Sizes include the FCS. Rates: 1.2Mpps, 9.4G (bit/s on the wire), 50% (of line rate), max.\n\
    Benchmarking address ranges: 198.18.0.0/15 and 2001:2::/48. For isolated lab networks only (RFC 6815)."
)]
pub(crate) struct Args {
    /// Sending interface
    #[arg(value_name = "DEV")]
    device: String,
    /// Source range: ADDRESS[:PORT][-ADDRESS[:PORT][/BITS]]; /BITS: one address per network
    #[arg(long, short = 'S', value_parser = endpoints, value_name = "RANGE", default_value = "198.18.0.2:2000")]
    source: Endpoints,
    /// Destination range, same syntax
    #[arg(long, short = 'D', value_parser = endpoints, value_name = "RANGE", default_value = "198.19.0.2:2000")]
    destination: Endpoints,
    /// Address of the next hop (the DUT)
    #[arg(long, value_name = "ADDRESS", conflicts_with = "destination_mac")]
    gateway: Option<IpAddr>,
    /// Destination MAC address (default: resolved from the gateway or destination)
    #[arg(long, value_name = "MAC")]
    destination_mac: Option<Mac>,
    /// Source MAC address (default: of the interface)
    #[arg(long, value_name = "MAC", hide_short_help = true)]
    source_mac: Option<Mac>,
    /// VLAN ID (802.1Q tag)
    #[arg(long, value_name = "ID", value_parser = clap::value_parser!(u16).range(0..=4095), hide_short_help = true)]
    vlan: Option<u16>,
    /// Send TCP SYN segments instead of UDP
    #[arg(long, hide_short_help = true)]
    tcp_syn: bool,
    #[command(flatten)]
    size: FrameSizeArg,
    #[command(flatten)]
    rate: FrameRateArg,
    #[command(flatten)]
    link: LinkSpeedArg,
    #[command(flatten)]
    duration: DurationArg,
    /// Stop after this many frames
    #[arg(long, short = 'n', value_name = "FRAMES", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Maximum burst of a worker, in frames (default: 100 us of load, at least 64)
    #[arg(long, value_name = "FRAMES", hide_short_help = true)]
    burst: Option<u32>,
    /// Maximum stall that is caught up; frames further behind are unsent
    #[arg(long = "max-catch-up", alias = "make-up", value_parser = duration, value_name = "TIME", default_value = "50ms", hide_short_help = true)]
    catch_up: Duration,
    /// Pseudo-random order of flows (RFC 4814), not round-robin
    #[arg(long)]
    random: bool,
    #[command(flatten)]
    seed: SeedArg,
    /// Number of workers, one CPU and stream each (default: by rate)
    #[arg(long, short = 'P', value_name = "N")]
    workers: Option<u32>,
    /// Timestamp every Nth frame; 0: none (default: about 10,000 per second)
    #[arg(long, value_name = "FRAMES", hide_short_help = true)]
    stamp_every: Option<u32>,
    /// Send mode (default: the first that works)
    #[arg(long, value_enum, hide_short_help = true)]
    mode: Option<ModeWord>,
    /// How long to wait for link
    #[arg(long, value_parser = duration, value_name = "TIME", num_args = 0..=1, default_value = "0s", default_missing_value = "30s", hide_short_help = true)]
    wait: Duration,
    /// Allow addresses outside the benchmarking ranges
    #[arg(long, hide_short_help = true)]
    allow_any_address: bool,
    /// Allow the interface of the default route; must be given twice
    #[arg(long, action = ArgAction::Count, hide_short_help = true)]
    use_default_route_device: u8,
    #[command(flatten)]
    interval: IntervalArg,
    #[command(flatten)]
    save: SaveArgs,
    #[command(flatten)]
    result: ResultArgs<FramesReport>,
}

words! {
    /// How frames are sent.
    ModeWord for SendMode {
        /// Frames are built in the kernel by an XDP program
        LiveFrames,
        /// AF_XDP rings
        AfXdp,
        /// Packet socket
        AfPacket,
    }
}

/// The default port; a distinct one is easier to find in a capture than discard (9).
const PORT: u16 = 2000;

fn endpoints(word: &str) -> Result<Endpoints, String> {
    parse_endpoints(word, PORT).map_err(|error| error.to_string())
}

/// One line per interval, on stderr.
pub(crate) struct Lines {
    end: End,
    scale: Scale,
    quiet: bool,
    before: Option<FrameInterval>,
}

impl Lines {
    pub(crate) const fn new(end: End, scale: Scale, quiet: bool) -> Self {
        Self { end, scale, quiet, before: None }
    }

    pub(crate) fn next(&mut self, now: FrameInterval) {
        if !self.quiet {
            if self.before.is_none() {
                eprint!("{}", self.end.heading(style()));
            }
            let line = match self.end {
                End::Sent => sent(&sent_interval(self.before, now, self.scale), style()),
                End::Received => received(&received_interval(self.before, now, self.scale), style()),
            };
            eprint!("{line}");
        }
        self.before = Some(now);
    }
}

/// Checks that the file can be written, before anything is measured.
pub(crate) fn check_output(output: Option<&Path>) -> Result<(), Failure> {
    output.map_or(Ok(()), |file| stored::check(file).map_err(Failure::run))
}

/// Prints the result, puts it into the store, and writes it to the file, if there is one.
pub(crate) fn show(
    report: &FramesReport,
    result: &ResultArgs<FramesReport>,
    save: &SaveArgs,
    begun: &Begun,
) -> Result<(), Failure> {
    deliver(
        &result.write(report, style())?,
        || save.keep(begun, result.quiet, |begun| stored::keep_new(report, begun)),
        &[(result.output(), &|| render::json::pretty(report).map_err(Failure::run))],
    )
}

/// An invalid order is a usage error; what this host lacks fails the run.
fn failure(error: OrderError) -> Failure {
    match error {
        OrderError::Word(_) | OrderError::Address(_) | OrderError::Plan(_) => Failure::usage(error),
        OrderError::Device { .. } | OrderError::NextHop(_) | OrderError::System(_) => Failure::run(error),
    }
}

impl Args {
    pub(crate) fn run(self) -> Outcome {
        let stop = stop_on_interrupt()?;
        let begun = Begun::now().map_err(Failure::run)?;
        check_output(self.result.output())?;
        let sizes = self.size.size.as_deref().map(parse_sizes).transpose().map_err(Failure::usage)?.unwrap_or_default();
        let order = Order {
            device: self.device,
            mode: self.mode.map(SendMode::from),
            source: self.source,
            destination: self.destination,
            source_mac: self.source_mac,
            next_hop: match (self.destination_mac, self.gateway) {
                (Some(mac), _) => NextHop::Mac(mac),
                (None, Some(gateway)) => NextHop::Gateway(gateway),
                (None, None) => NextHop::Destination,
            },
            vlan: self.vlan,
            transport: if self.tcp_syn { Transport::TcpSyn } else { Transport::Udp },
            walk: if self.random { Walk::Random { seed: self.seed.seed } } else { Walk::Odometer },
            sizes,
            load: self.rate.rate,
            link_bps: self.link.link_speed,
            burst: self.burst,
            catch_up: self.catch_up,
            duration: self.duration.duration,
            count: self.count,
            workers: self.workers,
            stamp_every: self.stamp_every,
            interval: self.interval.interval,
            wait: self.wait,
            any_address: self.allow_any_address,
            default_route: self.use_default_route_device >= 2,
        };
        let plan = frames::resolve(&order, &stop).map_err(failure)?;
        let link_bps = order.link_bps.or_else(|| frames::link_speed(&plan.device));
        if !self.result.quiet {
            eprint!("{}", text::generate_header(&plan, style()));
        }
        let scale = Scale { frame_bytes: Some(plan.format.mean_bytes()), link_bps };
        let mut lines = Lines::new(End::Sent, scale, self.result.quiet);
        let record = frames::generate(&plan, &stop, |seen| lines.next(seen)).map_err(Failure::run)?;
        show(&narrows_views::frames::generate(&record, link_bps), &self.result, &self.save, &begun)?;
        Ok(u8::from(record.ended.is_some() && !stop.is_set()))
    }
}
