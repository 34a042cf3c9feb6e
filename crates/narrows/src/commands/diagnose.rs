//! `narrows diagnose`: names what limits a path.

use crate::failure::{Failure, Outcome};
use crate::flags::values::{duration, millis};
use crate::flags::{
    Given, LoadArgs, RemoteArgs, ResultArgs, SaveArgs, TcpLoadArgs, UdpLoadArgs, ViewArgs, slow_start_ms,
};
use crate::output::{print, written};
use crate::progress::{Progress, SavedRun};
use crate::session::{Far, INTERRUPTED, Tuning, far, tuner};
use crate::tui::Tui;
use narrows_model::load::profile::ProfilePlan;
use narrows_model::words::show::clean;
use narrows_model::words::{figures::float, units};
use narrows_model::{
    self as model, DiagnosePlan, Direction, Ending, Family, LoadPlan, Place, Report, Run, TcpPlan, UdpPlan, Underlay,
};
use narrows_render::live::measure::MeasureLive;
use narrows_render::{Format, Style};
use narrows_runner::diagnosis::{self, Pace};
use narrows_runner::{both_directions, stored};
use narrows_views::live::{Points, kind};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A part of the goodput, in percent.
fn percent(text: &str) -> Result<f64, String> {
    let percent: f64 = text.trim_end_matches('%').trim().parse().map_err(|_| "not a number of percent".to_owned())?;
    if (0.0..=50.0).contains(&percent) { Ok(percent) } else { Err("must be 0 to 50 percent".to_owned()) }
}

/// `--underlay` without an address.
const TUNNEL: &str = "tunnel";

fn underlay(text: &str) -> Result<Underlay, String> {
    match text {
        TUNNEL => Ok(Underlay::Tunnel),
        address => address.parse().map(Underlay::Address).map_err(|_| "not an IP address".to_owned()),
    }
}

/// What the trials below the tunnel take, and the overlay once more.
const UNDERLAY: Duration = Duration::from_secs(8);
/// What the time limit is longer with a server of iperf3, where each step of a path profile is a test of its own.
const STEP_BY_STEP: Duration = Duration::from_secs(40);

/// What a path profile and two experiments take.
const AFTER_LOAD: Duration = Duration::from_secs(12);

const UDP_HEADING: &str = "UDP load";

/// The flags of a UDP load are refused without `--udp`.
fn with_udp(flag: clap::Arg) -> clap::Arg {
    if flag.get_help_heading() == Some(UDP_HEADING) && flag.get_id() != "udp" { flag.requires("udp") } else { flag }
}

/// Find what limits the path to HOST
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("duration", |it| it.default_value("8s").default_value_if("udp", "true", "4s")),
    mut_arg("bytes", |it| it.conflicts_with("udp").hide_short_help(true)),
    mut_arg("direction", |it| it.help("Direction; both: one after the other")),
    mut_arg("interval", |it| it.default_value("100ms").hide_short_help(true)),
    mut_arg("omit", |it| it.hide_short_help(true)),
    mut_arg("congestion_control", |it| it.hide_short_help(true)),
    mut_arg("size", |it| {
        it.alias("datagram").default_value("auto").default_value_if("udp", "true", "largest").help(
            "Read and write size; UDP payload with --udp",
        )
    }),
    mut_arg("rate", |it| it.hide_default_value(true)),
    mut_args(with_udp),
    mut_arg("output", |it| it.help("Save the run to this file")),
    mut_arg("full", |it| it.help("Show all parameters and calculations")),
    after_help = "Examples:\n  \
    narrows diagnose server --token-file token\n  \
    narrows diagnose ssh://admin@server --direction both\n  \
    narrows diagnose server --try            (server: narrows serve --allow-tune)\n  \
    narrows diagnose server -u -b 500M       where are datagrams dropped?\n  \
    narrows diagnose server --format json | jq .verdict"
)]
pub(crate) struct Args {
    #[command(flatten)]
    given: Given,
    /// Time limit, experiments included
    ///
    /// A path profile needs 5s, with iperf3:// up to 20s (then the default is 60s). The experiment that a proven cause depends on may take a quarter more.
    #[arg(long, value_parser = duration, default_value = "20s", value_name = "TIME")]
    budget: Duration,
    /// Data limit: no more bytes of load in all, give or take one interval
    #[arg(
        long,
        value_parser = crate::flags::values::size,
        value_name = "SIZE",
        conflicts_with = "try_fixes",
        hide_short_help = true
    )]
    budget_bytes: Option<u64>,
    /// End a TCP load early once goodput is known within this percentage; 0: never
    #[arg(long, value_parser = percent, default_value = "5", value_name = "PERCENT", hide_short_help = true)]
    within: f64,
    /// Skip the path profile (short UDP steps)
    #[arg(long, hide_short_help = true)]
    no_profile: bool,
    /// Maximum rate of the path profile, in bit/s
    #[arg(long, value_parser = crate::flags::values::bps, value_name = "RATE", conflicts_with = "no_profile", hide_short_help = true)]
    max_rate: Option<u64>,
    /// Expected goodput, in bit/s; less than 90 % exits with 3
    #[arg(long, value_parser = crate::flags::values::bps, value_name = "RATE", conflicts_with = "udp")]
    expect: Option<u64>,
    /// Measure the same load below the tunnel; the address is the server's there
    ///
    /// Without an address: the other end of the tunnel, as the kernel knows it (VXLAN, Geneve, GRE, IPIP). A TUN device needs the address.
    #[arg(
        long,
        value_parser = underlay,
        value_name = "ADDRESS",
        num_args = 0..=1,
        default_missing_value = TUNNEL,
        conflicts_with = "udp",
        hide_short_help = true
    )]
    underlay: Option<Underlay>,
    /// Apply and prove each fix in turn, then roll back
    ///
    /// Only the host that a fix changes must allow it: the server with `narrows serve --allow-tune`, this host with root.
    /// Each proof is 2 x --pairs loads at full rate, of which --budget-bytes limits none; --duration and, of TCP, --bytes limit each.
    /// Exits with 0 if nothing limits after them.
    #[arg(long = "try")]
    try_fixes: bool,
    /// With --try: keep the fixes that helped
    #[arg(long, requires = "try_fixes", hide_short_help = true)]
    keep: bool,
    /// With --try: pairs of trials per fix
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(3..=100), value_name = "N", hide_short_help = true)]
    pairs: u32,
    /// Exit with 0 if a limiting cause is found
    #[arg(long, hide_short_help = true)]
    exit_zero: bool,
    #[command(flatten)]
    remote: RemoteArgs,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    tcp: TcpLoadArgs,
    /// Diagnose a UDP load; needs --rate
    #[arg(long, short = 'u', requires = "rate", help_heading = UDP_HEADING)]
    udp: bool,
    #[command(flatten, next_help_heading = UDP_HEADING)]
    datagrams: UdpLoadArgs,
    #[command(flatten)]
    view: ViewArgs,
    #[command(flatten)]
    save: SaveArgs,
    #[command(flatten)]
    result: ResultArgs<Report>,
}

impl Args {
    pub(crate) fn run(mut self) -> Outcome {
        if let Some(rate) = self.max_rate.filter(|rate| *rate < ProfilePlan::MIN_BPS) {
            let [rate, least] = [rate, ProfilePlan::MIN_BPS].map(|rate| units::bps(float(rate)));
            return Err(Failure::usage(format!(
                "--max-rate {rate} is too low for a path profile: {least} at least, or --no-profile"
            )));
        }
        self.fit_times()?;
        // Invalid flags fail before the connection; a plan of UDP needs the address family.
        if !self.udp {
            self.load(Direction::Up, Family::Ipv4)?;
        }
        self.view.tui.check()?;
        let Far { target, open, tune, stop } = far(&self.remote, self.try_fixes, true)?;
        match tune {
            Tuning::Neither(why) if self.try_fixes => return Err(Failure::run(why)),
            Tuning::Here(why) if self.try_fixes => crate::failure::note!("{why}"),
            _ => {}
        }
        let ways: &[Direction] = match self.load.direction.direction() {
            Direction::Both => &[Direction::Up, Direction::Down],
            Direction::Up => &[Direction::Up],
            Direction::Down => &[Direction::Down],
        };
        let mut planned = Vec::new();
        for way in ways {
            let name = stored::new_name().map_err(Failure::run)?;
            let output =
                self.result.output().map(|path| if ways.len() > 1 { of_direction(path, *way) } else { path.into() });
            let file = self.save.run_file(output.as_deref())?;
            planned.push((self.plan(self.load(*way, target.family)?), name, file));
        }
        let tuner = self.try_fixes.then(|| tuner("diagnose")).transpose()?;
        let mut ends = open(tuner, self.result.quiet)?;
        for (plan, ..) in &mut planned {
            if self.load.omit.ms().is_none() {
                plan.load = ends.fitted(&plan.load);
            }
            ends.refuses(&plan.load).map_or(Ok(()), |why| Err(Failure::usage(why)))?;
        }
        let view = MeasureLive::new(kind(&self.load(ways[0], target.family)?));
        let tui = self.view.tui.open(view, &stop)?;
        if let Some(tui) = &tui {
            tui.update(|view| view.begin(&format!("diagnosis of the path to {}\n", clean(&target.asked))));
        }
        let (mut runs, mut saved) = (Vec::new(), Vec::new());
        for (plan, name, file) in planned {
            let mut watch = Watch::new(self.result.quiet, file, tui.as_ref());
            let run = diagnosis::diagnose(&mut *ends, &mut watch, &plan, target.clone(), name);
            watch.progress.clear();
            let complete = run.ending == Ending::Complete;
            runs.push(run);
            saved.push(watch.saved);
            if !complete {
                break;
            }
        }
        drop(ends);
        if let Some(tui) = tui {
            let style = Style { color: true, ..self.view.full.style() };
            let report = self.render(&runs, Format::Text, style).unwrap_or_else(|failure| failure.to_string());
            tui.update(|view| view.report(report));
            tui.finish()?;
        }
        let rendered = self.render(&runs, self.result.format(), self.view.full.style());
        if let Ok(text) = &rendered {
            print(text)?;
        }
        let places: Vec<Result<(), Failure>> =
            saved.iter().map(|saved| saved.report("run", self.result.quiet, "")).collect();
        for run in &runs {
            match &run.ending {
                Ending::Complete => {}
                Ending::Failed(why) => return Err(Failure::run(why)),
                Ending::Interrupted => return Ok(INTERRUPTED),
            }
        }
        rendered?;
        places.into_iter().collect::<Result<(), _>>()?;
        Ok(if self.exit_zero { 0 } else { runs.iter().map(diagnosis::exit_code).max().unwrap_or(1) })
    }

    /// A load within the time of the whole: what was not given gives way.
    fn fit_times(&mut self) -> Result<(), Failure> {
        if self.underlay.is_some() && !self.given.has("budget") {
            self.budget += UNDERLAY;
        }
        if self.remote.is_iperf3() && !self.given.has("budget") {
            self.budget += STEP_BY_STEP;
        }
        let (load, whole) = (self.load.duration.duration, self.budget);
        if self.tcp.bytes.is_some() || 2 * load <= whole {
            return Ok(());
        }
        match (self.given.has("duration"), self.given.has("budget")) {
            (false, _) => self.load.duration.duration = whole / 2,
            (true, false) => self.budget = load + AFTER_LOAD,
            (true, true) if load < whole => {}
            (true, true) => {
                let [load, whole] = [load, whole].map(|time| units::micros(millis(time) * 1000));
                return Err(Failure::usage(format!(
                    "a load of {load} (--duration) does not fit into --budget {whole}: the profile and experiments take up to {} more",
                    units::micros(millis(AFTER_LOAD) * 1000)
                )));
            }
        }
        Ok(())
    }

    /// The load in one direction.
    fn load(&self, way: Direction, family: Family) -> Result<LoadPlan, Failure> {
        Ok(if self.udp {
            UdpPlan { direction: way, ..self.datagrams.plan(&self.load, family)? }.into()
        } else {
            TcpPlan { direction: way, ..self.tcp.plan(&self.load, slow_start_ms)? }.into()
        })
    }

    fn plan(&self, load: LoadPlan) -> DiagnosePlan {
        DiagnosePlan {
            load,
            budget_ms: millis(self.budget),
            budget_bytes: self.budget_bytes,
            profile: !self.no_profile,
            max_bps: self.max_rate,
            known_within: self.within / 100.0,
            expect_bps: self.expect,
            underlay: self.underlay,
            try_fixes: self.try_fixes,
            keep: self.keep,
            proof_pairs: self.pairs,
        }
    }

    /// The report of one direction, or of both.
    fn render(&self, runs: &[Run], format: Format, style: Style) -> Result<String, Failure> {
        let both = self.load.direction.direction() == Direction::Both;
        match (runs.last(), both.then(|| both_directions(runs)).flatten()) {
            (_, Some(both)) => written(&both, format, style),
            (Some(run), None) => super::render_run(run, format, style),
            (None, None) => Err(Failure::run("nothing was measured")),
        }
    }
}

/// The file of one of two runs: `path-up.run.json` of `path.run.json`.
fn of_direction(path: &Path, way: Direction) -> PathBuf {
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let at = name.char_indices().skip(1).find(|(_, letter)| *letter == '.').map_or(name.len(), |(at, _)| at);
    let (stem, extension) = name.split_at(at);
    path.with_file_name(format!("{stem}-{}{extension}", way.word()))
}

/// Shows the steps of a diagnosis, and saves it after each.
struct Watch<'a> {
    /// The live view, and what makes its points.
    tui: Option<(&'a Tui<MeasureLive>, Points)>,
    progress: Progress,
    saved: SavedRun,
    pace: Pace,
}

impl<'a> Watch<'a> {
    fn new(quiet: bool, saved: SavedRun, tui: Option<&'a Tui<MeasureLive>>) -> Self {
        let quiet = quiet || tui.is_some();
        let tui = tui.map(|tui| (tui, Points::default()));
        Self { tui, progress: Progress::new(quiet, "  {bar:30} {msg}"), saved, pace: Pace::default() }
    }
}

impl diagnosis::Watch for Watch<'_> {
    fn step(&mut self, text: &str) {
        if let Some((tui, points)) = &mut self.tui {
            *points = Points::default();
            tui.update(|view| view.step(&format!("* {}\n", clean(text))));
        }
        self.pace = Pace::default();
        self.progress.position(0, None);
        self.progress.show(String::new());
        self.progress.line(&format!("* {text}"));
    }

    fn result(&mut self, text: &str) {
        if let Some((tui, _)) = &self.tui {
            tui.update(|view| view.add(&format!("  {}\n", clean(text))));
        }
        self.progress.line(&format!("  {text}"));
    }

    fn progress(&mut self, place: Place, progress: &model::Progress, planned_ms: Option<u64>) {
        if let Some((tui, points)) = &mut self.tui {
            let points = points.take(place, progress);
            tui.update(|view| {
                points.iter().for_each(|point| view.point(point));
                if let Some(ms) = planned_ms.filter(|ms| *ms > 0) {
                    view.part(progress.at_us as f64 / 1e3 / ms as f64);
                }
            });
        }
        // One end is enough for the progress line, and the client always reports.
        if place != Place::Client {
            return;
        }
        if let Some(pace) = self.pace.take(place, progress, planned_ms) {
            self.progress.show(pace);
        }
        if let Some(ms) = planned_ms {
            self.progress.position(progress.at_us.min(ms * 1000), Some(ms * 1000));
        }
    }

    fn save(&mut self, run: &Run) {
        self.saved.save(run);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use narrows_model::{DatagramSizes, Limit, UdpRate};

    #[derive(Debug, Parser)]
    struct Alone {
        #[command(flatten)]
        args: Args,
    }

    fn parsed(words: &[&str]) -> Result<Args, clap::Error> {
        Alone::try_parse_from([&["diagnose", "host"], words].concat()).map(|alone| alone.args)
    }

    #[test]
    fn tcp_leaves_slow_start_out() {
        for (words, duration_ms, omit_ms) in [
            (&[][..], 8_000, 2_000),
            (&["-t", "2s"], 2_000, 500),
            (&["-t", "60s"], 60_000, 2_000),
            (&["-t", "2s", "-O", "0s"], 2_000, 0),
        ] {
            let args = parsed(words).expect("flags");
            let plan = args.tcp.plan(&args.load, slow_start_ms).expect("a plan");
            assert_eq!((plan.limit, plan.omit_ms, plan.interval_ms), (Limit::DurationMs(duration_ms), omit_ms, 100));
            assert_eq!(plan.message_bytes, 128 << 10);
        }
    }

    #[test]
    fn a_load_fits_into_the_time_of_the_whole() {
        let of = |words: &[&str]| {
            let mut args = parsed(words).expect("flags");
            args.fit_times().map(|()| [args.load.duration.duration, args.budget].map(|time| time.as_secs()))
        };
        assert_eq!(of(&[]).expect("fits"), [8, 20]);
        assert_eq!(of(&["--budget", "5"]).expect("fits"), [2, 5], "the default gives way");
        assert_eq!(of(&["-t", "30"]).expect("fits"), [30, 42]);
        assert_eq!(of(&["-t", "30", "--budget", "40"]).expect("fits"), [30, 40]);
        let error = of(&["-t", "30", "--budget", "5"]).expect_err("no room").to_string();
        assert!(error.contains("30.0 s (--duration) does not fit into --budget 5.00 s"), "{error}");
    }

    #[test]
    fn each_of_two_directions_has_its_file() {
        let of = |path: &str| of_direction(Path::new(path), Direction::Down).display().to_string();
        for (path, file) in [("a/x.run.json", "a/x-down.run.json"), ("x", "x-down"), (".x.json", ".x-down.json")] {
            assert_eq!(of(path), file);
        }
    }

    #[test]
    fn both_directions_are_looked_at_one_after_the_other() {
        let args = parsed(&["-d", "both"]).expect("flags");
        for way in [Direction::Up, Direction::Down] {
            let load = args.load(way, Family::Ipv4).expect("a load");
            assert_eq!(load.get::<TcpPlan>().map(|plan| plan.direction), Some(way));
        }
    }

    #[test]
    fn udp_has_its_own_defaults_and_needs_a_rate() {
        let args = parsed(&["--udp", "-b", "5M"]).expect("flags");
        let plan = args.datagrams.plan(&args.load, Family::Ipv4).expect("a plan");
        assert_eq!((plan.rate_up, plan.rate_down), (UdpRate::Bps(5_000_000), UdpRate::Bps(5_000_000)));
        assert_eq!((plan.duration_ms, plan.omit_ms, plan.interval_ms), (4_000, 0, 100));
        assert_eq!(plan.sizes, DatagramSizes::Largest);
        let bytes = parsed(&["--udp", "-b", "5M", "--bytes", "1M"]).expect_err("a UDP load ends by time").to_string();
        assert!(bytes.contains("cannot be used with"), "{bytes}");
        for words in [&["--udp"][..], &["--rate", "5M"], &["--fragments"], &["--burst", "3"]] {
            let error = parsed(words).expect_err("not together").to_string();
            assert!(error.contains("required arguments were not provided"), "{error}");
        }
    }
}
