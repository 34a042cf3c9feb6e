//! `narrows search`: the highest rate within a loss goal.

use crate::failure::{Failure, Outcome};
use crate::flags::load::{DirectionArg, SocketArgs, StreamsArg};
use crate::flags::output::{OutputArg, QuietArg, SvgArg};
use crate::flags::remote::RemoteArgs;
use crate::flags::size::SizeArg;
use crate::flags::time::DurationArg;
use crate::flags::values::{duration, millis, percent, rate, ratio};
use crate::output::{formats, print, style, written};
use crate::session::{open_session, stop_on_interrupt};
use clap::{Args as ClapArgs, ValueEnum};
use narrows_model::run::search::{Goal, SearchMethod, SearchPlan};
use narrows_model::run::search_report::SearchReport;
use narrows_model::run::{Ending, RunPlan, SearchOrder};
use narrows_model::{UdpPlan, UdpRate, words::units};
use narrows_render::Format;
use narrows_render::search::text;
use narrows_runner::live::{LiveEnds, LiveInstruments};
use narrows_runner::{measure, search, stored};
use std::time::Duration;

/// Search the highest rate of UDP within a loss goal
#[derive(Debug, ClapArgs)]
#[command(
    mut_arg("duration", |it| it.alias("trial").default_value("1s").help("Length of a trial")),
    mut_arg("svg", |it| it.help("Draw the trials (of a loss curve: the curve) into this file (SVG)")),
    mut_arg("quiet", |it| it.help("No line for each trial")),
    after_help = "Examples:\n  \
    narrows search server                                   NDR and PDR of the largest unfragmented datagram\n  \
    narrows search server --size 64 --direction down --goal ndr --goal strict=0:0\n  \
    narrows search server --preset rfc2544 --size 1472\n  \
    narrows search server --method loss-curve --max 1G --svg loss.svg\n\
    A goal is NAME=LOSS[:EXCEED]: the loss ratio, and the part of the trials that may lose more (0 to below 1); \
    ndr is 0:0.5, pdr 0.005:0.5."
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
    /// How loads are chosen
    #[arg(long, value_enum, default_value = "mlr")]
    method: Method,
    /// What is sought: ndr, pdr, or NAME=LOSS[:EXCEED]; several times for several goals in one search
    #[arg(long, value_parser = goal, value_name = "GOAL")]
    goal: Vec<Goal>,
    /// A set of goals, durations and method
    #[arg(long, value_enum, conflicts_with_all = ["goal", "method", "duration", "sum"])]
    preset: Option<Preset>,
    /// Lowest load that is tried (default: a thousandth of the highest)
    #[arg(long, value_parser = rate, value_name = "RATE")]
    min: Option<UdpRate>,
    /// Highest load that is tried (default: what the tester itself carries)
    #[arg(long, value_parser = rate, value_name = "RATE")]
    max: Option<UdpRate>,
    #[command(flatten)]
    duration: DurationArg,
    /// Trials at one load after which it is decided
    #[arg(long, value_parser = duration, value_name = "TIME", default_value = "11s")]
    sum: Duration,
    /// The search ends when the bounds are this close, in per cent of the upper one
    #[arg(long, value_parser = percent, value_name = "PERCENT", default_value = "0.5")]
    width: f64,
    /// By how many per cent of the highest load a loss curve falls each time
    #[arg(long, value_parser = percent, value_name = "PERCENT", default_value = "10")]
    step: f64,
    /// The search ends after this time
    #[arg(long, value_parser = duration, value_name = "TIME", default_value = "5m")]
    limit: Duration,
    /// Do not look first at what the tester itself carries
    #[arg(long)]
    unqualified: bool,
    /// Form of the result
    #[arg(long, value_parser = formats::<SearchReport>(), default_value = "text")]
    format: Format,
    #[command(flatten)]
    svg: SvgArg,
    #[command(flatten)]
    output: OutputArg,
    #[command(flatten)]
    quiet: QuietArg,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Method {
    /// Several trials a load, all goals at once (MLRsearch)
    Mlr,
    /// One trial a load decides (RFC 2544 as it is commonly automated)
    Bisection,
    /// Loss at falling loads (RFC 2544, section 26.3)
    LossCurve,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Preset {
    /// Throughput: no loss in one trial of a minute, plain bisection
    Rfc2544,
    /// No loss in one of two trials of a minute
    Tst009,
}

fn goal(word: &str) -> Result<Goal, String> {
    const HOW: &str = "write ndr, pdr or NAME=LOSS[:EXCEED] such as loose=0.01:0.25";
    match word {
        "ndr" => return Ok(Goal::ndr()),
        "pdr" => return Ok(Goal::pdr()),
        _ => {}
    }
    let bad = || format!("`{word}` is no goal; {HOW}");
    let (name, ratios) = word.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(bad)?;
    let (loss, exceed) = ratios.split_once(':').unwrap_or((ratios, "0.5"));
    let ratio = |text: &str| ratio(text).ok().filter(|ratio| *ratio < 1.0).ok_or_else(bad);
    Ok(Goal { name: name.to_owned(), loss_ratio: ratio(loss)?, exceed_ratio: ratio(exceed)?, ..Goal::ndr() })
}

impl Args {
    pub(crate) fn run(self) -> Outcome {
        if !(self.width > 0.0 && self.width < 1.0) {
            return Err(Failure::usage(format!("a width of {} % makes no sense; write 0.1 to 10", self.width * 100.0)));
        }
        let direction = self.direction.one("a search")?;
        let stop = stop_on_interrupt()?;
        // Counters around each trial would take longer than the trial says.
        let instruments = LiveInstruments { collect: false };
        let remote = self.remote.connect(false, instruments)?;
        let target = remote.target();
        let name = stored::new_name().map_err(Failure::run)?;
        let flow = direction.flows()[0];
        let load = UdpPlan {
            streams: self.streams.streams,
            direction,
            sizes: self.size.size.datagrams(target.family)?,
            send_buffer_bytes: self.sockets.send_buffer_bytes()?,
            receive_buffer_bytes: self.sockets.receive_buffer_bytes()?,
            dscp: self.sockets.dscp,
            ..UdpPlan::default()
        };
        load.check().map_err(Failure::usage)?;
        let style = style();
        let session = open_session(&remote, &stop, self.quiet.quiet)?;
        let mut ends = LiveEnds::new(&remote, session, instruments, None, stop);
        let mut run = measure::empty(&mut ends, target.clone(), name);
        let failed = |error: narrows_runner::ends::EndsError| Failure::run(error);
        let bytes = search::first_look(&mut ends, &load, flow).map_err(failed)?;
        let unit = search::unit(&load.sizes, bytes, target.family);
        let tester =
            if self.unqualified { None } else { Some(search::qualify(&mut ends, &load, bytes).map_err(failed)?) };
        let plan = self.search_plan(tester, &unit)?;
        if self.format == Format::Text {
            print(&text::header(&target, flow, &plan, &unit, style))?;
        }
        let mut broken = None;
        let searched = search::search(&mut ends, &load, &plan, &mut |number, trial, bounds| {
            if self.quiet.quiet || self.format != Format::Text {
                return;
            }
            if let Err(why) = print(&text::trial(number, trial, bounds, style)) {
                broken.get_or_insert(why);
            }
        })
        .map_err(Failure::run)?;
        drop(ends);
        run.plan = RunPlan::Search(SearchOrder { load, unit, plan });
        run.search = Some(searched.record);
        run.ending = searched.ending;
        if let Some(file) = &self.output.output {
            stored::save(&run, file).map_err(Failure::run)?;
        }
        let Some(report) = narrows_runner::search_report(&run) else {
            return Err(Failure::run("nothing was measured"));
        };
        print(&match self.format {
            Format::Text => text::summary(&report, style),
            other => written(&report, other, style)?,
        })?;
        if let Some(file) = &self.svg.svg {
            let picture = if report.curve.is_empty() {
                narrows_render::search::svg::picture(&report)
            } else {
                narrows_render::search::curve::picture(&report)
            };
            stored::write(file, &picture).map_err(Failure::run)?;
        }
        match (broken, run.ending) {
            (Some(why), _) => Err(why),
            (None, Ending::Failed(why)) => Err(Failure::run(why)),
            (None, _) => Ok(0),
        }
    }

    fn search_plan(
        &self,
        tester_max_pps: Option<f64>,
        unit: &narrows_model::run::search_report::LoadUnit,
    ) -> Result<SearchPlan, Failure> {
        #[allow(clippy::cast_precision_loss)] // up to 2^53, as it was read
        let pps = |rate: UdpRate| match rate {
            UdpRate::Bps(bps) => Some(bps as f64 / (8.0 * unit.payload_bytes)),
            UdpRate::Pps(pps) => Some(pps),
            UdpRate::Max => None,
        };
        let max = self.max.and_then(pps).or(tester_max_pps).ok_or_else(|| {
            Failure::usage("without a look at the tester the highest load is not known; give it with --max")
        })?;
        let min = self.min.and_then(pps).unwrap_or_else(|| (max / 1000.0).max(10.0).min(max));
        if min > max {
            let words = |pps: f64| units::bps(pps * unit.payload_bytes * 8.0);
            return Err(Failure::usage(format!(
                "the lowest load, {}, is above the highest, {}",
                words(min),
                words(max)
            )));
        }
        let mut plan =
            SearchPlan { tester_max_pps, max_search_ms: millis(self.limit), ..SearchPlan::between(min, max) };
        match self.preset {
            Some(Preset::Rfc2544) => {
                plan.method = SearchMethod::Bisection;
                plan.goals = vec![Goal::rfc2544()];
                plan.max_search_ms = plan.max_search_ms.max(3_600_000);
            }
            Some(Preset::Tst009) => {
                plan.goals = vec![Goal::tst009()];
                plan.max_search_ms = plan.max_search_ms.max(2 * 3_600_000);
            }
            None => {
                plan.method = match self.method {
                    Method::Mlr => SearchMethod::Mlr,
                    Method::Bisection => SearchMethod::Bisection,
                    Method::LossCurve => SearchMethod::LossCurve { step: self.step, trial_ms: self.duration.ms() },
                };
                if !self.goal.is_empty() {
                    plan.goals.clone_from(&self.goal);
                }
                for goal in &mut plan.goals {
                    goal.final_trial_ms = self.duration.ms();
                    goal.initial_trial_ms = goal.initial_trial_ms.min(goal.final_trial_ms);
                    goal.duration_sum_ms = millis(self.sum).max(goal.final_trial_ms);
                }
            }
        }
        for goal in &mut plan.goals {
            goal.width = self.width;
        }
        plan.check().map_err(Failure::usage)?;
        Ok(plan)
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
        assert!(goal("=0").expect_err("no name").contains("is no goal"));
    }
}
