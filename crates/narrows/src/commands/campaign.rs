//! `narrows campaign`: an unattended matrix of runs, and the effect of each factor.

use crate::failure::{Failure, Outcome};
use crate::flags::WayArgs;
use crate::output::print;
use crate::session::{INTERRUPTED, open_session, stop_on_interrupt, tuner};
use narrows_model::{Family, Place, Target};
use narrows_runner::Stop;
use narrows_runner::campaign::plan::{self, CampaignPlan};
use narrows_runner::campaign::{self, Ended, Surroundings, results};
use narrows_runner::ends::{Ends, EndsError};
use narrows_runner::forwarding::files;
use narrows_runner::live::{LiveEnds, LiveInstruments};
use std::path::PathBuf;

/// Measure the effect of settings in randomised blocks
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    narrows campaign plan.toml --dry-run      print each step and the total time\n  \
    narrows campaign plan.toml --token-file token\n\
    Ctrl-C keeps all runs; the same command continues. All settings are rolled back after each run.\n\
    Settings of the server need `narrows serve --allow-tune` there.")]
pub(crate) struct Args {
    /// Plan file (TOML)
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    /// Print the steps and the total time; measure nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not show progress
    #[arg(long, short = 'q')]
    quiet: bool,
    /// Allow factors by command that cannot be rolled back
    #[arg(long)]
    no_undo: bool,
    #[command(flatten)]
    way: WayArgs,
}

impl Args {
    pub(crate) fn run(self) -> Outcome {
        let text = files::read_plan(&self.plan).map_err(Failure::usage)?;
        let plan = plan::parse(&text, self.no_undo).map_err(|problems| {
            let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
            Failure::usage(format!("cannot read the plan {}:\n{}", self.plan.display(), lines.join("\n")))
        })?;
        let (tag, steps) = (campaign::tag(&plan), campaign::steps(&plan));
        let done = results::kept(&tag).map_err(Failure::run)?;
        let left: Vec<_> = steps.iter().filter(|it| !done.contains_key(&it.number)).cloned().collect();
        let seconds = campaign::expected_ms(&plan, &left).div_ceil(1000);
        if self.dry_run {
            let line = |it: &campaign::schedule::Step| {
                let host = &plan.hosts[it.host];
                format!("{:>5}  block {:<3} {host}  {}\n", it.number, it.block, plan.words(&it.cell))
            };
            let lines: String = left.iter().map(line).collect();
            print(&format!("{lines}{} runs, {} done, {seconds} s left; {tag}\n", steps.len(), done.len()))?;
            return Ok(0);
        }
        let mut around = Around { args: &self, plan: &plan, stop: stop_on_interrupt()? };
        for undoing in tuner("campaign")?.recover().map_err(Failure::run)? {
            around.line(&format!("rolled back what a killed campaign left: {}", undoing.entry.change.set));
        }
        around.line(&format!("{} runs, {} done, {seconds} s left; {tag}", steps.len(), done.len()));
        let ended = campaign::perform(&plan, &left, &mut around).map_err(Failure::run)?;
        let done = results::done(&tag).map_err(Failure::run)?;
        print(&results::text(&plan, &steps, &done))?;
        match ended {
            Ended::Complete => Ok(0),
            Ended::Interrupted => Ok(INTERRUPTED),
            Ended::HostsLost(lost) => Err(Failure::run(format!(
                "cannot finish the campaign: host lost: {}; the same command continues",
                lost.join("; ")
            ))),
        }
    }
}

struct Around<'a> {
    args: &'a Args,
    plan: &'a CampaignPlan,
    stop: Stop,
}

impl Surroundings for Around<'_> {
    fn connect(&mut self, host: &str) -> Result<(Box<dyn Ends>, Target), EndsError> {
        let lost = |failure: Failure| EndsError::Lost(failure.to_string());
        let own = || tuner("campaign").map_err(|failure| EndsError::Failed(failure.to_string()));
        if !self.plan.needs_server() {
            let target = Target { asked: host.to_owned(), address: String::new(), family: Family::Ipv4 };
            return Ok((Box::new(campaign::Here { tuner: own()?, stop: self.stop.clone() }), target));
        }
        let instruments = LiveInstruments { collect: true };
        let remote = self.args.way.connect(host, true, instruments).map_err(lost)?;
        if self.plan.sets(Place::Server) && !remote.hello().permissions.tune {
            return Err(EndsError::Failed(format!(
                "cannot tune {host}: its server does not allow it; restart it with `narrows serve --allow-tune`"
            )));
        }
        let session = open_session(&remote, &self.stop, self.args.quiet).map_err(lost)?;
        let target = remote.target();
        Ok((Box::new(LiveEnds::new(remote, session, instruments, Some(own()?), self.stop.clone())), target))
    }

    fn stopped(&self) -> bool {
        self.stop.is_set()
    }

    fn line(&mut self, text: &str) {
        if !self.args.quiet {
            anstream::eprintln!("{text}");
        }
    }
}
