//! `narrows serve`: the measurement server.

use crate::failure::{Failure, Outcome};
use crate::flags::values::bps;
use narrows_runner::DEFAULT_PORT;
use narrows_runner::live::LiveInstruments;
use narrows_runner::server::{self, ServeConfig};
use narrows_runner::state;
use std::net::IpAddr;
use std::path::PathBuf;

/// Run the measurement server
#[derive(Debug, clap::Args)]
#[command(after_help = "At the first start a key and a token are made; clients need the token:\n  \
    narrows serve --token-file token\n  \
    narrows diagnose HOST --token-file token     on the other host\n\
    Without --allow-tune nothing on this host is ever changed.")]
pub(crate) struct Args {
    /// Port of control and data, TCP; 0 takes a free one
    #[arg(long, short = 'p', default_value_t = DEFAULT_PORT, value_name = "PORT")]
    port: u16,
    /// Listen at this address only (default: all addresses of this host)
    #[arg(long, value_name = "ADDRESS")]
    bind: Option<IpAddr>,
    /// File with the token; made if it is missing
    #[arg(long, value_name = "PATH")]
    token_file: Option<PathBuf>,
    /// Let clients without a token measure (nothing else), with limits of rate and time
    #[arg(long)]
    open: bool,
    /// With --open: the most that a client without a token may send or be sent
    #[arg(long, value_parser = bps, default_value = "1G", value_name = "RATE")]
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
    /// Speak on standard input and output, as ssh:// clients want it
    #[arg(long)]
    stdio: bool,
}

impl Args {
    pub(crate) fn run(self) -> Outcome {
        let state = state::directory()
            .ok_or_else(|| Failure::run("there is no place for the server's key: set HOME or XDG_STATE_HOME"))?;
        let config = ServeConfig {
            port: if self.stdio && self.port == DEFAULT_PORT { 0 } else { self.port },
            bind: self.bind,
            token_file: self.token_file,
            open: self.open,
            open_most_bps: self.open_rate,
            allow_tune: self.allow_tune,
            frames: self.frames,
            parallel: self.parallel.max(1),
            stdio: self.stdio,
            ..ServeConfig::new(state, LiveInstruments { collect: true })
        };
        server::serve(config, &mut |line| anstream::eprintln!("{line}")).map_err(Failure::run)?;
        Ok(0)
    }
}
