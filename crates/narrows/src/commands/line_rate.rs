//! `narrows line-rate`: how many frames of a size a line carries. Arithmetic; nothing is sent.

use crate::failure::Outcome;
use crate::flags::values::bps;
use crate::flags::{FormatArg, FrameSizeListArg};
use crate::output::{printed, style};
use narrows_model::load::line_rate::LineRateReport;

/// Tell how many frames a line carries
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    narrows line-rate\n  \
    narrows line-rate --speed 10G --size 64,1518\n  \
    narrows line-rate --speed 2.5G,40G --format json\n\
    Nothing is sent. The formulas are below the tables.")]
pub(crate) struct Args {
    /// Line speeds, in bit/s, comma-separated
    #[arg(
        long,
        value_parser = speed,
        value_delimiter = ',',
        default_value = "100M,1G,10G,25G,100G",
        value_name = "SPEEDS"
    )]
    speed: Vec<u64>,
    #[command(flatten)]
    size: FrameSizeListArg,
    #[command(flatten)]
    format: FormatArg<LineRateReport>,
}

fn speed(word: &str) -> Result<u64, String> {
    match bps(word).map_err(|error| error.to_string())? {
        0 => Err("a line of 0 bit/s carries nothing".to_owned()),
        bps => Ok(bps),
    }
}

impl Args {
    pub(crate) fn run(self) -> Outcome {
        let report = LineRateReport::of(&self.speed, &self.size.size);
        printed(&self.format.write(&report, style())?)
    }
}
