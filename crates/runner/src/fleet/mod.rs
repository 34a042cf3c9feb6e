//! Fleets: hosts that are tested again and again, by agents that a controller gives work.

mod agent;
mod alerts;
mod controller;
mod keys;
mod line;
#[cfg(feature = "nats")]
mod nats;
mod requests;
mod spool;

pub use agent::{AgentSpec, agent};
pub use controller::{ControllerSpec, controller};
pub use keys::{Holder, token_of};
pub use line::is_bus;
#[cfg(feature = "nats")]
pub use nats::users_of;
pub use requests::{Wish, ask, status};

use narrows_fleet::{cost, plan::Fleet, psconfig};
use narrows_model::run::fleet::FleetCheck;
use narrows_sys::files;
use std::path::Path;

/// Where a controller listens, TCP.
pub const CONTROLLER_PORT: u16 = 5223;
/// Where an agent is loaded, TCP and UDP; its reflector has the next one.
pub const AGENT_PORT: u16 = 5221;

/// No file of a fleet is larger: a hundred thousand hosts take a few megabytes.
const FILE_MAX_BYTES: u64 = 64 << 20;

/// Reads the file of a fleet.
/// Errors: it cannot be read, or makes no sense: each mistake in a line.
pub(crate) fn read(file: &Path) -> Result<Fleet, String> {
    let text = files::read(file, FILE_MAX_BYTES).map_err(|error| error.to_string())?;
    let text = String::from_utf8(text).map_err(|_| format!("cannot read {}: it is no UTF-8", file.display()))?;
    Fleet::read(&text).map_err(|why| format!("cannot use {}: {why}", file.display()))
}

/// What the file of a fleet asks for.
/// Errors: it cannot be read, or makes no sense: each mistake in a line.
pub fn check(file: &Path) -> Result<FleetCheck, String> {
    read(file).map(|fleet| cost::check(&fleet))
}

/// The file of a fleet that does what a pSConfig template asks for, and in a sentence each what could not be taken over.
/// Errors: the template cannot be read, or none of its tasks has a counterpart.
pub fn imported(file: &Path) -> Result<(String, Vec<String>), String> {
    let text = files::read(file, psconfig::TEMPLATE_MAX_BYTES).map_err(|error| error.to_string())?;
    let text = String::from_utf8(text).map_err(|_| format!("cannot read {}: it is no UTF-8", file.display()))?;
    psconfig::imported(&text).map_err(|why| format!("{}: {why}", file.display()))
}

/// What the configuration of a nats-server needs for a fleet.
/// Errors: this build knows no NATS.
#[cfg(not(feature = "nats"))]
pub fn users_of(_: &Path, _: &Path) -> Result<String, String> {
    Err(NO_NATS.to_owned())
}

#[cfg(not(feature = "nats"))]
const NO_NATS: &str = "this build of narrows has no NATS: it takes one with the feature `nats`";
