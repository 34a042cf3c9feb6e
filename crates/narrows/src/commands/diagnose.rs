//! `narrows diagnose`: the main job.

use crate::failure::{Failure, Outcome};
use crate::flags::load::LoadArgs;
use crate::flags::output::{FullArg, OutputArg, QuietArg};
use crate::flags::remote::RemoteArgs;
use crate::flags::tcp::TcpLoadArgs;
use crate::flags::time::slow_start_ms;
use crate::flags::udp::UdpLoadArgs;
use crate::flags::values::{duration, millis};
use crate::output::{formats, print, style};
use crate::session::{open_session, stop_on_interrupt};
use crate::watch::Teller;
use narrows_model::Report;
use narrows_model::{DiagnosePlan, Ending, TcpPlan};
use narrows_render::Format;
use narrows_runner::live::{LiveEnds, LiveInstruments};
use narrows_runner::{diagnosis, state, stored, tune};
use std::time::Duration;

const UDP_HEADING: &str = "Load of UDP";

/// The flags of a UDP load are refused without `--udp`.
fn with_udp(flag: clap::Arg) -> clap::Arg {
    if flag.get_help_heading() == Some(UDP_HEADING) && flag.get_id() != "udp" { flag.requires("udp") } else { flag }
}

/// Name what limits the path to HOST
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("duration", |it| it.default_value("8s").default_value_if("udp", "true", "4s")),
    mut_arg("interval", |it| it.default_value("100ms")),
    mut_arg("size", |it| {
        it.alias("datagram").default_value("128k").default_value_if("udp", "true", "largest").help(
            "Bytes handed to the kernel in one call; with --udp the payload of a datagram: a list, imix, or the largest that the path \
             carries in one piece",
        )
    }),
    mut_arg("rate", |it| it.hide_default_value(true)),
    mut_args(with_udp),
    mut_arg("output", |it| it.help("Where to keep the run (default: the state directory)")),
    mut_arg("full", |it| it.help("Show every parameter, every rejected look-alike and each ceiling's arithmetic")),
    mut_arg("quiet", |it| it.help("No progress on stderr")),
    after_help = "Examples:\n  \
    narrows diagnose server --token-file token\n  \
    narrows diagnose ssh://admin@server --direction down\n  \
    narrows diagnose server --token-file token --try      (server: narrows serve --allow-tune)\n  \
    narrows diagnose server --token-file token --udp --rate 500M      where do datagrams die at this rate?\n  \
    narrows diagnose server --token-file token --format json | jq .verdict"
)]
pub(crate) struct Args {
    /// The diagnosis ends within this time, its experiments included
    #[arg(long, value_parser = duration, default_value = "20s", value_name = "TIME")]
    budget: Duration,
    /// Apply each fix at run time, measure with and without it in turn, climb to the next ceiling, and set all back
    #[arg(long = "try")]
    try_fixes: bool,
    /// With --try: let the fixes that helped stay
    #[arg(long, requires = "try_fixes")]
    keep: bool,
    /// With --try: pairs of trials that prove each fix
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(3..=100), value_name = "N")]
    pairs: u32,
    /// Form of the report
    #[arg(long, value_parser = formats::<Report>(), default_value = "text")]
    format: Format,
    /// Exit with 0 even where a limiting cause was found
    #[arg(long)]
    exit_zero: bool,
    #[command(flatten)]
    remote: RemoteArgs,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    tcp: TcpLoadArgs,
    /// Diagnose a load of UDP at a rate instead
    #[arg(long, requires = "rate", help_heading = UDP_HEADING)]
    udp: bool,
    #[command(flatten, next_help_heading = UDP_HEADING)]
    datagrams: UdpLoadArgs,
    #[command(flatten)]
    full: FullArg,
    #[command(flatten)]
    output: OutputArg,
    #[command(flatten)]
    quiet: QuietArg,
}

impl Args {
    pub(crate) fn run(self) -> Outcome {
        self.load.direction.one("a diagnosis")?;
        // What a load of UDP shares with TCP comes from the same flags.
        let load = if self.udp { TcpPlan::default() } else { self.tcp.plan(&self.load, slow_start_ms)? };
        let mut plan = DiagnosePlan {
            load,
            udp: None,
            budget_ms: millis(self.budget),
            try_fixes: self.try_fixes,
            keep: self.keep,
            proof_pairs: self.pairs,
        };
        let stop = stop_on_interrupt()?;
        let instruments = LiveInstruments { collect: true };
        let remote = self.remote.connect(self.try_fixes, instruments)?;
        if self.udp {
            plan.udp = Some(self.datagrams.plan(&self.load, remote.target().family)?);
        }
        if self.try_fixes && !remote.hello().permissions.tune {
            return Err(Failure::run(format!(
                "{} does not let us change its settings: start `narrows serve --allow-tune` there, or leave --try out",
                remote.hello().host
            )));
        }
        let tuner = match (self.try_fixes, state::directory()) {
            (false, _) => None,
            (true, Some(directory)) => Some(tune::Tuner::new(&directory, "diagnose")),
            (true, None) => {
                return Err(Failure::run("there is no place for the journal of changes: set HOME or XDG_STATE_HOME"));
            }
        };
        let (id, made_by) = stored::new_name().map_err(Failure::run)?;
        let file = stored::place(self.output.output.clone(), &id).map_err(Failure::run)?;
        let mut teller = Teller::new(self.quiet.quiet, Some(file.clone()));
        let session = open_session(&remote, &stop, self.quiet.quiet)?;
        let mut ends = LiveEnds::new(&remote, session, instruments, tuner, stop);
        let run = diagnosis::diagnose(&mut ends, &mut teller, &plan, remote.target(), id, made_by);
        drop(ends);
        teller.end();
        let mut style = style();
        style.full = self.full.full;
        let rendered = super::render_run(&run, self.format, style);
        if let Ok(text) = &rendered {
            print(text)?;
        }
        match (teller.unsaved(), self.quiet.quiet) {
            (Some(why), _) => anstream::eprintln!("the run could not be kept: {why}"),
            (None, false) => anstream::eprintln!("kept as {}", file.display()),
            _ => {}
        }
        if let Ending::Failed(why) = &run.ending {
            return Err(Failure::run(why));
        }
        rendered?;
        let status = diagnosis::final_status(&run);
        Ok(if self.exit_zero { 0 } else { status.map_or(1, diagnosis::exit_code) })
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
        for words in [&["--udp"][..], &["--rate", "5M"], &["--fragments"], &["--burst", "3"]] {
            let error = parsed(words).expect_err("not together").to_string();
            assert!(error.contains("required arguments were not provided"), "{error}");
        }
    }
}
