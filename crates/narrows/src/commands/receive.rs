//! `narrows receive`: counts the frames of a generator.

use super::generate::{Form, Lines, check_output, show};
use super::load::{duration, millis};
use super::remote::stop_on_interrupt;
use crate::failure::{Failure, Outcome};
use crate::output::style;
use clap::{Args as ClapArgs, ValueEnum};
use narrows_model::load::frames::{ReceiveMode, ReceivePlan};
use narrows_render as render;
use narrows_render::frames::progress::{End, Scale};
use narrows_render::frames::text;
use narrows_runner::frames::{self, Receiver};
use std::path::PathBuf;
use std::time::Duration;

/// Count the frames of a generator
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    narrows receive eth2                          until Ctrl-C, or an hour\n  \
    narrows receive eth2 --idle 2s --per-flow     until nothing came for two seconds; the flows by themselves\n  \
    narrows receive eth2 --gaps --format json     with the times between arrivals\n\
    Only frames with the signature of `narrows generate` are counted and taken; all others go on to the host. Latency is told \
    where generator and receiver are on one machine, and so on one clock.")]
pub(crate) struct Args {
    /// Device that is watched
    #[arg(value_name = "DEV")]
    device: String,
    /// The longest time
    #[arg(long, short = 't', value_parser = duration, value_name = "TIME", default_value = "1h")]
    duration: Duration,
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
    /// How often counters are read
    #[arg(long, short = 'i', value_parser = duration, value_name = "TIME", default_value = "1s")]
    interval: Duration,
    /// Form of the result
    #[arg(long, value_enum, default_value = "text")]
    format: Form,
    /// Keep the result in this file (JSON)
    #[arg(long, short = 'o', value_name = "PATH")]
    output: Option<PathBuf>,
    /// No line for each interval
    #[arg(long, short = 'q')]
    quiet: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ModeWord {
    /// An XDP program in the driver
    XdpNative,
    /// An XDP program behind the driver
    XdpGeneric,
    /// A packet socket
    AfPacket,
}

impl From<ModeWord> for ReceiveMode {
    fn from(word: ModeWord) -> Self {
        match word {
            ModeWord::XdpNative => Self::XdpNative,
            ModeWord::XdpGeneric => Self::XdpGeneric,
            ModeWord::AfPacket => Self::AfPacket,
        }
    }
}

impl Args {
    pub(crate) fn run(self) -> Outcome {
        let stop = stop_on_interrupt()?;
        let plan = ReceivePlan {
            device: self.device,
            mode: self.mode.map(ReceiveMode::from),
            duration_ms: millis(self.duration),
            idle_ms: self.idle.map(millis),
            per_flow: self.per_flow,
            gaps: self.gaps,
            interval_ms: millis(self.interval),
        };
        plan.check().map_err(Failure::usage)?;
        check_output(self.output.as_deref())?;
        let mut receiver = Receiver::start(&plan).map_err(Failure::run)?;
        if !self.quiet {
            eprint!("{}", text::receive_header(&plan, style()));
        }
        let link_bps = frames::link_speed(&plan.device);
        let mut lines = Lines::new(End::Received, Scale { frame_bytes: None, link_bps }, self.quiet);
        receiver.wait(&stop, |seen| lines.next(seen)).map_err(Failure::run)?;
        let record = receiver.finish().map_err(Failure::run)?;
        show(&render::frames::receive(&record, link_bps), self.format, self.output.as_deref())?;
        Ok(u8::from(record.ended.is_some()))
    }
}
