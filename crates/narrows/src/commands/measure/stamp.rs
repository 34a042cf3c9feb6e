//! `narrows measure stamp`: a session with any STAMP or TWAMP Light reflector.

use crate::commands::generate::check_output;
use crate::failure::{Failure, Outcome};
use crate::flags::values::{duration, size};
use crate::flags::{DurationArg, FamilyArg, FullArg, ResultArgs, SaveArgs, SvgArg};
use crate::output::{deliver, style};
use crate::session::{INTERRUPTED, stop_on_interrupt};
use clap::Args;
use narrows_model::load::stamp::{StampPlan, StampReport};
use narrows_render::stamp::{picture, progress};
use narrows_runner::stamp::{self, StampFailure, base_bytes};
use narrows_runner::stored::{self, Begun};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(mut_arg("svg", |it| it.help("Write a picture over time to this file (SVG)").hide_short_help(true)), after_help = "Examples:\n  \
    narrows measure stamp router\n  \
    narrows measure stamp router:20000 --dscp 46 --interval 20ms --duration 1m\n  \
    narrows measure stamp server --key stamp.key     authenticated; the server: narrows serve --stamp --stamp-key stamp.key\n\
    The reflector may be a router, stamp-suite, or narrows serve --stamp.")]
pub(super) struct StampArgs {
    /// Reflector: name or address, with a port other than 862: HOST:PORT
    host: String,
    /// Time between packets
    #[arg(long, short = 'i', value_parser = duration, value_name = "TIME", default_value = "100ms", help_heading = "Load")]
    interval: Duration,
    #[command(flatten)]
    duration: DurationArg,
    /// UDP payload of a packet (44; authenticated 112)
    #[arg(long, short = 'l', value_parser = size, value_name = "SIZE", help_heading = "Load")]
    size: Option<u64>,
    /// DSCP of the packets, and of the replies where the reflector obeys
    #[arg(long, value_name = "DSCP", default_value_t = 0, value_parser = clap::value_parser!(u8).range(..64), help_heading = "Load")]
    dscp: u8,
    /// File with the key, in hexadecimal: authenticated mode
    #[arg(long, value_name = "FILE", help_heading = "Connection")]
    key: Option<PathBuf>,
    /// Do not ask for the DSCP on arrival there (RFC 8972), for reflectors that answer plain packets alone
    #[arg(long, help_heading = "Load", hide_short_help = true)]
    no_extensions: bool,
    #[command(flatten, next_help_heading = "Connection")]
    family: FamilyArg,
    #[command(flatten)]
    full: FullArg,
    #[command(flatten)]
    svg: SvgArg,
    #[command(flatten)]
    save: SaveArgs,
    #[command(flatten)]
    result: ResultArgs<StampReport>,
}

fn failure(error: StampFailure) -> Failure {
    match error {
        StampFailure::Key(_) => Failure::usage(error),
        StampFailure::Unknown(..) | StampFailure::KeyFile(_) | StampFailure::System(_) => Failure::run(error),
    }
}

impl StampArgs {
    pub(super) fn run(self) -> Outcome {
        let key = self.key.as_deref().map(stamp::read_key).transpose().map_err(failure)?;
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let (interval_us, duration_us) = (micros(self.interval), micros(self.duration.duration));
        let packets = duration_us.div_ceil(interval_us.max(1)).max(1);
        // The extension and, with a key, its code.
        let (extensions, code) = (!self.no_extensions, if key.is_some() { 20 } else { 0 });
        let least = base_bytes(key.as_ref()) as u64 + if extensions { 8 + code } else { 0 };
        let bytes = self.size.unwrap_or(least);
        if bytes < least || (least + 1..least + 4).contains(&bytes) {
            return Err(Failure::usage(format!(
                "cannot send {bytes} bytes: a packet with what is asked for has {least} bytes, or at least {}; use another --size",
                least + 4
            )));
        }
        let plan = StampPlan {
            packets: u32::try_from(packets).unwrap_or(u32::MAX),
            interval_us,
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
            dscp: self.dscp,
            authenticated: key.is_some(),
            extensions,
        };
        plan.check().map_err(Failure::usage)?;
        check_output(self.result.output())?;
        let peer = stamp::resolve(&self.host, self.family.family()).map_err(failure)?;
        let (stop, begun) = (stop_on_interrupt()?, Begun::now().map_err(Failure::run)?);
        let mut shown = 0;
        let record = stamp::measure(&plan, &self.host, peer, key.as_ref(), &stop, &mut |packets| {
            // Between the packets of a long interval there is nothing new to tell.
            if !self.result.quiet && packets.len() > shown {
                crate::failure::note!("{}", progress(packets, shown));
            }
            shown = packets.len();
        });
        let record = record.map_err(Failure::run)?;
        let report = stamp::report(&record);
        deliver(
            &self.result.write(&report, style())?,
            || self.save.keep(&begun, self.result.quiet, |begun| stored::keep_new(&report, begun)),
            &[
                (self.svg.svg.as_deref(), &|| Ok(picture(&report))),
                (self.result.output(), &|| narrows_render::json::pretty(&report).map_err(Failure::run)),
            ],
        )?;
        match (record.interrupted, report.replies) {
            (true, _) => Ok(INTERRUPTED),
            (false, 0) => Ok(1),
            (false, _) => Ok(0),
        }
    }
}
