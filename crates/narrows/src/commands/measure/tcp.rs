//! `narrows measure tcp`.

use super::run::{Told, run};
use crate::failure::{Failure, Outcome};
use crate::flags::values::bps;
use crate::flags::{LoadArgs, RemoteArgs, TcpLoadArgs};
use crate::session::far;
use narrows_model::{MeasureReport, Plan as _, Transport};

#[derive(Debug, clap::Args)]
#[command(
    mut_arg("svg", |it| it.help("Write a picture of the intervals to this file (SVG)").hide_short_help(true)),
    mut_arg("size", |it| it.default_value("auto").value_name("SIZE").help("Write size; auto: 128k, at high rates up to 1M")),
    after_help = "Examples:\n  \
    narrows measure tcp server --token-file token\n  \
    narrows measure tcp server -P 4 --direction both -t 30s --omit 2s\n  \
    narrows measure tcp server --format ndjson | jq -c .goodput_bps"
)]
pub(super) struct TcpArgs {
    #[command(flatten)]
    remote: RemoteArgs,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    tcp: TcpLoadArgs,
    /// Rate per stream that the application writes, as in iperf3; 0 is unlimited
    #[arg(
        long = "bitrate",
        short = 'b',
        value_parser = bps,
        value_name = "RATE",
        conflicts_with = "app_write_rate",
        hide_short_help = true
    )]
    bitrate: Option<u64>,
    /// By Multipath TCP, if the server has `--mptcp`, too
    #[arg(long, hide_short_help = true)]
    mptcp: bool,
    /// Read no counters and no CPU times around and during the load
    #[arg(long, hide_short_help = true)]
    no_collect: bool,
    #[command(flatten)]
    told: Told<MeasureReport>,
}

impl TcpArgs {
    pub(super) fn run(self) -> Outcome {
        let plan = |_| {
            let mut plan = self.tcp.plan(&self.load, |_| 0)?;
            if let Some(bps) = self.bitrate {
                plan.application.write_bps = bps.saturating_mul(plan.streams.into());
            }
            if self.mptcp {
                plan.transport = Transport::Multipath;
            }
            plan.check().map_err(Failure::usage)?;
            Ok(plan.into())
        };
        let far = || far(&self.remote, false, !self.no_collect);
        run(far, &self.told, plan, |_| Ok(()))
    }
}
