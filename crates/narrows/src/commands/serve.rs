//! `narrows serve`: the measurement server.

use crate::commands::KINDS;
use crate::failure::{Failure, Outcome};
use crate::flags::ProxyArgs;
use crate::flags::values::{bps, network, own_port};
use crate::output::printed;
use narrows_runner::iperf3::auth::Users;
use narrows_runner::live::LiveInstruments;
use narrows_runner::server::{self, AuditTo, Separation, ServeConfig, StampConfig};
use narrows_runner::tokens::{self, Allowed};
use narrows_runner::web::PageSpec;
use narrows_runner::{DEFAULT_PORT, stamp, state, stored};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Run the measurement server
#[derive(Debug, clap::Args)]
#[command(after_help = "At the first start a key and a token are made; clients need the token:\n  \
    narrows serve --token-file token\n  \
    narrows diagnose HOST --token-file token     on the other host\n\
    Without --allow-tune nothing on this host is ever changed.")]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Port, TCP and UDP; 0 takes a free one
    #[arg(long, short = 'p', default_value_t = DEFAULT_PORT, value_name = "PORT")]
    port: u16,
    /// Listen at this address only (default: all addresses of this host)
    #[arg(long, value_name = "ADDRESS")]
    bind: Option<IpAddr>,
    /// Take data connections of Multipath TCP, too
    ///
    /// Without it a SYN in another's name is answered at most twice; Multipath TCP has no such limit.
    #[arg(long, hide_short_help = true)]
    mptcp: bool,
    /// File with the token; made if it is missing
    #[arg(long, value_name = "PATH")]
    token_file: Option<PathBuf>,
    /// Let clients without a token measure, with limits of rate and time
    #[arg(long)]
    open: bool,
    /// With --open: the most that a client without a token may send or be sent
    #[arg(long, hide_short_help = true, value_parser = bps, default_value = "1G", value_name = "RATE")]
    open_rate: u64,
    /// Let clients with the token change network settings of this host; all are rolled back when the client is gone
    #[arg(long)]
    allow_tune: bool,
    /// Let clients with the token send and count raw frames by these devices, at line rate; for devices of a lab alone
    #[arg(long, value_name = "DEV[,DEV...]", value_delimiter = ',')]
    frames: Vec<String>,
    /// Loads at the same time; more wait for their turn
    #[arg(long, default_value_t = 1, value_name = "N")]
    parallel: usize,
    /// As root: the user that speaks to the network; root: everything in one process (default: narrows, else nobody)
    #[arg(long, hide_short_help = true, value_name = "NAME")]
    user: Option<String>,
    /// Speak on standard input and output, as ssh:// clients want it
    #[arg(long, hide_short_help = true)]
    stdio: bool,
    /// Serve clients of iperf3 on this port, too, without a token
    #[arg(long, value_name = "PORT", num_args = 0..=1, default_missing_value = "5201")]
    iperf3: Option<u16>,
    /// With --iperf3: the most that all tests together may carry each way
    #[arg(long, hide_short_help = true, value_parser = bps, default_value = "1G", value_name = "RATE", requires = "iperf3")]
    iperf3_rate: u64,
    /// With --iperf3: serve users only, whose login this private RSA key (PEM) decrypts
    #[arg(long, hide_short_help = true, value_name = "FILE", requires_all = ["iperf3", "authorized_users_path"])]
    rsa_private_key_path: Option<PathBuf>,
    /// With --iperf3: the users, `user,HASH` in each line with the SHA-256 of `{user}password`
    #[arg(long, hide_short_help = true, value_name = "FILE", requires = "rsa_private_key_path")]
    authorized_users_path: Option<PathBuf>,
    /// Serve responsiveness tests on this port, too, as Apple's networkQuality makes them: without a token
    #[arg(long, value_name = "PORT", num_args = 0..=1, default_missing_value = "4043", conflicts_with = "stdio")]
    responsiveness: Option<u16>,
    /// With --responsiveness: the most that all tests together may carry each way
    #[arg(long, hide_short_help = true, value_parser = bps, default_value = "1G", value_name = "RATE", requires = "responsiveness")]
    responsiveness_rate: u64,
    /// Serve tests over QUIC on this UDP port, too, by QUIC's protocol `perf`: without a token
    #[arg(long, hide_short_help = true, value_name = "PORT", num_args = 0..=1, default_missing_value = "4433", conflicts_with = "stdio")]
    quic: Option<u16>,
    /// With --quic: the most that all tests together may carry each way
    #[arg(long, hide_short_help = true, value_parser = bps, default_value = "1G", value_name = "RATE", requires = "quic")]
    quic_rate: u64,
    /// Reflect STAMP and TWAMP Light sessions, too (RFC 8762), at UDP port 862 or this one
    #[arg(long, value_name = "PORT", num_args = 0..=1, default_missing_value = "862", help_heading = "STAMP")]
    stamp: Option<u16>,
    /// Whom to answer: networks of senders
    #[arg(long, hide_short_help = true, value_name = "ADDRESS[/PREFIX],...", value_parser = network, value_delimiter = ',', requires = "stamp", help_heading = "STAMP")]
    stamp_peer: Vec<(IpAddr, u8)>,
    /// Answer everyone, with limits of packets a second
    #[arg(long, hide_short_help = true, requires = "stamp", help_heading = "STAMP")]
    stamp_any: bool,
    /// File with the key, in hexadecimal: authenticated sessions only
    #[arg(long, hide_short_help = true, value_name = "FILE", requires = "stamp", help_heading = "STAMP")]
    stamp_key: Option<PathBuf>,
    /// Show browsers the runs of the store and settings of this host
    ///
    /// The page is at https://HOST:PORT/, with a certificate that the server made itself. Its login takes the server's token, from the file that the first line at the start names (--token-file). As root, add --user root: the process that speaks to the network may not read the store otherwise.
    #[arg(long, conflicts_with = "stdio")]
    web: bool,
    /// With --web: who shows the server's token may start tests from this host and, with --allow-tune, undo changes
    #[arg(long, hide_short_help = true, requires = "web")]
    web_control: bool,
    #[command(flatten)]
    proxy: ProxyArgs,
    /// Let scrapers read /metrics (OpenMetrics) at this port of this host, or at an address: plain HTTP, no token
    #[arg(long, hide_short_help = true, value_name = "[ADDRESS:]PORT", value_parser = own_port, conflicts_with = "stdio")]
    metrics: Option<SocketAddr>,
    /// Append who measured and changed what to this file as JSON lines; `journald`: to systemd's journal
    #[arg(long, hide_short_help = true, value_name = "FILE")]
    audit_log: Option<PathBuf>,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Tokens with a name, rights and an end
    #[command(subcommand)]
    Token(Token),
}

/// Named tokens
#[derive(Debug, clap::Subcommand)]
enum Token {
    /// Add a token and print it; it is not stored
    #[command(after_help = "Example:\n  narrows serve token add ci --rate 1G --until 30d > token")]
    Add {
        /// Name: letters, digits, `.`, `_` and `-`
        name: String,
        /// Rights of its holder
        #[arg(long, value_parser = allowed, value_delimiter = ',', default_value = "measure", value_name = "measure,tune,frames")]
        allow: Vec<Allowed>,
        /// Most that a load of its holder may send or be sent
        #[arg(long, value_parser = bps, value_name = "RATE")]
        rate: Option<u64>,
        /// End: RFC 3339 date, or duration from now (30d)
        #[arg(long, value_name = "DATE")]
        until: Option<String>,
    },
    /// List the named tokens and their rights
    List,
    /// Revoke a token: a running server ends the sessions of its holder
    Revoke {
        /// Name of the token
        name: String,
    },
}

fn allowed(word: &str) -> Result<Allowed, String> {
    let found = Allowed::ALL.into_iter().find(|it| it.word() == word.trim());
    found.ok_or_else(|| "the rights are measure, tune and frames".to_owned())
}

impl Token {
    fn run(self, state: &Path) -> Outcome {
        let now_unix_s = tokens::now_unix_s();
        match self {
            Self::Add { name, allow, rate, until } => {
                let until =
                    until.map(|word| tokens::parse_until(&word, now_unix_s)).transpose().map_err(Failure::usage)?;
                let token =
                    tokens::add(state, &name, allow.into_iter().collect(), rate, until).map_err(Failure::run)?;
                printed(&token.reveal())
            }
            Self::List => {
                let tokens = tokens::list(state).map_err(Failure::run)?;
                let line = |token: &tokens::Named| {
                    let expired = if token.has_expired(now_unix_s) { " (expired)" } else { "" };
                    format!("{}  {}{expired}", token.name, token.rights())
                };
                match tokens.is_empty() {
                    true => printed("there are no named tokens"),
                    false => printed(&tokens.iter().map(line).collect::<Vec<_>>().join("\n")),
                }
            }
            Self::Revoke { name } => {
                tokens::revoke(state, &name).map_err(Failure::run)?;
                printed(&format!("revoked token {name}"))
            }
        }
    }
}

impl Args {
    pub(crate) fn run(self) -> Outcome {
        let state = state::directory()
            .ok_or_else(|| Failure::run("there is no place for the server's key: set HOME or XDG_STATE_HOME"))?;
        if let Some(Command::Token(token)) = self.command {
            return token.run(&state);
        }
        if self.stamp.is_some() && self.stamp_peer.is_empty() && !self.stamp_any {
            return Err(Failure::usage(
                "cannot reflect STAMP sessions: nobody would be answered; name senders with --stamp-peer, or use --stamp-any",
            ));
        }
        let stamp_key = self.stamp_key.as_deref().map(stamp::read_key).transpose().map_err(Failure::run)?;
        let stamp = self.stamp.map(|port| StampConfig {
            port,
            peers: self.stamp_peer,
            any: self.stamp_any,
            key: stamp_key,
            admission: None,
        });
        let separation = match self.user {
            // What makes changes outlives the rest, and undoes them.
            _ if self.stdio && !self.allow_tune => Separation::None,
            Some(name) if name == "root" => Separation::None,
            Some(name) => Separation::User(name),
            None => Separation::Usual,
        };
        let users = self.rsa_private_key_path.as_deref().zip(self.authorized_users_path.as_deref());
        let users = users.map(|(key, list)| Users::read(key, list)).transpose().map_err(Failure::run)?;
        let store = self.web.then(stored::address).transpose().map_err(Failure::run)?;
        let config = ServeConfig {
            port: if self.stdio && self.port == DEFAULT_PORT { 0 } else { self.port },
            bind: self.bind,
            multipath: self.mptcp,
            token_file: self.token_file,
            open: self.open,
            open_most_bps: self.open_rate,
            allow_tune: self.allow_tune,
            frames: self.frames,
            parallel: self.parallel.max(1),
            stdio: self.stdio,
            separation,
            iperf3: self.iperf3,
            iperf3_users: users.map(Arc::new),
            iperf3_rate_bps: self.iperf3_rate,
            responsiveness: self.responsiveness,
            responsiveness_rate_bps: self.responsiveness_rate,
            quic: self.quic,
            quic_rate_bps: self.quic_rate,
            metrics: self.metrics,
            page: store.map(|store| PageSpec {
                store,
                kinds: KINDS,
                proxy: self.proxy.proxy(),
                controls: self.web_control,
            }),
            stamp,
            audit: self.audit_log.map(AuditTo::from),
            ..ServeConfig::new(state, LiveInstruments::All)
        };
        server::serve(config, &mut |line| crate::failure::note!("{line}")).map_err(Failure::run)?;
        Ok(0)
    }
}
