//! `narrows measure quic`.

use super::run::{Told, run};
use crate::failure::{Failure, Outcome};
use crate::flags::values::size;
use crate::flags::{DirectionArg, DurationArg, IntervalArg, OmitArg, SizeArg, StreamsArg, TrustArgs};
use crate::session::foreign;
use narrows_model::{Limit, MeasureReport, Plan as _, TcpPlan, Transport};
use narrows_runner::quic::Server;
use narrows_runner::remote::{RemoteError, TargetSpec, Trust};

#[derive(Debug, clap::Args)]
#[command(
    mut_arg("svg", |it| it.help("Write a picture of the intervals to this file (SVG)").hide_short_help(true)),
    mut_arg("size", |it| it.default_value("128k").value_name("SIZE").help("Write size").hide_short_help(true)),
    mut_arg("omit", |it| it.hide_short_help(true)),
    mut_arg("interval", |it| it.hide_short_help(true)),
    mut_arg("bytes", |it| it.hide_short_help(true)),
    mut_arg("ca", |it| it.hide_short_help(true)),
    after_help = "Examples:\n  \
    narrows measure quic server                      narrows serve --quic, known by its token\n  \
    narrows measure quic server -R -C bbr -t 30s --omit 2s\n  \
    narrows measure quic server:4433 --insecure      another server of QUIC's protocol perf"
)]
pub(super) struct QuicArgs {
    /// Server: host[:port]
    host: String,
    /// Server port (UDP)
    #[arg(long, short = 'p', default_value_t = narrows_runner::quic::PORT, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..), help_heading = "Connection")]
    port: u16,
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten, next_help_heading = "Load")]
    direction: DirectionArg,
    #[command(flatten, next_help_heading = "Load")]
    streams: StreamsArg,
    #[command(flatten, next_help_heading = "Load")]
    duration: DurationArg,
    /// Stop after this many bytes per stream
    #[arg(long, short = 'n', value_parser = size, value_name = "SIZE", conflicts_with = "duration", help_heading = "Load")]
    bytes: Option<u64>,
    #[command(flatten, next_help_heading = "Load")]
    omit: OmitArg,
    #[command(flatten, next_help_heading = "Load")]
    interval: IntervalArg,
    #[command(flatten, next_help_heading = "Load")]
    size: SizeArg,
    /// Congestion control of this end: cubic, reno or bbr
    #[arg(long, short = 'C', value_name = "NAME", help_heading = "Load")]
    congestion_control: Option<String>,
    /// Read no counters and no CPU times around and during the load
    #[arg(long, hide_short_help = true)]
    no_collect: bool,
    #[command(flatten)]
    told: Told<MeasureReport>,
}

impl QuicArgs {
    fn plan(&self) -> Result<TcpPlan, Failure> {
        let (limit, omit_ms) = match self.bytes {
            Some(bytes) => (Limit::BytesPerStream(bytes), 0),
            None => (Limit::DurationMs(self.duration.ms()), self.omit.ms().unwrap_or(0)),
        };
        let plan = TcpPlan {
            streams: self.streams.streams,
            direction: self.direction.direction(),
            limit,
            omit_ms,
            interval_ms: self.interval.ms(),
            message_bytes: self.size.size.message_bytes()?.0,
            congestion_control: self.congestion_control.clone(),
            transport: Transport::Quic,
            ..TcpPlan::default()
        };
        plan.check().map_err(Failure::usage)?;
        Ok(plan)
    }

    fn server(&self) -> Result<Server, Failure> {
        let family = self.trust.family.family();
        let told = |error: RemoteError| match error {
            RemoteError::BadTarget { .. } => Failure::usage(error),
            _ => Failure::run(error),
        };
        let spec = TargetSpec { asked: self.host.clone(), family, port: self.port, token: None };
        let (host, ..) = spec.server().map_err(told)?;
        let trust = self.trust.trust(&host)?.unwrap_or(Trust::System);
        Server::find(&self.host, family, self.port, trust).map_err(told)
    }

    pub(super) fn run(self) -> Outcome {
        let far = || foreign(self.server()?, !self.no_collect);
        let plan = |_| Ok(self.plan()?.into());
        run(far, &self.told, plan, |_| Ok(()))
    }
}
