//! `narrows receive`: counts the frames of a generator.

use super::generate::{Lines, check_output, show};
use crate::failure::{Failure, Outcome};
use crate::flags::values::{duration, millis};
use crate::flags::{DurationArg, IntervalArg, ResultArgs, SaveArgs, words};
use crate::output::style;
use crate::session::stop_on_interrupt;
use clap::Args as ClapArgs;
use narrows_model::load::frames::{ReceiveMode, ReceivePlan};
use narrows_model::load::frames_report::FramesReport;
use narrows_render::frames::progress::End;
use narrows_render::frames::text;
use narrows_runner::frames::{self, Receiver};
use narrows_runner::stored::Begun;
use narrows_views::frames::Scale;
use std::time::Duration;

/// Count the frames of a generator
#[derive(Debug, ClapArgs)]
#[command(
    mut_arg("duration", |it| it.default_value("1h").help("Maximum duration")),
    after_help = "Examples:\n  \
    narrows receive eth2                          until Ctrl-C, at most 1 hour\n  \
    narrows receive eth2 --idle 2s --per-flow     until 2 s idle, with results per flow\n  \
    narrows receive eth2 --gaps --format json     with inter-arrival times\n\
    Only frames with the signature of `narrows generate` are counted and consumed; all others are passed to the host. \
    Latency is reported if generator and receiver are on one machine, so that they share a clock."
)]
pub(crate) struct Args {
    /// Receiving interface
    #[arg(value_name = "DEV")]
    device: String,
    #[command(flatten)]
    duration: DurationArg,
    /// Stop after this idle time, once frames have arrived
    #[arg(long, value_parser = duration, value_name = "TIME")]
    idle: Option<Duration>,
    /// Count per flow
    #[arg(long)]
    per_flow: bool,
    /// Sample inter-arrival times
    #[arg(long)]
    gaps: bool,
    /// Receive mode (default: the first that works)
    #[arg(long, value_enum)]
    mode: Option<ModeWord>,
    #[command(flatten)]
    interval: IntervalArg,
    #[command(flatten)]
    save: SaveArgs,
    #[command(flatten)]
    result: ResultArgs<FramesReport>,
}

words! {
    /// How frames are counted.
    ModeWord for ReceiveMode {
        /// XDP program in the driver
        XdpNative,
        /// XDP program in the generic receive path
        XdpGeneric,
        /// Packet socket
        AfPacket,
    }
}

impl Args {
    pub(crate) fn run(self) -> Outcome {
        let stop = stop_on_interrupt()?;
        let begun = Begun::now().map_err(Failure::run)?;
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
        show(&narrows_views::frames::receive(&record, link_bps), &self.result, &self.save, &begun)?;
        Ok(u8::from(record.ended.is_some()))
    }
}
