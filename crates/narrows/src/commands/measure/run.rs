//! One plain measurement of any load, from the connection to the result.

use crate::failure::{Failure, Outcome};
use crate::flags::{FullArg, RemoteArgs, ResultArgs, SaveArgs};
use crate::output::{print, written_measurement};
use crate::session::{Far, INTERRUPTED, LiveLines, far};
use narrows_model::{Ending, Family, LoadPlan, Place, Progress, Run, Target, Trial};
use narrows_render::measure::{Lines, Live};
use narrows_render::{Document, Format};
use narrows_runner::measure::{self, Watch};
use narrows_runner::stored;

/// Prints the lines of a measurement as they come.
struct Printer<'a> {
    target: &'a Target,
    /// The form of the lines; `None` if nothing is printed before the end.
    form: Option<Lines>,
    intervals: bool,
    live: Option<Box<dyn Live>>,
    lines: LiveLines,
}

impl Printer<'_> {
    fn print(&self, text: Result<String, impl std::fmt::Display>) {
        if !matches!(&text, Ok(text) if text.is_empty()) {
            self.lines.print(text.map_err(Failure::run));
        }
    }
}

impl Watch for Printer<'_> {
    fn begins(&mut self, plan: &LoadPlan) {
        let live = narrows_runner::live(plan);
        if let Some(form) = self.form {
            self.print(live.start(self.target, form, self.intervals));
        }
        self.live = Some(live);
    }

    fn progress(&mut self, place: Place, progress: &Progress) {
        if let (Some(form), Some(live), true) = (self.form, &mut self.live, self.intervals) {
            let text = live.push(place, progress, form);
            self.print(text);
        }
    }

    fn ended(&mut self, trial: &Trial) {
        if let (Some(form), Some(live), true) = (self.form, &self.live, self.intervals) {
            self.print(live.rest(trial, form));
        }
    }
}

/// Connects, measures the load and prints the result. `plan` makes the plan for an address family; invalid flags fail before the
/// connection. `collect`: whether counters are read around the load. `finish` gets the run after the result was printed.
pub(super) fn run<R: Document>(
    remote: &RemoteArgs,
    result: &ResultArgs<R>,
    save: &SaveArgs,
    full: &FullArg,
    collect: bool,
    plan: impl Fn(Family) -> Result<LoadPlan, Failure>,
    finish: impl FnOnce(&Run) -> Result<(), Failure>,
) -> Outcome {
    plan(Family::Ipv4)?;
    let Far { target, open, .. } = far(remote, false, collect)?;
    let plan = plan(target.family)?;
    let name = stored::new_name().map_err(Failure::run)?;
    let mut saved = save.run_file(result.output())?;
    let style = full.style();
    let mut ends = open(None, result.quiet)?;
    let (form, intervals) = match result.format() {
        Format::Text => (Some(Lines::Text(style)), !result.quiet),
        Format::Ndjson => (Some(Lines::Ndjson), true),
        _ => (None, false),
    };
    let mut printer = Printer { target: &target, form, intervals, live: None, lines: LiveLines::default() };
    let run = measure::measure(&mut *ends, &plan, target.clone(), name, &mut printer);
    drop(ends);
    let Some(report) = narrows_runner::measurement(&run) else {
        return match run.ending {
            Ending::Failed(why) => Err(Failure::run(why)),
            Ending::Interrupted => Ok(INTERRUPTED),
            Ending::Complete => Err(Failure::run("nothing was measured")),
        };
    };
    saved.save(&run);
    print(&match form {
        Some(form) => report.summary(form).map_err(Failure::run)?,
        None => written_measurement(&*report, result.format(), style)?,
    })?;
    finish(&run)?;
    saved.report("run", result.quiet, "");
    printer.lines.end(&run.ending)
}
