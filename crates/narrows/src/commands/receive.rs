//! `narrows receive`: counts the frames of a generator.

use super::generate::{Lines, check_output, show};
use crate::failure::{Failure, Outcome};
use crate::flags::values::{duration, millis};
use crate::flags::{DurationArg, IntervalArg, ResultArgs, words};
use crate::output::style;
use crate::session::stop_on_interrupt;
use clap::Args as ClapArgs;
use narrows_model::load::frames::{ReceiveMode, ReceivePlan};
use narrows_model::load::frames_report::FramesReport;
use narrows_render::frames::progress::End;
use narrows_render::frames::text;
use narrows_runner::frames::{self, Receiver};
use narrows_views::frames::Scale;
use std::time::Duration;

/// Count the frames of a generator
#[derive(Debug, ClapArgs)]
#[command(
    mut_arg("duration", |it| it.default_value("1h").help("The longest time")),
    after_help = "Examples:\n  \
    narrows receive eth2                          until Ctrl-C, or an hour\n  \
    narrows receive eth2 --idle 2s --per-flow     stop after 2 s without frames\n  \
    narrows receive eth2 --gaps --format json     with the times between arrivals\n\
    Only frames with the signature of `narrows generate` are counted and taken; all others go on to the host. Latency is told \
    where generator and receiver are on one machine, and so on one clock."
)]
pub(crate) struct Args {
    /// Device that is watched
    #[arg(value_name = "DEV")]
    device: String,
    #[command(flatten)]
    duration: DurationArg,
    /// End after such a silence, once frames came
    #[arg(long, value_parser = duration, value_name = "TIME")]
    idle: Option<Duration>,
    /// Count each flow by itself
    #[arg(long)]
    per_flow: bool,
    /// Sample the times between arrivals
    #[arg(long)]
    gaps: bool,
    /// How frames are counted (default: the first of them that works)
    #[arg(long, value_enum)]
    mode: Option<ModeWord>,
    #[command(flatten)]
    interval: IntervalArg,
    #[command(flatten)]
    result: ResultArgs<FramesReport>,
}

words! {
    /// How frames are counted.
    ModeWord for ReceiveMode {
        /// An XDP program in the driver
        XdpNative,
        /// An XDP program behind the driver
        XdpGeneric,
        /// A packet socket
        AfPacket,
    }
}

impl Args {
    pub(crate) fn run(self) -> Outcome {
        let stop = stop_on_interrupt()?;
        let plan = ReceivePlan {
            device: self.device,
            mode: self.mode.map(ReceiveMode::from),
            duration_ms: self.duration.ms(),
            idle_ms: self.idle.map(millis),
            per_flow: self.per_flow,
            gaps: self.gaps,
            interval_ms: self.interval.ms(),
        };
        plan.check().map_err(Failure::usage)?;
        check_output(self.result.output())?;
        let mut receiver = Receiver::start(&plan).map_err(Failure::run)?;
        if !self.result.quiet {
            eprint!("{}", text::receive_header(&plan, style()));
        }
        let link_bps = frames::link_speed(&plan.device);
        let mut lines = Lines::new(End::Received, Scale { frame_bytes: None, link_bps }, self.result.quiet);
        receiver.wait(&stop, |seen| lines.next(seen)).map_err(Failure::run)?;
        let record = receiver.finish().map_err(Failure::run)?;
        show(&narrows_views::frames::receive(&record, link_bps), &self.result)?;
        Ok(u8::from(record.ended.is_some()))
    }
}
