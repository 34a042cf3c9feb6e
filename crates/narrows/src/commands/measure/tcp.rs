//! `narrows measure tcp`.

use super::run::run;
use crate::failure::Outcome;
use crate::flags::{FullArg, LoadArgs, RemoteArgs, ResultArgs, TcpLoadArgs};
use narrows_model::MeasureReport;

#[derive(Debug, clap::Args)]
#[command(
    mut_arg("size", |it| it.default_value("128k").value_name("SIZE").help("Bytes handed to the kernel in one call")),
    after_help = "Examples:\n  \
    narrows measure tcp server --token-file token\n  \
    narrows measure tcp server --streams 4 --direction both --duration 30s --omit 2s\n  \
    narrows measure tcp server --format ndjson | jq -c 'select(.event==\"interval\")'"
)]
pub(super) struct TcpArgs {
    #[command(flatten)]
    remote: RemoteArgs,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    tcp: TcpLoadArgs,
    /// Read no counters and no CPU times around and during the load
    #[arg(long)]
    no_collect: bool,
    #[command(flatten)]
    full: FullArg,
    #[command(flatten)]
    result: ResultArgs<MeasureReport>,
}

impl TcpArgs {
    pub(super) fn run(self) -> Outcome {
        let plan = |_| Ok(self.tcp.plan(&self.load, |_| 0)?.into());
        run(&self.remote, &self.result, &self.full, !self.no_collect, plan, |_| Ok(()))
    }
}
