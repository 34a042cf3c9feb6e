//! `narrows trace`: the path to any host, hop by hop.

use crate::failure::{Failure, Outcome};
use crate::flags::values::{duration, millis};
use crate::flags::{FamilyArg, ResultArgs, SaveArgs, SvgArg, TuiArg, WayArgs, words};
use crate::output::{deliver, style, write};
use crate::session::{INTERRUPTED, stop_on_interrupt};
use crate::tui::Tui;
use narrows_model::words::place::Family;
use narrows_model::{Ending, TracePlan, TraceProtocol, TraceRecord, TraceReport};
use narrows_render::Format;
use narrows_render::live::trace::TraceLive;
use narrows_render::trace::picture;
use narrows_runner::live::LiveInstruments;
use narrows_runner::stored::{self, Begun};
use narrows_runner::trace::{self, TraceError, report};
use narrows_views::live::hops;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Trace the path to any host
///
/// Shows each hop with its RTT and loss, the path MTU and where it shrinks, black holes, filters, equal-cost paths, and an
/// asymmetric reverse path. HOST needs no narrows, and this user no privileges.
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("quiet", |it| it.help("Do not print the id of the saved run")),
    mut_arg("tui", |it| it.requires("watch")),
    mut_arg("ipv4", |it| it.hide_short_help(false)),
    mut_arg("ipv6", |it| it.hide_short_help(false)),
    mut_arg("svg", |it| it.help("Write a picture of the hops to this file (SVG)")),
    after_help = "Examples:\n  \
    narrows trace server\n  \
    narrows trace server --protocol tcp --port 443   if UDP is dropped\n  \
    narrows trace server --watch                     live, until q\n  \
    narrows trace server -n --flows 1 --no-mtu       addresses of one path only\n  \
    narrows trace server --back                      both ways"
)]
pub(crate) struct Args {
    /// Any name or address
    host: String,
    /// Probe protocol
    #[arg(long, short = 'P', value_enum, default_value = "udp")]
    protocol: Protocol,
    /// Destination port [default: 33434, TCP: 443]
    #[arg(long, short = 'p', value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    #[command(flatten)]
    family: FamilyArg,
    /// Do not look up the names of the hops
    #[arg(long, short = 'n')]
    no_names: bool,
    /// Do not measure the path MTU
    #[arg(long)]
    no_mtu: bool,
    /// Flows that look for equal-cost paths
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=256))]
    flows: u16,
    /// Probes to each hop
    #[arg(long, short = 'c', value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=1000))]
    count: u32,
    /// Time between two probes to a hop; routers limit ICMP to one answer per second
    #[arg(long, short = 'i', value_name = "TIME", value_parser = duration, default_value = "1100ms")]
    interval: Duration,
    /// How long an answer may take
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1s")]
    wait: Duration,
    /// First TTL
    #[arg(long, value_name = "TTL", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..))]
    first_hop: u8,
    /// Last TTL
    #[arg(long, short = 'm', value_name = "TTL", default_value_t = 30, value_parser = clap::value_parser!(u8).range(1..))]
    max_hops: u8,
    /// Silent hops after which the trace ends
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..))]
    gap: u8,
    /// Also trace back from the `narrows serve` of HOST
    #[arg(long, conflicts_with = "watch")]
    back: bool,
    /// With --back: the server's token
    #[arg(long, value_name = "PATH", requires = "back")]
    token_file: Option<PathBuf>,
    /// With --back: port of the server
    #[arg(long, value_name = "PORT", requires = "back", default_value_t = 5220, value_parser = clap::value_parser!(u16).range(1..))]
    server_port: u16,
    /// Go on until Ctrl-C or q, and show a live table
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    result: ResultArgs<TraceReport>,
    #[command(flatten)]
    svg: SvgArg,
    #[command(flatten)]
    save: SaveArgs,
    #[command(flatten)]
    tui: TuiArg,
}

words! {
    /// What the probes are.
    Protocol for TraceProtocol {
        /// Datagrams to a closed port
        Udp,
        /// Connections to a port
        Tcp,
        /// Echo requests, for root and for groups in net.ipv4.ping_group_range; UDP otherwise
        Icmp,
    }
}

impl Args {
    fn plan(&self) -> Result<TracePlan, Failure> {
        let (interval_ms, wait_ms) = (millis(self.interval), millis(self.wait));
        for (what, ms) in [("interval", interval_ms), ("wait", wait_ms)] {
            if !(10..=60_000).contains(&ms) {
                return Err(Failure::usage(format!("{what} is {ms} ms, but must be from 10 ms to 60 s")));
            }
        }
        if self.first_hop > self.max_hops {
            let (first, last) = (self.first_hop, self.max_hops);
            return Err(Failure::usage(format!("first hop is {first}, but must not be above the last, {last}")));
        }
        let protocol = TraceProtocol::from(self.protocol);
        let port = if protocol == TraceProtocol::Tcp { 443 } else { trace::UDP_PORT };
        Ok(TracePlan {
            asked: self.host.clone(),
            target: trace::resolve(&self.host, self.family.family()).map_err(failure)?,
            protocol,
            port: self.port.unwrap_or(port),
            first_ttl: self.first_hop,
            max_ttl: self.max_hops,
            gap: self.gap,
            rounds: self.count,
            continuous: self.watch,
            flows: self.flows,
            interval_ms,
            wait_ms,
            probe_bytes: 64,
            ports: Vec::new(),
            mtu: !self.no_mtu && protocol != TraceProtocol::Tcp,
            names: !self.no_names,
        })
    }

    pub(crate) fn run(self) -> Outcome {
        self.tui.check()?;
        let mut plan = self.plan()?;
        let asks_echo = plan.protocol == TraceProtocol::Icmp;
        if let Some(why) = asks_echo.then(|| trace::echo_refused(plan.target)).flatten() {
            crate::failure::note!("narrows: {why}; tracing by UDP instead");
            plan.protocol = TraceProtocol::Udp;
        }
        let instruments = LiveInstruments::Nothing;
        let way = || WayArgs::of(self.server_port, self.token_file.clone(), Some(Family::of(&plan.target)));
        let server = self.back.then(|| way().connect(&self.host, false, instruments)).transpose()?;
        let (stop, begun) = (stop_on_interrupt()?, Begun::now().map_err(Failure::run)?);
        let live = if self.watch { self.tui.live(self.result.format(), TraceLive::default, &stop)? } else { None };
        // One after the other; of JSON and Markdown there is one at the end.
        let each = self.watch && live.is_none() && matches!(self.result.format(), Format::Text | Format::Ndjson);
        let mut failed = None;
        let mut show = |record: &TraceRecord| {
            if let Some(live) = &live {
                live.update(|shown| shown.show(report(record), hops(record)));
            } else if each {
                let shown = self.result.write(&report(record), style()).map_or(Ok(()), |text| write(&text));
                // A closed pipe (`narrows … | head`) is not a failure.
                let kept = |error: io::Error| failed = Some(error).filter(|it| it.kind() != io::ErrorKind::BrokenPipe);
                return shown.map_err(kept).is_ok();
            }
            true
        };
        let traced = match &server {
            Some(server) => trace::both_ways(server, plan, &stop, &mut || {}, &mut show),
            None => trace::trace(plan, &stop, &mut || {}, &mut show).map(|record| (record, None)),
        };
        live.map(Tui::close).transpose()?;
        let (record, failed_back) = traced.map_err(failure)?;
        if let Some(error) = &failed_back {
            crate::failure::note!("narrows: cannot trace the path back: {error}");
        }
        if let Some(error) = failed {
            return Err(Failure::run(format!("cannot write the result: {error}")));
        }
        let view = report(&record);
        // All was printed as it came.
        let text = if each { String::new() } else { self.result.write(&view, style())? };
        deliver(
            &text,
            || self.save.keep(&begun, self.result.quiet, |begun| stored::keep_new(&record, begun)),
            &[
                (self.svg.svg.as_deref(), &|| Ok(picture(&view))),
                (self.result.output(), &|| narrows_render::json::pretty(&view).map_err(Failure::run)),
            ],
        )?;
        let interrupted = record.ending == Ending::Interrupted && !self.watch;
        Ok(if interrupted { INTERRUPTED } else { failed_back.is_some().into() })
    }
}

/// A name that does not resolve and an option that this host does not permit are no failures of the trace.
fn failure(error: TraceError) -> Failure {
    match error {
        TraceError::Family(..) => Failure::usage(error),
        _ => Failure::run(error),
    }
}
