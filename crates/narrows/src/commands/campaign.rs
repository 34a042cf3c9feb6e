//! `narrows campaign`: an unattended matrix of runs, and the effect of each factor.

use crate::failure::{Failure, Outcome};
use crate::flags::{FormatArg, FullArg, SaveArgs, SvgArg, TuiArg, WayArgs, values};
use crate::output::{deliver, print, printed};
use crate::session::{INTERRUPTED, open_session, stop_on_interrupt, tuner};
use crate::tui::Tui;
use narrows_model::run::campaign::CampaignReport;
use narrows_model::run::live::CampaignStep;
use narrows_model::{Family, Place, Target};
use narrows_render::campaign::svg;
use narrows_render::live::campaign::CampaignLive;
use narrows_runner::Stop;
use narrows_runner::campaign::plan::{self, CampaignPlan};
use narrows_runner::campaign::{self, Ended, Surroundings, results};
use narrows_runner::ends::{Ends, EndsError};
use narrows_runner::live::{LiveEnds, LiveInstruments};
use narrows_runner::stored::{self, Begun};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Measure the effect of settings in randomised blocks
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("svg", |it| it.help("Write a plot of the effects to this file (SVG)")),
    mut_arg("full", |it| it.help("Show all combinations and interactions")),
    mut_arg("tui", |it| it.help("Show the results so far live in the terminal; q quits").conflicts_with("dry_run")),
    after_help = "Examples:\n  \
    narrows campaign plan.toml --dry-run      print each step and the total time\n  \
    narrows campaign plan.toml --token-file token\n  \
    narrows campaign plan.toml --format csv   one run per line\n\
    Ctrl-C keeps all runs; the same command continues. All settings are rolled back after each run.\n\
    Settings of the server need `narrows serve --allow-tune` there. Details: docs/campaign.md."
)]
pub(crate) struct Args {
    /// Plan file (TOML)
    #[arg(value_name = "PLAN", required_unless_present = "undo")]
    plan: Option<PathBuf>,
    /// Print the steps and the total time; measure nothing
    #[arg(long)]
    dry_run: bool,
    /// Roll back what a killed campaign left on this host; measure nothing
    #[arg(long, conflicts_with = "plan")]
    undo: bool,
    /// Do not show progress
    #[arg(long, short = 'q')]
    quiet: bool,
    /// Largest effect that is none, in % of the mean
    #[arg(long, value_name = "PERCENT", default_value = "1", value_parser = values::percent)]
    margin: f64,
    /// Allow factors by command that cannot be rolled back
    #[arg(long)]
    no_undo: bool,
    #[command(flatten)]
    way: WayArgs,
    #[command(flatten)]
    full: FullArg,
    #[command(flatten)]
    svg: SvgArg,
    #[command(flatten)]
    format: FormatArg<CampaignReport>,
    #[command(flatten)]
    tui: TuiArg,
}

impl Args {
    pub(crate) fn run(self) -> Outcome {
        let Some(file) = &self.plan else { return undo() };
        self.tui.check()?;
        let text = plan::read(file).map_err(Failure::usage)?;
        let plan = plan::parse(&text, self.no_undo).map_err(|problems| {
            let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
            Failure::usage(format!("cannot read the plan {}:\n{}", file.display(), lines.join("\n")))
        })?;
        let (tag, steps) = (campaign::tag(&plan), campaign::steps(&plan));
        let done = results::done(&tag).map_err(Failure::run)?;
        let left = results::left(&steps, &done);
        let mut around = Around::new(&self.way, self.quiet, &plan)?;
        let rtts = campaign::rtts(&plan, &mut around);
        let seconds = campaign::expected_ms(&plan, &left, &rtts).div_ceil(1000);
        if self.dry_run {
            let line = |it: &campaign::schedule::Step| {
                let host = &plan.hosts[it.host];
                format!("{:>5}  block {:<3} {host}  {}\n", it.number, it.block, plan.words(&it.cell))
            };
            let lines: String = left.iter().map(line).collect();
            print(&format!("{lines}{} runs, {} done, {seconds} s left; {tag}\n", steps.len(), done.len()))?;
            return Ok(0);
        }
        for undoing in tuner("campaign")?.recover().map_err(Failure::run)? {
            around.line(&format!("rolled back what a killed campaign left: {}", undoing.entry.change.set));
        }
        around.line(&format!("{} runs, {} done, {seconds} s left; {tag}", steps.len(), done.len()));
        around.live = self.tui.open(CampaignLive::new(self.full.full), &around.stop)?.map(|it| (it, self.margin));
        around.kept();
        let ended = campaign::perform(&plan, &left, &mut around).map_err(Failure::run);
        around.live.take().map(|(live, _)| live.close()).transpose()?;
        let ended = ended?;
        let mut report = results::report(&plan, self.margin).map_err(Failure::run)?;
        if let Ended::HostsLost(lost) = &ended {
            report.warnings.extend(lost.iter().map(|it| format!("host lost: {it}")));
        }
        let begun = Begun::now().map_err(Failure::run)?;
        // A call that only shows the results again keeps no second copy.
        let save = SaveArgs { no_save: report.runs.len() <= done.len(), tag: vec![report.tag.clone()] };
        deliver(
            &self.format.write(&report, self.full.style())?,
            || save.keep(&begun, self.quiet, |begun| stored::keep_new(&report, begun)),
            &[(self.svg.svg.as_deref(), &|| Ok(svg::picture(&report)))],
        )?;
        match ended {
            Ended::Complete => Ok(0),
            Ended::Interrupted => {
                crate::failure::note!(
                    "interrupted; what was measured is kept, and the same command goes on with the runs that are left"
                );
                Ok(INTERRUPTED)
            }
            Ended::HostsLost(lost) => Err(Failure::run(format!(
                "cannot finish the campaign: host lost: {}; the same command continues",
                lost.join("; ")
            ))),
        }
    }
}

/// Rolls back what killed campaigns left.
fn undo() -> Outcome {
    let undone = tuner("campaign")?.recover().map_err(Failure::run)?;
    let factors = campaign::recover().map_err(Failure::run)?;
    for factor in &factors {
        print(&format!("factor {factor}: rolled back"))?;
    }
    if undone.is_empty() && factors.is_empty() {
        return printed("no campaign left anything to roll back");
    }
    if undone.is_empty() { Ok(0) } else { super::tune::print_undone(undone, "") }
}

/// What a campaign, or a sweep over factors, needs around it.
pub(super) struct Around<'a> {
    way: &'a WayArgs,
    quiet: bool,
    plan: &'a CampaignPlan,
    stop: Stop,
    rtt_us: BTreeMap<String, Option<u64>>,
    /// The live view, and the largest effect that is none in it.
    live: Option<(Tui<CampaignLive>, f64)>,
}

impl<'a> Around<'a> {
    pub(super) fn new(way: &'a WayArgs, quiet: bool, plan: &'a CampaignPlan) -> Result<Self, Failure> {
        Ok(Self { way, quiet, plan, stop: stop_on_interrupt()?, rtt_us: BTreeMap::new(), live: None })
    }
}

impl Surroundings for Around<'_> {
    fn rtt_us(&mut self, host: &str) -> Option<u64> {
        if let Some(known) = self.rtt_us.get(host) {
            return *known;
        }
        let rtts = self.way.connect(host, true, LiveInstruments::Nothing);
        let rtts = rtts.map_err(|failure| failure.to_string());
        let rtt = match rtts.and_then(|it| it.idle_rtt_us(3).map_err(|error| error.to_string())) {
            Ok(rtts) => rtts.first().copied(),
            Err(why) => {
                self.line(&format!("{host}: {why}; the expected time is without its RTT"));
                None
            }
        };
        self.rtt_us.insert(host.to_owned(), rtt);
        rtt
    }

    fn connect(&mut self, host: &str) -> Result<(Box<dyn Ends>, Target), EndsError> {
        let lost = |failure: Failure| EndsError::Lost(failure.to_string());
        let own = || tuner("campaign").map_err(|failure| EndsError::Failed(failure.to_string()));
        if !self.plan.needs_server() {
            let target = Target { asked: host.to_owned(), address: String::new(), family: Family::Ipv4 };
            return Ok((Box::new(campaign::Here { tuner: own()?, stop: self.stop.clone() }), target));
        }
        let instruments = LiveInstruments::All;
        let remote = self.way.connect(host, true, instruments).map_err(lost)?;
        if self.plan.sets(Place::Server) && !remote.hello().permissions.tune {
            return Err(EndsError::Failed(format!(
                "cannot tune {host}: its server does not allow it; restart it with `narrows serve --allow-tune`"
            )));
        }
        let session = open_session(&remote, &self.stop, self.quiet || self.live.is_some()).map_err(lost)?;
        let target = remote.target();
        Ok((Box::new(LiveEnds::new(remote, session, instruments, Some(own()?), self.stop.clone())), target))
    }

    fn stopped(&self) -> bool {
        self.stop.is_set()
    }

    fn begins(&mut self, step: &CampaignStep) {
        match &self.live {
            Some((live, _)) => live.update(|view| view.begins(step)),
            None => self.line(&step.to_string()),
        }
    }

    fn kept(&mut self) {
        if let Some((live, margin)) = &self.live {
            // What cannot be read now is said at the end.
            if let Ok(report) = results::report(self.plan, *margin) {
                live.update(|view| view.results(report));
            }
        }
    }

    fn line(&mut self, text: &str) {
        if let Some((live, _)) = &self.live {
            live.update(|view| view.say(text));
        } else if !self.quiet {
            crate::failure::note!("{text}");
        }
    }
}
