//! `narrows measure responsiveness`: responsiveness under working conditions (draft-ietf-ippm-responsiveness-09).

use crate::commands::generate::check_output;
use crate::failure::{Failure, Outcome};
use crate::flags::values::duration;
use crate::flags::{DirectionWord, ResultArgs, SaveArgs, SvgArg, TrustArgs};
use crate::output::{deliver, style};
use crate::session::{INTERRUPTED, stop_on_interrupt};
use clap::Args;
use narrows_model::Ending;
use narrows_model::load::responsiveness::{ResponsivenessPlan, ResponsivenessReport};
use narrows_render::responsiveness::{picture, progress};
use narrows_runner::responsiveness::{self, ResponsivenessFailure};
use narrows_runner::stored::{self, Begun};
use std::time::Duration;

#[derive(Debug, Args)]
#[command(mut_arg("svg", |it| it.help("Write a picture over time to this file (SVG)").hide_short_help(true)), after_help = "Examples:\n  \
    narrows measure responsiveness server            narrows serve --responsiveness, known by its token\n  \
    narrows measure responsiveness server -d up --insecure\n  \
    narrows measure responsiveness https://host/.well-known/nq --ca /etc/ssl/certs/ca-certificates.crt")]
pub(super) struct ResponsivenessArgs {
    /// Server: HOST[:4043], or the https:// URL of a configuration
    host: String,
    /// Direction of the load; both: down, then up
    #[arg(long, short = 'd', value_enum, default_value = "both", help_heading = "Load")]
    direction: DirectionWord,
    /// Longest load of a direction
    #[arg(long, short = 't', value_parser = duration, value_name = "TIME", default_value = "20s", help_heading = "Load")]
    limit: Duration,
    /// Interval at which stability is evaluated
    #[arg(long, short = 'i', value_parser = duration, value_name = "TIME", default_value = "1s", help_heading = "Load")]
    interval: Duration,
    /// Most connections with load
    #[arg(long, value_name = "N", default_value_t = 16, help_heading = "Load")]
    connections: u32,
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    svg: SvgArg,
    #[command(flatten)]
    save: SaveArgs,
    #[command(flatten)]
    result: ResultArgs<ResponsivenessReport>,
}

fn failure(error: ResponsivenessFailure) -> Failure {
    match error {
        ResponsivenessFailure::Target(..) | ResponsivenessFailure::NoTrust(_) => Failure::usage(error),
        ResponsivenessFailure::Trust(_) | ResponsivenessFailure::Server(..) | ResponsivenessFailure::Here(_) => {
            Failure::run(error)
        }
    }
}

impl ResponsivenessArgs {
    pub(super) fn run(self) -> Outcome {
        let target = responsiveness::parse(&self.host).map_err(failure)?;
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let plan = ResponsivenessPlan {
            direction: self.direction.into(),
            interval_ms: millis(self.interval),
            limit_ms: millis(self.limit),
            connections_max: self.connections,
            ..ResponsivenessPlan::default()
        };
        plan.check().map_err(Failure::usage)?;
        check_output(self.result.output())?;
        let trust = self.trust.trust(&target.url.host)?;
        let trust = trust.ok_or_else(|| failure(ResponsivenessFailure::NoTrust(target.url.authority())))?;
        let (stop, begun) = (stop_on_interrupt()?, Begun::now().map_err(Failure::run)?);
        let record = responsiveness::measure(&plan, &target, &trust, self.trust.family.family(), &stop, &mut |load| {
            if !self.result.quiet {
                crate::failure::note!("{}", progress(load, &plan));
            }
        });
        let record = record.map_err(failure)?;
        let report = responsiveness::report(&record);
        deliver(
            &self.result.write(&report, style())?,
            || self.save.keep(&begun, self.result.quiet, |begun| stored::keep_new(&record, begun)),
            &[
                (self.svg.svg.as_deref(), &|| Ok(picture(&report))),
                (self.result.output(), &|| narrows_render::json::pretty(&report).map_err(Failure::run)),
            ],
        )?;
        let known = |it: &narrows_model::load::responsiveness::ResponsivenessDirection| {
            it.responsiveness.is_some() && !matches!(it.ending, Ending::Failed(_))
        };
        match (stop.is_set(), report.directions.iter().all(known)) {
            (true, _) => Ok(INTERRUPTED),
            (false, true) => Ok(0),
            (false, false) => Ok(1),
        }
    }
}
