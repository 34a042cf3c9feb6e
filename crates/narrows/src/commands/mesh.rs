//! `narrows mesh`: loads between all of many hosts.

use crate::commands::KINDS;
use crate::commands::generate::check_output;
use crate::failure::{Failure, Outcome};
use crate::flags::values::{duration, millis};
use crate::flags::{ResultArgs, SaveArgs, known};
use crate::output::{deliver, style};
use crate::session::{INTERRUPTED, stop_on_interrupt};
use narrows_model::Run;
use narrows_model::run::mesh::{MeshPlan, MeshReport};
use narrows_model::words::show::plural;
use narrows_render::Format;
use narrows_runner::live::LiveInstruments;
use narrows_runner::mesh::{self, HOSTS_MAX, MeshHost, MeshSpec, listed};
use narrows_runner::server::{ServeConfig, Server, ServerHandle};
use narrows_runner::stored::{self, Begun};
use narrows_runner::web::PageSpec;
use narrows_runner::{Stop, state};
use narrows_views::mesh::changes;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Load the paths between many hosts and name what is slow
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    narrows mesh ssh://a ssh://b ssh://c\n  \
    narrows mesh --hosts cluster.txt -t 5s --concurrent 4 --try\n  \
    narrows mesh --hosts inventory.ini --every 1h --budget-bytes 20G\n  \
    narrows mesh --hosts cluster.txt --resume 20260101-120000-1a2b3c4d\n\
    A file of hosts has a host in each line, with its group if it has one: `ssh://a rack1`; or it is an inventory of\n\
    Ansible (INI).\n\
    A host without narrows gets this program over SSH; it leaves no file there, whatever ends it.")]
pub(crate) struct Args {
    /// Hosts: ssh://[user@]host[:port]; or host[:port] of `narrows serve`, after `narrows trust`
    #[arg(value_name = "HOST")]
    names: Vec<String>,
    /// File with a host in each line, and its group behind it; `#` starts a comment
    #[arg(long, value_name = "FILE")]
    hosts: Option<PathBuf>,
    /// Duration of each load
    #[arg(long, short = 't', value_parser = duration, value_name = "TIME", default_value = "3s", help_heading = "Load")]
    duration: Duration,
    /// TCP streams of each load
    #[arg(long, short = 'P', value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=128), help_heading = "Load")]
    streams: u32,
    /// Most loads at the same time through one router
    ///
    /// The same through those that no trace shows. Without it there is no limit.
    #[arg(long, value_name = "N", help_heading = "Load")]
    concurrent: Option<std::num::NonZeroUsize>,
    /// Duration of the probes at a low rate; 0: none
    ///
    /// They come first, and measure round trips, loss, path MTU and routers.
    #[arg(long, value_parser = duration, value_name = "TIME", default_value = "8s", help_heading = "Load")]
    probe: Duration,
    /// Do not diagnose a load of each suspect
    #[arg(long, help_heading = "Load")]
    no_diagnose: bool,
    /// Try the first fix of each diagnosis, and roll it back
    ///
    /// The load is measured without and with it in turn. It needs root there.
    #[arg(long = "try", conflicts_with = "no_diagnose", help_heading = "Load")]
    try_fixes: bool,
    /// Time limit: start no load that would end later
    #[arg(long, value_parser = duration, value_name = "TIME", help_heading = "Load")]
    budget: Option<Duration>,
    /// Data limit: start no load after so many bytes
    #[arg(long, value_parser = crate::flags::values::size, value_name = "SIZE", help_heading = "Load")]
    budget_bytes: Option<u64>,
    /// Repeat at this interval until Ctrl-C, and say what changed; `-o FILE` has the last one
    #[arg(long, value_parser = duration, value_name = "TIME")]
    every: Option<Duration>,
    /// Run id of an interrupted mesh: take over what it measured
    #[arg(long, value_name = "RUN", conflicts_with = "every", add = known::runs())]
    resume: Option<String>,
    /// The narrows command on the hosts (default: theirs, if it is of this version, else this program)
    #[arg(long, value_name = "COMMAND", hide_short_help = true)]
    remote_command: Option<String>,
    /// A static narrows for hosts with another CPU (make static TARGETS=…); repeatable
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    program: Vec<PathBuf>,
    /// Show stored meshes and runs to browsers, at a port of this host alone, until Ctrl-C
    #[arg(long, hide_short_help = true, conflicts_with = "no_save")]
    web: bool,
    #[command(flatten)]
    save: SaveArgs,
    #[command(flatten)]
    result: ResultArgs<MeshReport>,
}

impl Args {
    pub(crate) fn run(self) -> Outcome {
        let spec = self.spec()?;
        if self.every.is_some_and(|every| every < Duration::from_secs(10)) {
            return Err(Failure::usage("cannot repeat so often: --every is 10s at least"));
        }
        if self.every.is_some() && self.result.format() == Format::Html {
            return Err(Failure::usage("cannot repeat as html: each mesh is a page of its own; use --web"));
        }
        check_output(self.result.output())?;
        let stop = stop_on_interrupt()?;
        let page = self.web.then(page).transpose()?;
        let (mut last, mut known): (Option<u8>, Option<MeshReport>) = (None, None);
        mesh::repeat(self.every, &stop, &mut || {
            let report = match self.once(&spec, &stop) {
                Ok(report) => report,
                // What fails once, as on a full disk, may be well the next time.
                Err(failure) if last.is_some() => {
                    crate::failure::note!("{failure}");
                    return Ok(());
                }
                Err(failure) => return Err(failure),
            };
            for change in known.iter().flat_map(|known| changes(known, &report)) {
                crate::failure::note!("changed: {change}");
            }
            last = Some(code(&report));
            // One in which nothing was measured tells nothing of what was before.
            if report.measured() > 0 || known.is_none() {
                known = Some(report);
            }
            Ok(())
        })?;
        if page.is_some() {
            mesh::rest(Duration::MAX, &stop);
        }
        Ok(if self.every.is_some() { INTERRUPTED } else { last.unwrap_or(1) })
    }

    /// What is asked for, or why that cannot be.
    fn spec(&self) -> Result<MeshSpec, Failure> {
        let mut hosts: Vec<MeshHost> =
            self.names.iter().map(|name| MeshHost { name: name.clone(), alias: None, group: String::new() }).collect();
        let more = self.hosts.as_deref().map(listed).transpose().map_err(Failure::usage)?;
        hosts.extend(more.unwrap_or_default());
        if !(2..=HOSTS_MAX).contains(&hosts.len()) {
            let count = plural(hosts.len() as u64, "host");
            return Err(Failure::usage(format!(
                "cannot make a mesh of {count}: name 2 to {HOSTS_MAX}, as ssh://a ssh://b, or in a file with --hosts"
            )));
        }
        for (nth, host) in hosts.iter().enumerate() {
            let name = |host: &MeshHost| host.name.rsplit_once("://").map_or(host.name.clone(), |it| it.1.to_owned());
            let is_same = |other: &&MeshHost| name(other) == name(host) || other.called() == host.called();
            if hosts.iter().take(nth).any(|other| is_same(&other)) {
                return Err(Failure::usage(format!("cannot make a mesh: {} is named twice", host.name)));
            }
        }
        let (duration_ms, probe_ms) = (millis(self.duration), millis(self.probe));
        if probe_ms > 600_000 {
            return Err(Failure::usage("cannot probe for so long: --probe is 10min at most"));
        }
        if !(200..=3_600_000).contains(&duration_ms) {
            return Err(Failure::usage("cannot load for so long: --duration is from 200ms to 1h"));
        }
        let plan = MeshPlan {
            duration_ms,
            streams: self.streams,
            probe_ms,
            diagnose: !self.no_diagnose,
            try_fixes: self.try_fixes,
            budget_ms: self.budget.map(millis),
            budget_bytes: self.budget_bytes,
        };
        let concurrent = self.concurrent.map_or(usize::MAX, Into::into);
        let resumes = self.resume.as_deref().map(super::history::mesh_of).transpose()?;
        if resumes.as_ref().is_some_and(|it| (it.plan.duration_ms, it.plan.streams) != (duration_ms, self.streams)) {
            return Err(Failure::usage(
                "cannot resume: the loads of that mesh have another duration, or other streams",
            ));
        }
        if let Some(before) = &resumes {
            let known = |host: &MeshHost| before.members.iter().any(|it| it.name == host.called());
            if !hosts.iter().any(known) {
                return Err(Failure::usage("cannot resume: none of these hosts was in that mesh"));
            }
        }
        let (remote_command, programs) = (self.remote_command.clone(), self.program.clone());
        Ok(MeshSpec { hosts, plan, concurrent, remote_command, programs, resumes })
    }

    /// Makes a mesh, prints and saves it.
    fn once(&self, spec: &MeshSpec, stop: &Stop) -> Result<MeshReport, Failure> {
        let (begun, quiet) = (Begun::now().map_err(Failure::run)?, self.result.quiet);
        let record = mesh::run(spec, stop, &|text| {
            if !quiet {
                crate::failure::note!("{text}");
            }
        });
        let (mut record, runs) = record.map_err(Failure::usage)?;
        for (place, run) in runs {
            let name = stored::new_name().map_err(Failure::run)?;
            // By this host's clock: that of the member may be anything.
            let run = Run { id: name.0, made_by: name.1, started_unix_us: begun.unix_us, ..run };
            let saved = self.save.keep(&begun, true, |begun| stored::keep(&run, &begun.tags));
            if let Some(diagnosis) = record.diagnoses.get_mut(place) {
                diagnosis.run = saved.map(|_| run.id);
            }
        }
        for left in record.diagnoses.iter().filter_map(|it| it.tried.as_ref()).flat_map(|it| &it.left) {
            crate::failure::note!("rollback not confirmed: {left}; `narrows tune list` there shows what is in force");
        }
        let report = narrows_runner::mesh_report(&record);
        deliver(
            &self.result.write(&report, style())?,
            || self.save.keep(&begun, quiet, |begun| stored::keep_new(&record, begun)),
            &[(self.result.output(), &|| narrows_render::json::pretty(&record).map_err(Failure::run))],
        )?;
        Ok(report)
    }
}

/// The page of `narrows serve --web`, for browsers of this host.
fn page() -> Result<ServerHandle, Failure> {
    let state =
        state::directory().ok_or_else(|| Failure::run("there is no place for a key: set HOME or XDG_STATE_HOME"))?;
    let page = PageSpec { store: stored::address().map_err(Failure::run)?, kinds: KINDS, proxy: None, controls: false };
    let config = ServeConfig {
        port: 0,
        bind: Some(IpAddr::from([127, 0, 0, 1])),
        page: Some(page),
        ..ServeConfig::new(state, LiveInstruments::Nothing)
    };
    let server = Server::start(config).map_err(Failure::run)?;
    let token = server.token_file().map_or_else(String::new, |file| file.display().to_string());
    crate::failure::note!("its page is at https://127.0.0.1:{}/ until Ctrl-C; the token is in {token}", server.port());
    Ok(server)
}

fn code(report: &MeshReport) -> u8 {
    let untested =
        report.measured() < report.loads.len() || report.members.iter().any(|member| member.absent.is_some());
    let named = !report.suspects.is_empty() || !report.losing.is_empty() || !report.starved.is_empty();
    let bad = named || untested;
    match (report.interrupted, report.measured() > 0, bad) {
        (true, ..) => INTERRUPTED,
        (_, false, _) => 1,
        (.., true) => 3,
        (.., false) => 0,
    }
}

/// A member of a mesh, which `narrows mesh` starts
#[derive(Debug, clap::Args)]
pub(crate) struct Member {}

impl Member {
    pub(crate) fn run(self) -> Outcome {
        mesh::obey().map_err(Failure::run)?;
        Ok(0)
    }
}
