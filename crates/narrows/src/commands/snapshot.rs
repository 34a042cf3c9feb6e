//! `narrows snapshot`: a capture of this host.

use crate::failure::{Failure, Outcome};
use crate::output::print;
use narrows_runner::capture;
use std::net::IpAddr;
use std::path::PathBuf;

/// Write a capture of this host that the tests can read back
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Directory to make, or an empty one
    directory: PathBuf,
    /// Look at the device and the route towards this address (default: the default route)
    #[arg(long, value_name = "ADDRESS")]
    peer: Option<IpAddr>,
    /// Keep IP addresses as they are (default: they become addresses for documentation)
    #[arg(long)]
    keep_addresses: bool,
    /// Keep the host's name
    #[arg(long)]
    keep_name: bool,
}

impl Args {
    pub(crate) fn run(self) -> Outcome {
        capture::record(&self.directory, self.peer, self.keep_addresses, self.keep_name).map_err(Failure::run)?;
        print(&format!("captured into {}; look through it before you give it away", self.directory.display()))?;
        Ok(0)
    }
}
