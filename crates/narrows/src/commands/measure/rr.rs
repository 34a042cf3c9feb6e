//! `narrows measure rr` and `narrows measure crr`.

use super::run::{Told, run};
use crate::failure::{Failure, Outcome};
use crate::flags::values::{plan_bytes, size};
use crate::flags::{
    DirectionWord, DurationArg, IntervalArg, OmitArg, RemoteArgs, StreamsArg, TransactionRateArg, slow_start_ms,
};
use crate::session::far;
use clap::Args;
use narrows_model::{Limit, Plan, RrPlan, RrReport, TcpPlan, Transaction};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    narrows measure rr server\n  \
    narrows measure rr server --udp --request 64 --response 64 --outstanding 16\n  \
    narrows measure rr server --rate 1000 --loaded   idle and loaded latency compared")]
pub(super) struct RrArgs {
    #[command(flatten)]
    remote: RemoteArgs,
    /// Over UDP instead of TCP
    #[arg(long, short = 'u')]
    udp: bool,
    /// Outstanding requests per stream
    #[arg(long, default_value_t = 1, value_name = "N")]
    outstanding: u32,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    narrows measure crr server\n  \
    narrows measure crr server --streams 4 --request 200 --response 10k")]
pub(super) struct CrrArgs {
    #[command(flatten)]
    remote: RemoteArgs,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Args)]
#[command(
    next_help_heading = "Load",
    mut_arg("streams", |it| it.help("Requesters at the same time")),
    mut_arg("svg", |it| it.help("Write a picture of the intervals to this file (SVG)").hide_short_help(true))
)]
struct Common {
    /// Bytes of a request (1; over UDP 20, which its header takes)
    #[arg(long, value_parser = size, value_name = "SIZE")]
    request: Option<u64>,
    /// Bytes of a response (1; over UDP 20)
    #[arg(long, value_parser = size, value_name = "SIZE")]
    response: Option<u64>,
    #[command(flatten)]
    streams: StreamsArg,
    #[command(flatten)]
    rate: TransactionRateArg,
    #[command(flatten)]
    duration: DurationArg,
    #[command(flatten)]
    omit: OmitArg,
    #[command(flatten)]
    interval: IntervalArg,
    /// Measure the idle path first, then once more while TCP streams load it
    #[arg(long)]
    loaded: bool,
    /// Which way the load goes
    #[arg(long, value_enum, default_value = "both", requires = "loaded", hide_short_help = true)]
    load_direction: DirectionWord,
    /// Streams of the load in each direction
    #[arg(long, default_value_t = 4, value_name = "N", requires = "loaded", hide_short_help = true)]
    load_streams: u32,
    #[command(flatten)]
    told: Told<RrReport>,
}

impl RrArgs {
    pub(super) fn run(self) -> Outcome {
        let transaction = if self.udp { Transaction::Udp } else { Transaction::Tcp };
        let plan = self.common.plan(transaction, self.outstanding)?;
        self.common.run(&self.remote, &plan)
    }
}

impl CrrArgs {
    pub(super) fn run(self) -> Outcome {
        let plan = self.common.plan(Transaction::TcpConnect, 1)?;
        self.common.run(&self.remote, &plan)
    }
}

impl Common {
    fn plan(&self, transaction: Transaction, outstanding: u32) -> Result<RrPlan, Failure> {
        let least = if transaction == Transaction::Udp { RrPlan::MIN_UDP_BYTES } else { 1 };
        let bytes = |what: &str, given: Option<u64>| plan_bytes(what, given.unwrap_or(least.into()));
        let duration_ms = self.duration.ms();
        let omit_ms = self.omit.ms().unwrap_or(if self.loaded { slow_start_ms(duration_ms) } else { 0 });
        let load = self.loaded.then(|| TcpPlan {
            streams: self.load_streams,
            direction: self.load_direction.into(),
            limit: Limit::DurationMs(duration_ms),
            omit_ms,
            interval_ms: self.interval.ms(),
            ..TcpPlan::default()
        });
        let plan = RrPlan {
            transaction,
            streams: self.streams.streams,
            outstanding,
            request_bytes: bytes("request", self.request)?,
            response_bytes: bytes("response", self.response)?,
            duration_ms,
            omit_ms,
            interval_ms: self.interval.ms(),
            rate_per_s: self.rate.rate,
            max_answers_per_s: None,
            load,
        };
        plan.check().map_err(Failure::usage)?;
        Ok(plan)
    }

    fn run(&self, remote: &RemoteArgs, plan: &RrPlan) -> Outcome {
        let (far, plan) = (|| far(remote, false, true), |_| Ok(plan.clone().into()));
        run(far, &self.told, plan, |_| Ok(()))
    }
}
