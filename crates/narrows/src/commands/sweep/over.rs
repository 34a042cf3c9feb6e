//! `narrows sweep --over`: the influence of one or two factors, by a campaign.

use super::{Args, ProtocolWord};
use crate::commands::campaign::Around;
use crate::failure::{Failure, Outcome};
use crate::flags::DirectionWord;
use crate::output::{print, written};
use crate::session::{INTERRUPTED, tuner};
use narrows_model::UdpRate;
use narrows_render::{campaign as runs, influence};
use narrows_runner::campaign::{self, Ended, Surroundings as _, results};
use narrows_runner::compare::SIDES_MAX;
use narrows_runner::stored::{self, Begun};
use narrows_runner::sweep::over::{self, OverPlan};

/// Default number of runs per combination.
const REPETITIONS: u32 = 3;

impl Args {
    pub(super) fn over(&self) -> Outcome {
        if self.remote.iperf3()?.is_some() {
            return Err(Failure::usage(
                "cannot sweep over parameters with an iperf3 server; run `narrows serve` there",
            ));
        }
        let seed = match self.seed {
            Some(seed) => seed,
            None => Begun::now().map_err(Failure::run)?.unix_us,
        };
        let plan = &self.plan;
        let repetitions = if plan.given.has("repetitions") { plan.repetitions } else { REPETITIONS };
        let (host, over, load) = (self.remote.host().to_owned(), self.over.clone(), self.load()?);
        let plan = over::plan(&OverPlan { host, over, load, repetitions, seed }).map_err(Failure::usage)?;
        for file in [&self.csv, &self.svg.svg].into_iter().flatten() {
            stored::check(file).map_err(Failure::run)?;
        }
        let (tag, steps) = (campaign::tag(&plan), campaign::steps(&plan));
        let done = results::done(&tag).map_err(Failure::run)?;
        let left = results::left(&steps, &done);
        let mut around = Around::new(self.remote.way(), self.result.quiet, &plan)?;
        for undoing in tuner("campaign")?.recover().map_err(Failure::run)? {
            around.line(&format!("rolled back what a killed sweep left: {}", undoing.entry.change.set));
        }
        let ended = campaign::perform(&plan, &left, &mut around).map_err(Failure::run)?;
        let report = results::report(&plan, 0.01).map_err(Failure::run)?;
        let report = influence::Influence(report);
        print(&written(&report, self.result.format(), self.full.style())?)?;
        if let Some(file) = &self.csv {
            stored::write(file, &runs::csv(&report.0)).map_err(Failure::run)?;
        }
        if let Some(file) = &self.svg.svg {
            stored::write(file, &influence::picture(&report.0)).map_err(Failure::run)?;
        }
        match ended {
            Ended::Complete => {
                around.line(&format!("{} runs with tag {tag}", steps.len()));
                if let Some(command) = influence::comparison(&report.0, SIDES_MAX) {
                    around.line(&format!("to prove a difference (4 runs or more of each): {command}"));
                }
                Ok(0)
            }
            Ended::Interrupted => {
                // Even to a quiet user: without the seed the runs so far are of another campaign.
                crate::failure::note!("interrupted; the same command with --seed {seed} continues");
                Ok(INTERRUPTED)
            }
            Ended::HostsLost(lost) => Err(Failure::run(format!(
                "cannot finish the sweep: host lost: {}; the same command with --seed {seed} continues",
                lost.join("; ")
            ))),
        }
    }

    /// The keys of the load.
    fn load(&self) -> Result<Vec<(&'static str, String)>, Failure> {
        let plan = &self.plan;
        let given = |flag: &str| plan.given.has(flag);
        let udp = match plan.protocol.as_slice() {
            [ProtocolWord::Udp] => true,
            [ProtocolWord::Tcp] => false,
            _ if !given("protocol") => false,
            _ => return Err(Failure::usage("cannot sweep over parameters with several protocols: give one")),
        };
        let direction = match plan.direction.direction.as_slice() {
            [DirectionWord::Down] => "down",
            [DirectionWord::Up] => "up",
            _ if !given("direction") => "up",
            _ => return Err(Failure::usage("cannot sweep over parameters in both directions: give up or down")),
        };
        let mut load = vec![
            ("kind", if udp { "udp" } else { "tcp" }.to_owned()),
            ("duration", format!("{}ms", plan.duration.ms())),
            ("direction", direction.to_owned()),
            ("streams", plan.streams.streams.to_string()),
        ];
        load.extend(plan.omit.ms().map(|ms| ("omit", format!("{ms}ms"))));
        match (udp, plan.size.size.as_slice()) {
            (_, _) if !given("size") => {}
            (true, [size]) => load.push(("size", size.to_string())),
            _ => return Err(Failure::usage("cannot sweep over parameters with --size: only UDP takes one size")),
        }
        if udp {
            load.push((
                "rate",
                match plan.rate.rate {
                    UdpRate::Max => "max".to_owned(),
                    UdpRate::Bps(bps) => bps.to_string(),
                    UdpRate::Pps(pps) => format!("{pps}pps"),
                },
            ));
        }
        Ok(load)
    }
}
