//! Plain measurements of any kind of load: lines while a trial runs, then the result, as text, JSON and newline-delimited JSON
//! (`start`, an `interval` each, `summary`; one object per line). What a kind of load has of its own is in the file of its name.

pub mod rr;
mod series;
mod tcp;
mod udp;
pub(crate) mod udp_words;

pub use udp::UdpMeasurement;

use crate::doc::page::Page;
use crate::format::{AnyDocument, Document, Format, PAGE, Writer};
use crate::json::line;
use crate::style::{Style, Tone};
use crate::words::{clean, columns, millis, share};
use narrows_model::run::measure::{EndCpu, Remark};
use narrows_model::run::report::RunView;
use narrows_model::{Direction, Ending, Flow, Place, Progress, Target, Trial, Unit};
use serde::Serialize;

/// The form of the lines of a measurement.
#[derive(Debug, Clone, Copy)]
pub enum Lines {
    Text(Style),
    Ndjson,
}

/// A kind of load, by its plan: the words for its measurements.
pub trait Shown: Serialize + Clone + 'static {
    /// The view of a stream.
    type Stream: Serialize;
    /// The view of an interval.
    type Interval: Serialize;
    /// The view of the counted part.
    type Summary: Serialize;
    /// The name of the JSON form.
    const SCHEMA: &'static str;

    /// Streams of a flow.
    fn width(&self) -> u32;

    /// What will be measured.
    fn title(&self, target: &Target) -> String;

    /// The heading of the interval lines.
    fn heading(&self, style: Style) -> String;

    /// The stream of an interval (`None`: all together), and whether it is omitted.
    fn about(view: &Self::Interval) -> (Option<u32>, bool);

    /// The figures of an interval, as [`Shown::values`] gives them.
    const FIGURES: &'static [(&'static str, Unit)];

    /// The way of an interval, where it has one, its begin and end in seconds, and its figures.
    fn values(view: &Self::Interval) -> (Option<Flow>, [f64; 2], Vec<Option<f64>>);

    /// The line of an interval.
    fn line(&self, view: &Self::Interval, style: Style) -> String;

    /// The counted part, what it cost both ends, and what went otherwise than planned.
    fn summary(trial: &TrialView<'_, Self>, ending: &Ending, style: Style) -> String;
}

/// One trial of a measurement.
#[derive(Debug)]
pub struct TrialView<'a, L: Shown> {
    plan: &'a L,
    streams: &'a [L::Stream],
    intervals: &'a [L::Interval],
    summary: &'a L::Summary,
    remarks: &'a [Remark],
}

/// The trial of a report or a part of a report, whose fields have these names.
macro_rules! trial_view {
    ($of:expr) => {
        $crate::measure::TrialView {
            plan: &$of.plan,
            streams: &$of.streams,
            intervals: &$of.intervals,
            summary: &$of.summary,
            remarks: &$of.remarks,
        }
    };
}
use trial_view;

/// The view of a measurement that is over.
pub trait Measured: Serialize + Sized + 'static {
    type Load: Shown;

    const WRITERS: &'static [Writer<Self>] = &[Self::TEXT, Self::JSON, Self::NDJSON, Self::CSV, Self::HTML];
    const TEXT: Writer<Self> =
        Writer::new(Format::Text, "One line per interval, then a summary", |it, style| Ok(text(it, style)));
    const JSON: Writer<Self> = Writer::json("One object at the end");
    /// An event a line.
    const NDJSON: Writer<Self> =
        Writer::new(Format::Ndjson, "One line of JSON per interval, then one for the summary", |it, _| events(it));

    /// A row for each interval.
    const CSV: Writer<Self> =
        Writer::new(Format::Csv, "Comma-separated values, one interval of one stream per line", |it, _| {
            Ok(series::csv(it))
        });
    /// A page with a picture.
    const HTML: Writer<Self> = Writer::new(Format::Html, PAGE, |it, _| Ok(series::page(it)));

    /// Which run it was.
    fn run(&self) -> &RunView;

    /// Its trials, in the order in which they were made.
    fn trials(&self) -> Vec<TrialView<'_, Self::Load>>;

    /// What follows the trials as text; `whole`: their lines come before it in the same text.
    fn rest(&self, _whole: bool, _: Style) -> String {
        String::new()
    }

    /// The same as events.
    fn last_events(&self) -> serde_json::Result<String> {
        Ok(String::new())
    }
}

impl<R: Measured> Document for R {
    const NAME: &'static str = "a measurement";
    const FORMATS: &'static [Writer<Self>] = R::WRITERS;
}

/// A measurement that is over, of any load.
pub trait Measurement: AnyDocument {
    /// What follows the last interval.
    fn summary(&self, form: Lines) -> serde_json::Result<String>;

    /// Its intervals as a picture (SVG).
    fn picture(&self) -> String;
}

impl<R: Measured> Measurement for R {
    fn summary(&self, form: Lines) -> serde_json::Result<String> {
        let trials = self.trials().into_iter();
        match form {
            Lines::Text(style) => {
                let of = |trial| R::Load::summary(&trial, &self.run().ending, style);
                Ok(trials.map(of).collect::<String>() + &server_limit(self.run(), style) + &self.rest(false, style))
            }
            Lines::Ndjson => {
                let all: serde_json::Result<String> = trials.map(|trial| summary_event(self.run(), &trial)).collect();
                Ok(all? + &self.last_events()?)
            }
        }
    }

    fn picture(&self) -> String {
        series::picture(self, &series::title(self))
    }
}

/// A measurement that is over, for a terminal.
pub fn text<R: Measured>(report: &R, style: Style) -> String {
    let mut out = String::new();
    for trial in report.trials() {
        if !out.is_empty() {
            out.push('\n');
        }
        out += &header(&report.run().target, trial.plan, true, style);
        out.extend(trial.intervals.iter().filter_map(|view| interval(trial.plan, view, style)));
        out += &R::Load::summary(&trial, &report.run().ending, style);
    }
    out + &server_limit(report.run(), style) + &report.rest(true, style)
}

/// The line that names the server's own limit, where it lowered the load.
fn server_limit(run: &RunView, style: Style) -> String {
    let mut page = Page::new(style);
    let Some(says) = run.server_limit() else { return String::new() };
    page.labelled(&format!("{}  ! ", Place::Server), &says, Some(Tone::Mark));
    page.finish()
}

/// All events of a measurement that is over.
pub fn events<R: Measured>(report: &R) -> serde_json::Result<String> {
    let mut out = String::new();
    for trial in report.trials() {
        out += &start_event(trial.plan)?;
        for view in trial.intervals {
            out += &event("interval", view)?;
        }
        out += &summary_event(report.run(), &trial)?;
    }
    Ok(out + &report.last_events()?)
}

/// A trial that runs: what is shown before its first interval, and each interval when it has ended.
pub trait Live {
    /// What will be measured, and the heading of the intervals where they are shown.
    fn start(&self, target: &Target, form: Lines, intervals: bool) -> serde_json::Result<String>;

    /// Takes the progress of one end; the lines of the intervals that it completes.
    fn push(&mut self, at: Place, progress: &Progress, form: Lines) -> serde_json::Result<String>;

    /// The intervals of the finished trial that were not shown yet.
    fn rest(&self, trial: &Trial, form: Lines) -> serde_json::Result<String>;
}

/// A trial of which nothing is shown while it runs.
#[derive(Debug, Clone, Copy)]
pub struct Silent;

impl Live for Silent {
    fn start(&self, _: &Target, _: Lines, _: bool) -> serde_json::Result<String> {
        Ok(String::new())
    }

    fn push(&mut self, _: Place, _: &Progress, _: Lines) -> serde_json::Result<String> {
        Ok(String::new())
    }

    fn rest(&self, _: &Trial, _: Lines) -> serde_json::Result<String> {
        Ok(String::new())
    }
}

/// What cuts a trial into intervals.
pub trait Intervals<I> {
    /// Takes the progress of one end, and gives the intervals that it completes.
    fn take(&mut self, at: Place, progress: &Progress) -> Vec<I>;

    /// The intervals of the finished trial that were not given yet.
    fn rest(&self, trial: &Trial) -> Vec<I>;
}

/// The running trial of a plan.
pub struct Running<L, C> {
    pub plan: L,
    pub intervals: C,
}

impl<L: Shown, C: Intervals<L::Interval>> Running<L, C> {
    fn show(&self, views: &[L::Interval], form: Lines) -> serde_json::Result<String> {
        match form {
            Lines::Text(style) => Ok(views.iter().filter_map(|view| interval(&self.plan, view, style)).collect()),
            Lines::Ndjson => views.iter().map(|view| event("interval", view)).collect(),
        }
    }
}

impl<L: Shown, C: Intervals<L::Interval>> Live for Running<L, C> {
    fn start(&self, target: &Target, form: Lines, intervals: bool) -> serde_json::Result<String> {
        match form {
            Lines::Text(style) => Ok(header(target, &self.plan, intervals, style)),
            Lines::Ndjson => start_event(&self.plan),
        }
    }

    fn push(&mut self, at: Place, progress: &Progress, form: Lines) -> serde_json::Result<String> {
        let views = self.intervals.take(at, progress);
        self.show(&views, form)
    }

    fn rest(&self, trial: &Trial, form: Lines) -> serde_json::Result<String> {
        self.show(&self.intervals.rest(trial), form)
    }
}

/// One line of newline-delimited JSON: the view, and first of all what it is.
fn event<T: Serialize>(event: &'static str, body: &T) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct Event<'a, T> {
        event: &'static str,
        #[serde(flatten)]
        body: &'a T,
    }
    line(&Event { event, body })
}

/// The first line of a trial: the name of the form and what was asked for.
fn start_event<L: Shown>(plan: &L) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct Start<'a, L> {
        schema: &'static str,
        plan: &'a L,
    }
    event("start", &Start { schema: L::SCHEMA, plan })
}

/// The last line of a trial: which run it was, its streams, remarks and figures.
fn summary_event<L: Shown>(run: &RunView, trial: &TrialView<'_, L>) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct Summary<'a, S, T> {
        run: &'a RunView,
        streams: &'a [S],
        remarks: &'a [Remark],
        #[serde(flatten)]
        summary: &'a T,
    }
    event("summary", &Summary { run, streams: trial.streams, remarks: trial.remarks, summary: trial.summary })
}

/// What will be measured; before the first interval.
fn header<L: Shown>(target: &Target, plan: &L, intervals: bool, style: Style) -> String {
    let mut page = Page::new(style);
    page.labelled("", &plan.title(target), Some(Tone::Strong));
    if intervals {
        page.line(&style.paint(Tone::Faint, plan.heading(style).trim_end()));
    }
    page.finish()
}

/// The line of an interval; `None` where it gets none: one stream is its own sum.
fn interval<L: Shown>(plan: &L, view: &L::Interval, style: Style) -> Option<String> {
    let (stream, is_omitted) = L::about(view);
    (stream.is_some() || plan.width() > 1).then(|| {
        let line = plan.line(view, style);
        let line = line.trim_end();
        let line = if is_omitted { style.paint(Tone::Faint, &noted(line, OMITTED, style)) } else { line.to_owned() };
        line + "\n"
    })
}

/// A line with a note behind it, or below it where there is no room.
fn noted(line: &str, note: &str, style: Style) -> String {
    let last = line.lines().last().unwrap_or(line);
    if columns(last) + columns(note) <= style.room() {
        return format!("{line}{note}");
    }
    format!("{line}\n      {}", note.trim_start())
}

/// Behind an interval that no summary counts.
const OMITTED: &str = " (omitted)";

/// `[  0]`, `[SUM]`: a stream, or all of a flow together.
fn name(stream: Option<u32>) -> String {
    stream.map_or_else(|| "[SUM]".to_owned(), |id| format!("[{id:>3}]"))
}

/// `0.00-1.00`: an interval in seconds.
fn span(from_s: f64, to_s: f64) -> String {
    format!("{from_s:.2}-{to_s:.2}")
}

/// Between the intervals and the summary.
fn rule(style: Style) -> String {
    "- ".repeat(25.min(style.columns() / 2))
}

/// `to flits (192.0.2.2:5220)`: the way of the data and the other end.
fn way_to(direction: Direction, target: &Target) -> String {
    let way = match direction {
        Direction::Up => "to",
        Direction::Down => "from",
        Direction::Both => "to and from",
    };
    format!("{way} {} ({})", clean(&target.asked), clean(&target.address))
}

/// Milliseconds in words, and the part of them that is omitted.
fn lasting(duration_ms: Option<u64>, omit_ms: u64) -> impl Iterator<Item = String> {
    let omitted = (omit_ms > 0).then(|| format!("{} omitted", millis(omit_ms)));
    duration_ms.map(millis).into_iter().chain(omitted)
}

const fn word(flow: Flow) -> &'static str {
    flow.direction().word()
}

/// What the trial cost both ends: a lead for each end and its cost in words.
fn costs(page: &mut Page, ends: [&Option<EndCpu>; 2], lead: fn(Place) -> String, words: fn(&EndCpu) -> String) {
    for (place, cost) in [Place::Client, Place::Server].into_iter().zip(ends) {
        let lead = lead(place);
        match cost {
            Some(cost) => page.labelled(&lead, &words(cost), None),
            None => page.line(&format!("{lead}CPU times are not known")),
        }
    }
}

fn remarks(page: &mut Page, remarks: &[Remark]) {
    for remark in remarks {
        page.labelled(&format!("{}  ! ", remark.at), &clean(&remark.says), Some(Tone::Mark));
    }
}

fn ending(page: &mut Page, ending: &Ending) {
    match ending {
        Ending::Complete => {}
        Ending::Interrupted => page.line("interrupted: this is what was measured until then"),
        Ending::Failed(why) => page.labelled("failed: ", &clean(why), Some(Tone::Bad)),
    }
}

/// The cost of one end in words.
fn cpu(cost: &EndCpu) -> String {
    let mut words = Vec::new();
    if let Some(core) = &cost.busiest {
        let steal = if core.steal >= 0.005 { format!(", steal {}", share(core.steal)) } else { String::new() };
        words.push(format!(
            "busiest core cpu{}: user {}, system {}, softirq {}, idle {}{steal}",
            core.cpu,
            share(core.user),
            share(core.system),
            share(core.softirq + core.irq),
            share(core.idle)
        ));
    }
    words.extend(cost.busy_cores.map(|cores| format!("{cores:.2} cores busy")));
    words.extend(cost.data_threads_cores.map(|cores| format!("data threads {cores:.2}")));
    words.join("; ")
}
