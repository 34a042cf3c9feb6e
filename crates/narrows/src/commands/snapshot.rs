//! `narrows snapshot`: a capture of this host.

use crate::failure::{Failure, Outcome};
use crate::output::print;
use narrows_runner::capture;
use std::net::IpAddr;
use std::path::PathBuf;

/// Capture this host's settings and counters for offline analysis
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Output directory; new or empty
    directory: PathBuf,
    /// Peer address that selects interface and route (default: the default route)
    #[arg(long, value_name = "ADDRESS")]
    peer: Option<IpAddr>,
    /// Keep IP addresses (default: replaced by documentation addresses)
    #[arg(long)]
    keep_addresses: bool,
    /// Keep the host name (default: removed)
    #[arg(long)]
    keep_name: bool,
}

impl Args {
    pub(crate) fn run(self) -> Outcome {
        capture::record(&self.directory, self.peer, self.keep_addresses, self.keep_name).map_err(Failure::run)?;
        print(&format!("captured to {}; review it before you share it", self.directory.display()))?;
        Ok(0)
    }
}
