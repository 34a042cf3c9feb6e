//! The flags that name the other end, the same words in every command.

use clap::Args;
use narrows_model::Family;
use std::path::PathBuf;

/// The other end.
#[derive(Debug, Args)]
#[command(next_help_heading = "The other end")]
pub(crate) struct RemoteArgs {
    /// A name or address that runs `narrows serve`, or ssh://[user@]host[:port]
    pub(crate) host: String,
    /// Port of the other end
    #[arg(long, short = 'p', default_value_t = 5220, value_name = "PORT")]
    pub(crate) port: u16,
    /// File with the other end's token (or the token itself in NARROWS_TOKEN)
    #[arg(long, value_name = "PATH")]
    pub(crate) token_file: Option<PathBuf>,
    /// Use IPv4 only
    #[arg(long, short = '4', conflicts_with = "ipv6")]
    pub(crate) ipv4: bool,
    /// Use IPv6 only
    #[arg(long, short = '6')]
    pub(crate) ipv6: bool,
    /// With ssh://: the command that starts narrows there
    #[arg(long, env = "NARROWS_REMOTE_COMMAND", value_name = "COMMAND", default_value = "narrows")]
    pub(crate) remote_command: String,
}

impl RemoteArgs {
    /// The family that the user asked for.
    pub(crate) const fn family(&self) -> Option<Family> {
        match (self.ipv4, self.ipv6) {
            (true, _) => Some(Family::Ipv4),
            (_, true) => Some(Family::Ipv6),
            _ => None,
        }
    }
}
