//! `narrows search`: the highest rate within a loss goal.

use crate::failure::{Failure, Outcome};
use crate::flags::values::{duration, millis, percent, rate, ratio};
use crate::flags::{
    DirectionArg, DurationArg, FullArg, RemoteArgs, ResultArgs, SaveArgs, SizeArg, SocketArgs, StreamsArg, SvgArg,
};
use crate::output::{print, style, write_files};
use crate::session::{Connection, LiveLines};
use clap::{Args as ClapArgs, ValueEnum};
use narrows_model::run::SearchOrder;
use narrows_model::run::search_report::SearchReport;
use narrows_model::{Direction, Ending, Family, Goal, Plan, SearchMethod, UdpPlan, UdpRate};
use narrows_render::Format;
use narrows_render::search::{curve, svg, text};
use narrows_runner::ends::EndsError;
use narrows_runner::search::{self, SearchSpec, SpecError};
use narrows_runner::{search_report, stored};
use std::time::Duration;

/// Search for the highest UDP rate within a loss goal
#[derive(Debug, ClapArgs)]
#[command(
    mut_arg("duration", |it| it.alias("trial").default_value("1s").help("Duration of a trial")),
    mut_arg("full", |it| it.help("Show what the time was spent on")),
    mut_arg("svg", |it| it.help("Write a plot of the trials, or of the loss curve, to this file (SVG)")),
    after_help = "Examples:\n  \
    narrows search server       NDR and PDR of the largest unfragmented datagram\n  \
    narrows search server --size 64 --direction down --goal ndr --goal strict=0:0\n  \
    narrows search server --preset rfc2544 --size 1472\n  \
    narrows search server --method loss-curve --max 1G --svg loss.svg\n\
    A goal is NAME=LOSS[:EXCEED]: loss ratio, and share of trials that may exceed it, each from 0 to below 1. ndr is \
    0:0.5, pdr is 0.005:0.5."
)]
pub(crate) struct Args {
    #[command(flatten)]
    remote: RemoteArgs,
    #[command(flatten)]
    direction: DirectionArg,
    #[command(flatten)]
    size: SizeArg,
    #[command(flatten)]
    streams: StreamsArg,
    #[command(flatten)]
    sockets: SocketArgs,
    /// Search method
    #[arg(long, value_enum, default_value = "mlr", hide_short_help = true)]
    method: Method,
    /// Search goal: ndr, pdr or NAME=LOSS[:EXCEED]; repeatable (default: ndr and pdr)
    #[arg(long, value_parser = goal, value_name = "GOAL")]
    goal: Vec<Goal>,
    /// Preset of goals, durations and method
    #[arg(long, value_enum, conflicts_with_all = ["goal", "method", "duration", "sum"])]
    preset: Option<Preset>,
    /// Minimum load (default: 0.1 % of the maximum)
    #[arg(long, value_parser = rate, value_name = "RATE", hide_short_help = true)]
    min: Option<UdpRate>,
    /// Maximum load (default: the calibrated maximum of the tester)
    #[arg(long, value_parser = rate, value_name = "RATE")]
    max: Option<UdpRate>,
    #[command(flatten)]
    duration: DurationArg,
    /// Total trial time that decides one load (default: 11s, or 2.3s to 5s where a second witness agrees)
    #[arg(long, value_parser = duration, value_name = "TIME", hide_short_help = true)]
    sum: Option<Duration>,
    /// Width of the result, in % of its upper bound
    #[arg(long, value_parser = percent, value_name = "PERCENT", default_value = "0.5", hide_short_help = true)]
    width: f64,
    /// Loss-curve step, in % of the maximum load
    #[arg(long, value_parser = percent, value_name = "PERCENT", default_value = "10", hide_short_help = true)]
    step: f64,
    /// Count what a queue still held when a trial ended as forwarded (RFC 2544)
    #[arg(long, hide_short_help = true)]
    ignore_queue: bool,
    /// Maximum duration of the search
    #[arg(long, value_parser = duration, value_name = "TIME", default_value = "5m", hide_short_help = true)]
    limit: Duration,
    /// Skip tester calibration; needs --max
    #[arg(long, alias = "unqualified", hide_short_help = true)]
    skip_calibration: bool,
    /// Skip the path profile and start at the maximum load
    #[arg(long, hide_short_help = true)]
    no_profile: bool,
    #[command(flatten)]
    svg: SvgArg,
    #[command(flatten)]
    full: FullArg,
    #[command(flatten)]
    save: SaveArgs,
    #[command(flatten)]
    result: ResultArgs<SearchReport>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Method {
    /// Several trials per load, all goals in one search (MLRsearch)
    Mlr,
    /// One trial per load (RFC 2544 as commonly automated)
    Bisection,
    /// Loss at decreasing loads (RFC 2544, section 26.3)
    LossCurve,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Preset {
    /// RFC 2544 throughput: no loss in one 60 s trial, bisection
    Rfc2544,
    /// ETSI TST009: no loss in one of two 60 s trials
    Tst009,
}

fn goal(word: &str) -> Result<Goal, String> {
    const HOW: &str = "write ndr, pdr or NAME=LOSS[:EXCEED] such as loose=0.01:0.25";
    match word {
        "ndr" => return Ok(Goal::ndr()),
        "pdr" => return Ok(Goal::pdr()),
        _ => {}
    }
    let bad = || format!("invalid goal `{word}`; {HOW}");
    let (name, ratios) = word.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(bad)?;
    let (loss, exceed) = ratios.split_once(':').unwrap_or((ratios, "0.5"));
    let ratio = |text: &str| ratio(text).ok().filter(|ratio| *ratio < 1.0).ok_or_else(bad);
    Ok(Goal { name: name.to_owned(), loss_ratio: ratio(loss)?, exceed_ratio: ratio(exceed)?, ..Goal::ndr() })
}

impl Args {
    pub(crate) fn run(self) -> Outcome {
        if !(self.width > 0.0 && self.width < 1.0) {
            return Err(Failure::usage(format!(
                "invalid --width {} %; write a value from 0.1 to 10",
                self.width * 100.0
            )));
        }
        let direction = self.direction.one("a search")?;
        // Counters around each trial would take longer than the trial.
        let connection = Connection::open(&self.remote, false, false)?;
        let target = connection.remote.target();
        let spec = self.spec(direction, target.family)?;
        let name = stored::new_name().map_err(Failure::run)?;
        let mut saved = self.save.run_file(self.result.output())?;
        let (style, quiet, text) = (style(), self.result.quiet, self.result.format() == Format::Text);
        let mut ends = connection.ends(None, quiet)?;
        let lines = LiveLines::default();
        let begin = &mut |order: &SearchOrder| {
            if text {
                let datagrams = order.unit.words(order.load.sizes.list());
                let header = text::header(&target, direction.flows()[0], &order.plan, &datagrams, style);
                lines.print(Ok(header));
            }
        };
        let run = search::run(&mut ends, &spec, target.clone(), name, begin, &mut |number, trial, bounds| {
            if text && !quiet {
                lines.print(Ok(text::trial(number, trial, bounds, style)));
            }
        })
        .map_err(|error| match error {
            SpecError::Plan(_) => Failure::usage(error),
            SpecError::Ends(EndsError::Interrupted) => Failure::interrupted(),
            SpecError::Ends(_) | SpecError::Search(_) => Failure::run(error),
        })?;
        drop(ends);
        let report = search_report(&run);
        if run.ending == Ending::Interrupted && report.as_ref().is_none_or(|it| it.trials.is_empty()) {
            return Err(Failure::interrupted());
        }
        saved.save(&run);
        let report = report.ok_or_else(|| super::nothing_measured(&run))?;
        print(&match self.result.format() {
            Format::Text => text::summary(&report, self.full.style()),
            _ => self.result.write(&report, self.full.style())?,
        })?;
        let place = saved.report("run", quiet, "");
        let picture = || Ok(if report.curve.is_empty() { svg::picture(&report) } else { curve::picture(&report) });
        let place = place.and(write_files(saved.id(), &[(self.svg.svg.as_deref(), &picture)]));
        lines.end(&run.ending).and_then(|code| place.map(|()| code))
    }

    fn spec(&self, direction: Direction, family: Family) -> Result<SearchSpec, Failure> {
        let load = UdpPlan {
            streams: self.streams.streams,
            direction,
            sizes: self.size.size.datagrams(family)?,
            send_buffer_bytes: self.sockets.send_buffer_bytes()?,
            receive_buffer_bytes: self.sockets.receive_buffer_bytes()?,
            dscp: self.sockets.dscp,
            ..UdpPlan::default()
        };
        load.check().map_err(Failure::usage)?;
        let (trial_ms, limit_ms) = (self.duration.ms(), millis(self.limit));
        let (method, mut goals, max_search_ms) = match self.preset {
            Some(Preset::Rfc2544) => (SearchMethod::Bisection, vec![Goal::rfc2544()], limit_ms.max(3_600_000)),
            Some(Preset::Tst009) => (SearchMethod::Mlr, vec![Goal::tst009()], limit_ms.max(2 * 3_600_000)),
            None => {
                let method = match self.method {
                    Method::Mlr => SearchMethod::Mlr,
                    Method::Bisection => SearchMethod::Bisection,
                    Method::LossCurve => SearchMethod::LossCurve { step: self.step, trial_ms },
                };
                let goals = if self.goal.is_empty() { vec![Goal::ndr(), Goal::pdr()] } else { self.goal.clone() };
                let sum_ms = self.sum.map_or(11_000, millis);
                (method, goals.into_iter().map(|goal| goal.timed(trial_ms, sum_ms)).collect(), limit_ms)
            }
        };
        for goal in &mut goals {
            goal.width = self.width;
        }
        let (min, max, calibrate) = (self.min, self.max, !self.skip_calibration);
        // A preset is a procedure of others: its loads and durations stay as they are.
        let (profile, shorten) = (!self.no_profile && self.preset.is_none(), self.sum.is_none());
        let sustained = method == SearchMethod::Mlr && self.preset.is_none() && !self.ignore_queue;
        Ok(SearchSpec { load, min, max, calibrate, profile, shorten, sustained, method, goals, max_search_ms })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_read_as_users_write_them() {
        assert_eq!(goal("ndr"), Ok(Goal::ndr()));
        let loose = goal("loose=1%:0.25").expect("a goal");
        assert_eq!((loose.name.as_str(), loose.loss_ratio, loose.exceed_ratio), ("loose", 0.01, 0.25));
        assert!(goal("x=2").is_err());
        assert!(goal("=0").expect_err("no name").contains("invalid goal"));
    }
}
