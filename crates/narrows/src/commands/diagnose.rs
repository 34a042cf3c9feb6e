//! `narrows diagnose`: names what limits a path.

use crate::failure::{Failure, Outcome};
use crate::flags::values::{duration, millis};
use crate::flags::{FullArg, LoadArgs, RemoteArgs, ResultArgs, SaveArgs, TcpLoadArgs, UdpLoadArgs, slow_start_ms};
use crate::output::print;
use crate::progress::{Progress, SavedRun};
use crate::session::{Connection, tuner};
use narrows_model::words::units;
use narrows_model::{self as model, DiagnosePlan, Ending, Place, Report, Run};
use narrows_runner::{diagnosis, stored};
use std::time::Duration;

/// A part of the goodput, in percent.
fn percent(text: &str) -> Result<f64, String> {
    let percent: f64 = text.trim_end_matches('%').trim().parse().map_err(|_| "not a number of percent".to_owned())?;
    if (0.0..=50.0).contains(&percent) { Ok(percent) } else { Err("must be 0 to 50 percent".to_owned()) }
}

const UDP_HEADING: &str = "Load of UDP";

/// The flags of a UDP load are refused without `--udp`.
fn with_udp(flag: clap::Arg) -> clap::Arg {
    if flag.get_help_heading() == Some(UDP_HEADING) && flag.get_id() != "udp" { flag.requires("udp") } else { flag }
}

/// Name what limits the path to HOST
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("duration", |it| it.default_value("8s").default_value_if("udp", "true", "4s")),
    mut_arg("bytes", |it| it.conflicts_with("udp").hide_short_help(true)),
    mut_arg("interval", |it| it.default_value("100ms").hide_short_help(true)),
    mut_arg("omit", |it| it.hide_short_help(true)),
    mut_arg("congestion_control", |it| it.hide_short_help(true)),
    mut_arg("size", |it| {
        it.alias("datagram").default_value("128k").default_value_if("udp", "true", "largest").help(
            "Read and write size; UDP payload with --udp",
        )
    }),
    mut_arg("rate", |it| it.hide_default_value(true)),
    mut_args(with_udp),
    mut_arg("output", |it| it.help("Save the run to this file")),
    mut_arg("full", |it| it.help("Show every parameter, rejected cause and calculation")),
    after_help = "Examples:\n  \
    narrows diagnose server --token-file token\n  \
    narrows diagnose ssh://admin@server --direction down\n  \
    narrows diagnose server --try            (server: narrows serve --allow-tune)\n  \
    narrows diagnose server --expect 900M    at capacity is not enough\n  \
    narrows diagnose server -u -b 500M       where are datagrams dropped?\n  \
    narrows diagnose server --format json | jq .verdict"
)]
pub(crate) struct Args {
    /// Time limit, experiments included
    #[arg(long, value_parser = duration, default_value = "20s", value_name = "TIME")]
    budget: Duration,
    /// A load of TCP ends before its time once its goodput is known within this many percent; 0: each takes its whole time
    #[arg(long, value_parser = percent, default_value = "3", value_name = "PERCENT", hide_short_help = true)]
    within: f64,
    /// Do not profile the path by short steps of UDP; what it could carry is then less well known
    #[arg(long, hide_short_help = true)]
    no_profile: bool,
    /// The profile offers no more than this rate
    #[arg(long, value_parser = crate::flags::values::bps, value_name = "RATE", conflicts_with = "no_profile", hide_short_help = true)]
    max_rate: Option<u64>,
    /// Expected rate; less than 90 % of it is a finding
    #[arg(long, value_parser = crate::flags::values::bps, value_name = "RATE", conflicts_with = "udp")]
    expect: Option<u64>,
    /// Apply each fix, prove it by measurement, fix the next bottleneck, roll back
    #[arg(long = "try")]
    try_fixes: bool,
    /// With --try: let the fixes that helped stay
    #[arg(long, requires = "try_fixes", hide_short_help = true)]
    keep: bool,
    /// With --try: pairs of trials that prove each fix
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(3..=100), value_name = "N", hide_short_help = true)]
    pairs: u32,
    /// Exit with 0 even where a limiting cause was found
    #[arg(long, hide_short_help = true)]
    exit_zero: bool,
    #[command(flatten)]
    remote: RemoteArgs,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    tcp: TcpLoadArgs,
    /// Diagnose a load of UDP at a rate instead
    #[arg(long, short = 'u', requires = "rate", help_heading = UDP_HEADING)]
    udp: bool,
    #[command(flatten, next_help_heading = UDP_HEADING)]
    datagrams: UdpLoadArgs,
    #[command(flatten)]
    full: FullArg,
    #[command(flatten)]
    save: SaveArgs,
    #[command(flatten)]
    result: ResultArgs<Report>,
}

impl Args {
    pub(crate) fn run(self) -> Outcome {
        self.load.direction.one("a diagnosis")?;
        // Invalid flags fail before the connection; a plan of UDP needs the address family.
        let tcp = if self.udp { None } else { Some(self.tcp.plan(&self.load, slow_start_ms)?) };
        let connection = Connection::open(&self.remote, self.try_fixes, true)?;
        let remote = &connection.remote;
        let plan = DiagnosePlan {
            load: match tcp {
                Some(plan) => plan.into(),
                None => self.datagrams.plan(&self.load, remote.target().family)?.into(),
            },
            budget_ms: millis(self.budget),
            profile: !self.no_profile,
            max_bps: self.max_rate,
            known_within: self.within / 100.0,
            expect_bps: self.expect,
            try_fixes: self.try_fixes,
            keep: self.keep,
            proof_pairs: self.pairs,
        };
        if self.try_fixes && !remote.hello().permissions.tune {
            return Err(Failure::run(format!(
                "{} does not let us change its settings: start `narrows serve --allow-tune` there, or leave --try out",
                remote.hello().host
            )));
        }
        let tuner = self.try_fixes.then(|| tuner("diagnose")).transpose()?;
        let name = stored::new_name().map_err(Failure::run)?;
        let saved = self.save.run_file(self.result.output(), &name.0)?;
        let mut watch = Watch::new(self.result.quiet, saved);
        let mut ends = connection.ends(tuner, self.result.quiet)?;
        let run = diagnosis::diagnose(&mut ends, &mut watch, &plan, remote.target(), name);
        drop(ends);
        watch.progress.clear();
        let style = self.full.style();
        let rendered = super::render_run(&run, self.result.format(), style);
        if let Ok(text) = &rendered {
            print(text)?;
        }
        watch.saved.report("run", self.result.quiet, "");
        if let Ending::Failed(why) = &run.ending {
            return Err(Failure::run(why));
        }
        rendered?;
        let status = diagnosis::final_status(&run);
        Ok(if self.exit_zero { 0 } else { status.map_or(1, diagnosis::exit_code) })
    }
}

/// Shows the steps of a diagnosis, and saves it after each.
struct Watch {
    progress: Progress,
    saved: SavedRun,
    /// Time in the trial and bytes of all streams at the last report.
    last: Option<(u64, u64)>,
}

impl Watch {
    fn new(quiet: bool, saved: SavedRun) -> Self {
        Self { progress: Progress::new(quiet, "  {bar:30} {msg}"), saved, last: None }
    }
}

impl diagnosis::Watch for Watch {
    fn step(&mut self, text: &str) {
        self.last = None;
        self.progress.position(0, None);
        self.progress.show(String::new());
        self.progress.line(&format!("* {text}"));
    }

    fn result(&mut self, text: &str) {
        self.progress.line(&format!("  {text}"));
    }

    fn progress(&mut self, place: Place, progress: &model::Progress, planned_ms: Option<u64>) {
        // One end is enough for the progress line, and the client always reports.
        if place != Place::Client {
            return;
        }
        let bytes: u64 = progress.streams.iter().map(|stream| stream.sample.bytes()).sum();
        if let Some((at_us, before)) = self.last
            && progress.at_us > at_us
        {
            #[allow(clippy::cast_precision_loss)]
            let bps = bytes.saturating_sub(before) as f64 * 8e6 / (progress.at_us - at_us) as f64;
            let left = planned_ms.map_or_else(String::new, |ms| {
                format!(", {} left", units::micros((ms * 1000).saturating_sub(progress.at_us)))
            });
            self.progress.show(format!("{}{left}", units::bps(bps)));
        }
        self.last = Some((progress.at_us, bytes));
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
    use narrows_model::{DatagramSizes, Family, Limit, UdpRate};

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
