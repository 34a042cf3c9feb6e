//! `narrows measure udp`.

use super::run::{Told, run};
use crate::failure::{Failure, Outcome};
use crate::flags::{LoadArgs, RemoteArgs, UdpLoadArgs};
use crate::session::far;
use narrows_render::measure::UdpMeasurement;
use narrows_runner::{ledgers, stored};
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
#[command(
    mut_arg("svg", |it| it.help("Write a picture of the intervals to this file (SVG)").hide_short_help(true)),
    mut_arg("full", |it| it.help("Show each stream, and the stages that dropped nothing")),
    after_help = "Examples:\n  \
    narrows measure udp server --rate 100M\n  \
    narrows measure udp server --rate 50kpps --size 64,512,1400 -d both\n  \
    narrows measure udp server --rate max --size 1448 --ledger loss.svg"
)]
pub(super) struct UdpArgs {
    #[command(flatten)]
    remote: RemoteArgs,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    udp: UdpLoadArgs,
    /// Draw where the datagrams went into this file (SVG); with both directions the second one gets `-down` in its name
    #[arg(long, value_name = "PATH")]
    ledger: Option<PathBuf>,
    /// Read no counters and no CPU times around and during the load
    #[arg(long, hide_short_help = true)]
    no_collect: bool,
    #[command(flatten)]
    told: Told<UdpMeasurement>,
}

impl UdpArgs {
    pub(super) fn run(self) -> Outcome {
        let plan = |family| Ok(self.udp.plan(&self.load, family)?.into());
        let far = || far(&self.remote, false, !self.no_collect);
        run(far, &self.told, plan, |run| {
            let Some(file) = &self.ledger else { return Ok(()) };
            let ledgers = ledgers(run);
            for ledger in &ledgers {
                let file =
                    if ledgers.len() > 1 { suffixed(file, ledger.flow.direction().word()) } else { file.clone() };
                stored::write(&file, &narrows_render::ledger::svg::waterfall(ledger)).map_err(Failure::run)?;
            }
            Ok(())
        })
    }
}

/// `loss.svg` becomes `loss-down.svg`.
fn suffixed(file: &std::path::Path, word: &str) -> PathBuf {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let end = file.extension().map_or_else(String::new, |end| format!(".{}", end.to_string_lossy()));
    file.with_file_name(format!("{stem}-{word}{end}"))
}
