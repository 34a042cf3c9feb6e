//! `narrows fleet`: hosts that are tested again and again.

use crate::commands::KINDS;
use crate::failure::{Failure, Outcome};
use crate::flags::values::{duration, millis, own_port};
use crate::flags::{FormatArg, ProxyArgs};
use crate::output::{print, printed, style};
use crate::session::stop_on_interrupt;
use clap::Subcommand;
use narrows_model::run::fleet::{FleetCheck, FleetSeries, FleetStatus};
use narrows_runner::fleet::{self, AgentSpec, Asked, CONTROLLER_PORT, Command, ControllerSpec, Holder, Joins};
use narrows_runner::remote::TargetSpec;
use narrows_runner::server::AuditTo;
use narrows_runner::web::PageSpec;
use narrows_runner::{state, stored, trust, trusted};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// Test many hosts again and again, and report what gets worse
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    narrows fleet check fleet.toml               what it will cost\n  \
    narrows fleet controller fleet.toml          on one host\n  \
    narrows fleet token fleet.toml a1 > a1.token there, for each host\n  \
    narrows fleet agent CONTROLLER --token-file a1.token\n  \
    narrows fleet status                         on the controller's host\n\
    docs/fleet.md describes the file.")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Check(Check),
    Import(Import),
    Controller(Controller),
    Token(Token),
    Nats(Nats),
    Agent(Agent),
    Status(Status),
    History(History),
    Apply(Apply),
    Run(Run),
    Pause(Pause),
    Drain(Drain),
    Acknowledge(Acknowledge),
    Mute(Mute),
    /// Send a message to each target of alerts, to see whether it arrives
    TryAlerts(Way),
}

/// Tell what the file of a fleet asks for: tests, bytes and time of a day
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    narrows fleet check fleet.toml\n  \
    narrows fleet check fleet.toml --format json\n\
    Nothing is sent. docs/fleet.md describes the file.")]
struct Check {
    /// The file of the fleet (TOML)
    #[arg(value_name = "FILE", default_value = "/etc/narrows/fleet.toml")]
    file: PathBuf,
    #[command(flatten)]
    format: FormatArg<FleetCheck>,
}

/// Write the file of a fleet from a pSConfig template of perfSONAR, or from the hosts of `narrows mesh`
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    narrows fleet import psconfig.json > fleet.toml\n  \
    narrows fleet import cluster.txt > fleet.toml\n  \
    narrows fleet import cluster.txt --every 4h --expect 10G --design mesh > fleet.toml\n\
    What could not be taken over is written to standard error.")]
struct Import {
    /// The template (JSON), or a file of hosts as `narrows mesh --hosts` reads it
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Of hosts: loads between them so often (default: 1h)
    #[arg(long, value_name = "TIME")]
    every: Option<String>,
    /// Of hosts: a load lasts so long (default: 3s)
    #[arg(long, value_name = "TIME")]
    lasts: Option<String>,
    /// Of hosts: what a load is expected to carry (default: 1G)
    #[arg(long, value_name = "RATE")]
    expect: Option<String>,
    /// Of hosts: probes between them so often (default: 1m)
    #[arg(long, value_name = "TIME")]
    probe_every: Option<String>,
    /// Of hosts: mesh, ring, regular or representatives (default: regular)
    #[arg(long, value_name = "DESIGN")]
    design: Option<String>,
}

/// Give agents their tests, keep what they find, and report what gets worse
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  \
    narrows fleet controller fleet.toml\n\
    What it keeps is in the store that `narrows store` names. It runs until Ctrl-C; agents then keep what they find.")]
struct Controller {
    /// The file of the fleet (TOML)
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Port for agents and users, TCP; 0 takes a free one
    #[arg(long, short = 'p', default_value_t = CONTROLLER_PORT, value_name = "PORT")]
    port: u16,
    /// Listen at this address only (default: all addresses of this host)
    #[arg(long, value_name = "ADDRESS")]
    bind: Option<IpAddr>,
    /// Show the page for browsers at this port, too
    #[arg(long)]
    web: bool,
    #[command(flatten)]
    proxy: ProxyArgs,
    /// Append who changed what to this file as JSON lines; `journald`: to systemd's journal
    #[arg(long, hide_short_help = true, value_name = "FILE")]
    audit_log: Option<PathBuf>,
    /// NATS server for agents, beside HTTPS: nats://host:port; `narrows fleet nats` prints its users
    #[arg(long, value_name = "ADDRESS")]
    nats: Option<String>,
}

/// Print the token of a host's agent; to be run on the controller's host
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    narrows fleet token fleet.toml a1 | ssh a1 'cat > a1.token'\n  \
    narrows fleet token fleet.toml --join pods > pods.token    for all agents that join that group")]
struct Token {
    /// The file of the fleet (TOML)
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Its name in the file
    #[arg(required_unless_present_any = ["join", "metrics", "reader"])]
    host: Option<String>,
    /// One token for all agents that join this group of the file instead
    #[arg(long, conflicts_with_all = ["host", "metrics", "reader"], value_name = "GROUP")]
    join: Option<String>,
    /// The secret of a scraper instead, which may read /metrics and nothing else
    #[arg(long, conflicts_with = "host")]
    metrics: bool,
    /// The secret of a reader of the page instead, who changes nothing
    #[arg(long, conflicts_with_all = ["host", "metrics"])]
    reader: bool,
}

/// Print the users of a fleet for the configuration of a nats-server; to be run on the controller's host
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  narrows fleet nats fleet.toml > /etc/nats/narrows.conf    include it in nats-server.conf"
)]
struct Nats {
    /// The file of the fleet (TOML)
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Make the tests that a controller gives this host
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  \
    narrows fleet agent controller.example --token-file a1.token\n\
    It needs no root: run it as a user of its own, as the unit of the packages does.\n\
    Other agents load it at its port, and probe it at the next one (UDP).")]
struct Agent {
    /// The controller: host or host:port, several with commas between; or the bus: nats://host:port
    #[arg(value_delimiter = ',', required = true)]
    controller: Vec<String>,
    /// File with this host's token, which `narrows fleet token` printed (default: that of `narrows trust`)
    #[arg(long, value_name = "PATH")]
    token_file: Option<PathBuf>,
    /// With the token of a group: what this host is called in the fleet, which it joins
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Where others load this host, if the service of its group names this address (default: where it comes from)
    #[arg(long, requires = "name", value_name = "ADDRESS")]
    address: Option<IpAddr>,
    /// Port at which other agents load this host, TCP and UDP; 0 takes free ones
    #[arg(long, short = 'p', default_value_t = fleet::AGENT_PORT, value_name = "PORT")]
    port: u16,
    /// Let scrapers read /metrics (OpenMetrics) at this port of this host, or at an address: plain HTTP, no token
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = own_port)]
    metrics: Option<SocketAddr>,
}

/// Where the controller of a user is.
#[derive(Debug, clap::Args)]
struct Way {
    /// The controller: host or host:port (default: this host)
    #[arg(long, value_name = "HOST")]
    controller: Option<String>,
    /// File with the token of its users (default: that of this host's controller, or of `narrows trust`)
    #[arg(long, value_name = "PATH")]
    token_file: Option<PathBuf>,
}

/// Have the controller read its file again, or take this one in its place
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  narrows fleet apply\n  \
    narrows fleet apply fleet.toml --controller noc.example --token-file users.token\n\
    Only pairs that changed are affected. Where alerts go is changed in the controller's own file only.")]
struct Apply {
    /// The file of the fleet (TOML), of this host (default: the controller's own, as it is now)
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    way: Way,
}

/// Tell what is bad, which agents are there, and how tests end
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    narrows fleet status\n  \
    narrows fleet status --controller noc.example --token-file users.token --format json\n\
    Exit code: 0 nothing is bad; 3 an incident is open, an agent is silent, or the store or an alert fails.")]
struct Status {
    #[command(flatten)]
    way: Way,
    #[command(flatten)]
    format: FormatArg<FleetStatus>,
}

/// Tell what the tests from one host to another found over time
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    narrows fleet history a1 b3\n  \
    narrows fleet history a1 b3 --last 30d --format csv\n\
    Single tests are kept as long as the fleet's file says (keep, 30 days); then a figure a day.")]
struct History {
    /// The host that sends
    from: String,
    /// The host that receives
    to: String,
    /// So long until now
    #[arg(long, value_parser = duration, default_value = "1d", value_name = "TIME")]
    last: Duration,
    #[command(flatten)]
    way: Way,
    #[command(flatten)]
    format: FormatArg<FleetSeries>,
}

/// Make the tests of a mesh now, beside those that are due
#[derive(Debug, clap::Args)]
struct Run {
    /// The mesh (default: all)
    mesh: Option<String>,
    /// Only the tests between two hosts
    #[arg(long, num_args = 2, action = clap::ArgAction::Set, value_names = ["HOST", "HOST"])]
    between: Option<Vec<String>>,
    #[command(flatten)]
    way: Way,
}

/// Begin no test for a time
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  narrows fleet pause 2h\n  narrows fleet pause 0s    go on")]
struct Pause {
    /// For so long
    #[arg(value_parser = duration, value_name = "TIME")]
    time: Duration,
    #[command(flatten)]
    way: Way,
}

/// Give a host no more tests, as before its maintenance
#[derive(Debug, clap::Args)]
struct Drain {
    host: String,
    /// Give it tests again
    #[arg(long)]
    back: bool,
    #[command(flatten)]
    way: Way,
}

/// Say that somebody has an incident in hand
#[derive(Debug, clap::Args)]
struct Acknowledge {
    /// Its number
    incident: u64,
    /// Who
    #[arg(long, value_name = "NAME", env = "USER")]
    by: String,
    #[command(flatten)]
    way: Way,
}

/// Report nothing of an element for a time
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  narrows fleet mute a1 4h              whatever names this host\n  narrows fleet mute 'group west' 1d    and its hosts\n  narrows fleet mute 'agent *' 1d       all elements whose names begin so\n  narrows fleet mute a1 0s              reported again"
)]
struct Mute {
    /// A host, a group, or an element as incidents name it; `*` at its end: all that begin so
    element: String,
    /// For so long; 0s ends it
    #[arg(value_parser = duration, value_name = "TIME")]
    time: Duration,
    #[command(flatten)]
    way: Way,
}

fn place() -> Result<PathBuf, Failure> {
    state::directory().ok_or_else(|| Failure::run("there is no place for the fleet: set HOME or XDG_STATE_HOME"))
}

/// Who shows a controller a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bearer {
    Agent,
    User,
}

/// A controller with the token that was given, or is stored.
fn target(word: &str, token_file: Option<&std::path::Path>, bearer: Bearer) -> Result<TargetSpec, Failure> {
    let mut spec = TargetSpec { asked: word.to_owned(), family: None, port: CONTROLLER_PORT, token: None };
    let given = match bearer {
        Bearer::Agent => trust::agent_token(token_file),
        Bearer::User => trust::client_token(token_file),
    };
    let given = given.map_err(Failure::run)?;
    if fleet::is_bus(word) {
        spec.token = given;
        return if spec.token.is_some() { Ok(spec) } else { Err(Failure::usage("a bus needs --token-file")) };
    }
    let (host, port, ssh) = spec.server().map_err(Failure::usage)?;
    if ssh.is_some() {
        return Err(Failure::usage("a controller is named as host or host:port"));
    }
    spec.token = given.or_else(|| trusted::stored(&host, port));
    if spec.token.is_none() {
        let get = match bearer {
            Bearer::Agent => {
                "make one on the controller's host: `narrows fleet token FILE HOST > HOST.token`; copy it to this host, and name \
                 its file with --token-file"
            }
            Bearer::User => {
                "name its file with --token-file (that of the packages' service is /var/lib/narrows-fleet/controller/token)"
            }
        };
        let other =
            if bearer == Bearer::User { "; name a controller on another host with --controller HOST" } else { "" };
        return Err(Failure::usage(format!(
            "cannot show the controller a token: {get}, or store it with `narrows trust {host} -p {port} --token-file FILE`{other}"
        )));
    }
    Ok(spec)
}

impl Way {
    fn spec(&self) -> Result<TargetSpec, Failure> {
        match (&self.controller, &self.token_file) {
            (Some(word), file) => target(word, file.as_deref(), Bearer::User),
            (None, Some(file)) => target("127.0.0.1", Some(file), Bearer::User),
            (None, None) => target("127.0.0.1", fleet::own_token(&place()?).as_deref(), Bearer::User),
        }
    }

    fn ask(&self, command: &Command) -> Outcome {
        printed(&fleet::ask(&self.spec()?, command).map_err(Failure::run)?)
    }
}

impl Args {
    pub(crate) fn run(self) -> Outcome {
        match self.what {
            What::Check(it) => {
                let report = fleet::check(&it.file).map_err(Failure::usage)?;
                printed(&it.format.write(&report, style())?)?;
                Ok(if report.is_possible() { 0 } else { 3 })
            }
            What::Import(it) => {
                let Import { file, every, lasts, expect, probe_every, design } = it;
                let asked = Asked { every, lasts, expect, probe_every, design };
                let (text, remarks) = fleet::imported(&file, &asked).map_err(Failure::usage)?;
                remarks.iter().for_each(|remark| crate::failure::note!("note: {remark}"));
                print(&text)?;
                Ok(0)
            }
            What::Controller(it) => it.run(),
            What::Token(it) => {
                let other = if it.reader { Holder::Reader } else { Holder::Scraper };
                let other = it.join.as_deref().map_or(other, Holder::Group);
                let holder = it.host.as_deref().map_or(other, Holder::Agent);
                printed(&fleet::token_of(&it.file, holder, &place()?).map_err(Failure::usage)?)
            }
            What::Nats(it) => printed(&fleet::users_of(&it.file, &place()?).map_err(Failure::usage)?),
            What::Agent(it) => it.run(),
            What::Status(it) => {
                let report = fleet::status(&it.way.spec()?).map_err(Failure::run)?;
                printed(&it.format.write(&report, style())?)?;
                Ok(if report.is_well() { 0 } else { 3 })
            }
            What::History(it) => {
                let report = fleet::history(&it.way.spec()?, &it.from, &it.to, it.last).map_err(Failure::run)?;
                printed(&it.format.write(&report, style())?)
            }
            What::Apply(it) => {
                let text = it.file.as_deref().map(fleet::text_of).transpose().map_err(Failure::usage)?;
                it.way.ask(&text.map_or(Command::Apply, |text| Command::ApplyFile { text }))
            }
            What::TryAlerts(way) => way.ask(&Command::TryAlerts),
            What::Run(it) => {
                let between = it.between.and_then(|hosts| hosts.try_into().ok());
                it.way.ask(&Command::Run { mesh: it.mesh, between })
            }
            What::Pause(it) => it.way.ask(&Command::Pause { for_ms: millis(it.time) }),
            What::Drain(it) => it.way.ask(&Command::Drain { host: it.host, back: it.back }),
            What::Acknowledge(it) => it.way.ask(&Command::Acknowledge { incident: it.incident, who: it.by }),
            What::Mute(it) => it.way.ask(&Command::Mute { element: it.element, for_ms: millis(it.time) }),
        }
    }
}

impl Controller {
    fn run(self) -> Outcome {
        let store = stored::address().map_err(Failure::run)?;
        let page = self.web.then(|| PageSpec {
            store: store.clone(),
            kinds: KINDS,
            proxy: self.proxy.proxy(),
            controls: false,
        });
        let spec = ControllerSpec {
            file: self.file,
            port: Some(self.port),
            bind: self.bind,
            state: place()?,
            store,
            bus: self.nats,
            page,
            audit: self.audit_log.map(AuditTo::from),
        };
        // What another start would not mend.
        fleet::readable(&spec.file).map_err(Failure::usage)?;
        fleet::controller(&spec, &stop_on_interrupt()?, &mut |line| crate::failure::note!("{line}"))
            .map_err(Failure::run)?;
        Ok(0)
    }
}

impl Agent {
    fn run(self) -> Outcome {
        let spec = AgentSpec {
            controllers: (self.controller.iter())
                .map(|word| target(word, self.token_file.as_deref(), Bearer::Agent))
                .collect::<Result<_, _>>()?,
            port: Some(self.port),
            joins: self.name.map(|name| Joins { name, address: self.address }),
            metrics: self.metrics,
            state: place()?.join("agent"),
        };
        if let Some(warning) = self.token_file.as_deref().and_then(trust::agent_token_warning) {
            crate::failure::note!("{warning}");
        }
        let stop = || stop_on_interrupt().map_err(|failure| failure.to_string());
        fleet::agent(&spec, &stop, &mut |line| crate::failure::note!("{line}")).map_err(Failure::run)?;
        Ok(0)
    }
}
