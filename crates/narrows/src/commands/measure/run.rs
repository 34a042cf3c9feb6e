//! One plain measurement of any load, from the connection to the result.

use crate::failure::{Failure, Outcome};
use crate::flags::{ResultArgs, SaveArgs, SvgArg, ViewArgs};
use crate::output::{print, write_files, written};
use crate::session::{Far, INTERRUPTED, LiveLines};
use crate::tui::Tui;
use narrows_model::{Ending, Family, LoadPlan, Place, Progress, Run, Target, Trial};
use narrows_render::live::measure::MeasureLive;
use narrows_render::measure::{Lines, Live};
use narrows_render::{Document, Format};
use narrows_runner::measure::{self, Watch};
use narrows_runner::stored::{self, spool::Samples};
use narrows_views::live::{Points, kind};

/// How a measurement is shown, kept and written: the same for each kind of load.
#[derive(Debug, clap::Args)]
pub(super) struct Told<R: Document> {
    #[command(flatten)]
    svg: SvgArg,
    #[command(flatten)]
    view: ViewArgs,
    #[command(flatten)]
    save: SaveArgs,
    #[command(flatten)]
    result: ResultArgs<R>,
}

/// Prints the lines of a measurement as they come.
struct Printer<'a> {
    target: &'a Target,
    /// The form of the lines; `None` if nothing is printed before the end.
    form: Option<Lines>,
    intervals: bool,
    live: Option<Box<dyn Live>>,
    lines: LiveLines,
}

/// Shows the lines of a measurement in a live view, with its curves.
struct Drawn<'a> {
    target: &'a Target,
    form: Lines,
    live: Option<Box<dyn Live>>,
    points: Points,
    tui: &'a Tui<MeasureLive>,
}

impl Watch for Drawn<'_> {
    fn begins(&mut self, plan: &LoadPlan) {
        let live = narrows_runner::live(plan);
        let head = live.start(self.target, self.form, true).unwrap_or_default();
        self.tui.update(|view| view.begin(&head));
        (self.live, self.points) = (Some(live), Points::default());
    }

    fn progress(&mut self, place: Place, progress: &Progress) {
        let lines = self.live.as_mut().and_then(|live| live.push(place, progress, self.form).ok()).unwrap_or_default();
        let points = self.points.take(place, progress);
        self.tui.update(|view| {
            view.add(&lines);
            points.iter().for_each(|point| view.point(point));
        });
    }

    fn ended(&mut self, trial: &Trial) {
        let lines = self.live.as_ref().and_then(|live| live.rest(trial, self.form).ok()).unwrap_or_default();
        self.tui.update(|view| view.add(&lines));
    }
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

/// Measures the load and prints the result. `far` connects; `plan` makes the plan for an address family; invalid flags fail before the
/// connection. `finish` gets the run after the result was printed.
pub(super) fn run<R: Document>(
    far: impl FnOnce() -> Result<Far, Failure>,
    Told { svg, view, save, result }: &Told<R>,
    plan: impl Fn(Family) -> Result<LoadPlan, Failure>,
    finish: impl FnOnce(&Run) -> Result<(), Failure>,
) -> Outcome {
    plan(Family::Ipv4)?;
    view.tui.check()?;
    let Far { target, open, stop, .. } = far()?;
    let plan = plan(target.family)?;
    let name = stored::new_name().map_err(Failure::run)?;
    let mut saved = save.run_file(result.output())?;
    let style = view.full.style();
    let mut ends = open(None, result.quiet)?;
    ends.refuses(&plan).map_or(Ok(()), |why| Err(Failure::usage(why)))?;
    let (form, intervals) = match result.format() {
        Format::Text => (Some(Lines::Text(style)), !result.quiet),
        Format::Ndjson => (Some(Lines::Ndjson), true),
        _ => (None, false),
    };
    let mut printer = Printer { target: &target, form, intervals, live: None, lines: LiveLines::default() };
    let tui = view.tui.open(MeasureLive::new(kind(&plan)), &stop)?;
    let shown = Lines::Text(style);
    let mut drawn =
        tui.as_ref().map(|tui| Drawn { target: &target, form: shown, live: None, points: Points::default(), tui });
    let watch: &mut dyn Watch = drawn.as_mut().map_or(&mut printer as _, |drawn| drawn as _);
    let mut samples = Samples::new(&name.0, !save.no_save);
    let run = measure::measure(&mut *ends, &plan, target.clone(), name, &mut samples.beside(watch));
    drop(ends);
    // Before the report is made, which takes as much memory again.
    if !run.trials.is_empty() {
        saved.save(&run);
    }
    if let Some(why) = samples.finish(&run) {
        crate::failure::note!("cannot keep all samples of the run: {why}");
    }
    let report = narrows_runner::measurement(&run);
    if let Some(tui) = tui {
        let summary = report.as_ref().and_then(|report| report.summary(shown).ok()).unwrap_or_default();
        tui.update(|view| view.end(&summary));
        tui.finish()?;
    }
    let Some(report) = report else {
        return match run.ending {
            Ending::Failed(why) => Err(Failure::run(why)),
            Ending::Interrupted => Ok(INTERRUPTED),
            Ending::Complete => Err(Failure::run("nothing was measured")),
        };
    };
    print(&match form {
        Some(form) => report.summary(form).map_err(Failure::run)?,
        None => written(&*report, result.format(), style)?,
    })?;
    let place = saved.report("run", result.quiet, "");
    let drawn = write_files(saved.id(), &[(svg.svg.as_deref(), &|| Ok(report.picture()))]);
    let place = place.and(drawn).and(finish(&run)).and(arrived(&run));
    printer.lines.end(&run.ending).and_then(|code| place.map(|()| code))
}

/// A measurement in which nothing arrived has failed, as one without an answer has.
fn arrived(run: &Run) -> Result<(), Failure> {
    match narrows_runner::nothing_arrived(run).filter(|_| run.ending == Ending::Complete) {
        Some(at) => Err(Failure::run(format!(
            "nothing arrived at the {at}: its streams were opened, but no data passed; find out why with `narrows diagnose`"
        ))),
        None => Ok(()),
    }
}
