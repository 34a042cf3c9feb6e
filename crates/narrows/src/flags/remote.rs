//! The flags that name the server, and the connection to it.

use crate::failure::Failure;
use clap::Args;
use narrows_model::Family;
use narrows_runner::forwarding::HostAccess;
use narrows_runner::live::LiveInstruments;
use narrows_runner::remote::{Options, Remote, RemoteError, TargetSpec};
use narrows_runner::trust;
use std::path::PathBuf;

/// The other end.
#[derive(Debug, Args)]
pub(crate) struct RemoteArgs {
    /// A name or address that runs `narrows serve`, or ssh://[user@]host[:port]
    #[arg(add = super::known::hosts())]
    host: String,
    #[command(flatten)]
    way: WayArgs,
}

/// The way to the other end, wherever that is.
#[derive(Debug, Args)]
#[command(next_help_heading = "The other end")]
pub(crate) struct WayArgs {
    /// Port of the other end
    #[arg(long, short = 'p', default_value_t = 5220, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    /// File with the other end's token (or the token itself in NARROWS_TOKEN)
    #[arg(long, value_name = "PATH")]
    token_file: Option<PathBuf>,
    /// Use IPv4 only
    #[arg(long, short = '4', conflicts_with = "ipv6")]
    ipv4: bool,
    /// Use IPv6 only
    #[arg(long, short = '6')]
    ipv6: bool,
    /// With ssh://: the command that is narrows on the other end
    #[arg(
        long,
        env = "NARROWS_REMOTE_COMMAND",
        hide_env_values = true,
        value_name = "COMMAND",
        default_value = "narrows"
    )]
    remote_command: String,
}

impl RemoteArgs {
    /// The user's word for the other end.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// Connects. `tune`: whether a server that ssh starts may change its host.
    pub(crate) fn connect(&self, tune: bool, instruments: LiveInstruments) -> Result<Remote, Failure> {
        self.way.connect(&self.host, tune, instruments)
    }
}

impl WayArgs {
    fn family(&self) -> Option<Family> {
        match (self.ipv4, self.ipv6) {
            (true, _) => Some(Family::Ipv4),
            (_, true) => Some(Family::Ipv6),
            _ => None,
        }
    }

    /// The way to hosts that a plan names.
    pub(crate) fn host_access(&self) -> Result<HostAccess, Failure> {
        let token = trust::client_token(self.token_file.as_deref()).map_err(Failure::run)?;
        let usual = HostAccess::default();
        let options = Options { remote_command: self.remote_command.clone(), ..usual.options };
        Ok(HostAccess { port: self.port, family: self.family(), token, options })
    }

    /// Connects to a host. `tune`: whether a server that ssh starts may change its host.
    pub(crate) fn connect(&self, host: &str, tune: bool, instruments: LiveInstruments) -> Result<Remote, Failure> {
        let token = trust::client_token(self.token_file.as_deref()).map_err(Failure::run)?;
        let spec = TargetSpec { asked: host.to_owned(), family: self.family(), port: self.port, token };
        let options =
            Options { allow_tune: tune, remote_command: self.remote_command.clone(), ..Options::new(instruments) };
        Remote::connect(&spec, &options).map_err(|error| match error {
            RemoteError::BadTarget { .. } => Failure::usage(error),
            _ => Failure::run(error),
        })
    }
}
