//! `narrows diagnose`: the main job.

use super::load::{Defaults, LoadArgs, duration};
use super::remote::{RemoteArgs, open_session, stop_on_interrupt};
use super::udp_load::{SizesWord, rate, sizes};
use crate::failure::{Failure, Outcome};
use crate::output::{Format, print, style};
use crate::watch::Teller;
use narrows_model::load::tcp::{DiagnosePlan, Limit, TcpPlan};
use narrows_model::{Direction, Ending, Family, UdpPlan, UdpRate};
use narrows_runner::live::{LiveEnds, LiveInstruments};
use narrows_runner::{diagnosis, state, stored, tune};
use std::path::PathBuf;
use std::time::Duration;

/// Name what limits the path to HOST
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    narrows diagnose server --token-file token\n  \
    narrows diagnose ssh://admin@server --direction down\n  \
    narrows diagnose server --token-file token --try      (server: narrows serve --allow-tune)\n  \
    narrows diagnose server --token-file token --udp 500M      where do datagrams die at this rate?\n  \
    narrows diagnose server --token-file token --format json | jq .verdict")]
pub(crate) struct Args {
    #[command(flatten)]
    remote: RemoteArgs,
    #[command(flatten)]
    load: LoadArgs,
    /// Diagnose a load of UDP at this rate instead: 100M, 50kpps or max
    #[arg(long, value_parser = rate, value_name = "RATE", help_heading = "Load")]
    udp: Option<UdpRate>,
    /// With --udp: UDP payload of a datagram, a list, imix, or the largest that the path carries in one piece
    #[arg(long, value_parser = sizes, value_name = "SIZES", default_value = "largest", requires = "udp", help_heading = "Load")]
    datagram: SizesWord,
    /// With --udp: let datagrams above the path MTU be cut into fragments
    #[arg(long, requires = "udp", help_heading = "Load")]
    fragments: bool,
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
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Show every parameter, every rejected look-alike and each ceiling's arithmetic
    #[arg(long)]
    full: bool,
    /// Where to keep the run (default: the state directory)
    #[arg(long, short = 'o', value_name = "PATH")]
    output: Option<PathBuf>,
    /// No progress on stderr
    #[arg(long, short = 'q')]
    quiet: bool,
    /// Exit with 0 even where a limiting cause was found
    #[arg(long)]
    exit_zero: bool,
}

/// How long a load of UDP lasts where the user gave no time: it needs no slow start to be over.
const UDP_MS: u64 = 4_000;

const DEFAULTS: Defaults = Defaults { duration_ms: 8_000, omit_ms: 2_000, interval_ms: 100 };

impl Args {
    /// The load of UDP, where one is asked for; what it shares with TCP comes from the same flags.
    fn udp_load(&self, load: &TcpPlan, family: Family) -> Result<Option<UdpPlan>, Failure> {
        let Some(rate) = self.udp else { return Ok(None) };
        let duration_ms = match load.limit {
            Limit::DurationMs(ms) if self.load.has_duration() => ms,
            Limit::DurationMs(_) => UDP_MS,
            Limit::BytesPerStream(_) => return Err(Failure::usage("a load of UDP ends by time: leave --bytes out")),
        };
        let plan = UdpPlan {
            streams: load.streams,
            direction: load.direction,
            rate_up: rate,
            rate_down: rate,
            sizes: self.datagram.datagrams(family),
            duration_ms,
            interval_ms: load.interval_ms,
            send_buffer_bytes: load.send_buffer_bytes,
            receive_buffer_bytes: load.receive_buffer_bytes,
            dscp: load.dscp,
            allow_fragments: self.fragments,
            ..UdpPlan::default()
        };
        plan.check().map_err(Failure::usage)?;
        Ok(Some(plan))
    }

    pub(crate) fn run(self) -> Outcome {
        let load = self.load.plan(&DEFAULTS)?;
        if load.direction == Direction::Both {
            return Err(Failure::usage("a diagnosis looks at one direction at a time: choose --direction up or down"));
        }
        let mut plan = DiagnosePlan {
            load,
            udp: None,
            budget_ms: u64::try_from(self.budget.as_millis()).unwrap_or(u64::MAX),
            try_fixes: self.try_fixes,
            keep: self.keep,
            proof_pairs: self.pairs,
        };
        let stop = stop_on_interrupt()?;
        let instruments = LiveInstruments { collect: true };
        let remote = self.remote.connect(self.try_fixes, instruments)?;
        plan.udp = self.udp_load(&plan.load, remote.target().family)?;
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
        let file = stored::place(self.output.clone(), &id).map_err(Failure::run)?;
        let mut teller = Teller::new(self.quiet, Some(file.clone()));
        let session = open_session(&remote, &stop, self.quiet)?;
        let mut ends = LiveEnds::new(&remote, session, instruments, tuner, stop);
        let run = diagnosis::diagnose(&mut ends, &mut teller, &plan, remote.target(), id, made_by);
        drop(ends);
        teller.end();
        let mut style = style();
        style.full = self.full;
        let rendered = super::render_run(&run, self.format, style);
        if let Ok(text) = &rendered {
            print(text)?;
        }
        match (teller.unsaved(), self.quiet) {
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
