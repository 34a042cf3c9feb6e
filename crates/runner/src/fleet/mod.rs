//! Fleets: hosts that are tested again and again, by agents that a controller gives work.

mod agent;
mod alerts;
mod archive;
mod command;
mod controller;
mod keys;
mod members;
#[cfg(feature = "nats")]
mod nats;
mod otlp;
mod page;
mod report;
mod requests;
mod spool;
#[cfg(test)]
mod tests;
mod transport;

pub use agent::{AgentSpec, agent};
pub use command::Command;
pub use controller::{ControllerSpec, controller};
pub use keys::{Holder, token_of};
#[cfg(feature = "nats")]
pub use nats::users_of;
pub use requests::{ask, history, status};
pub use transport::{Joins, is_bus};

use crate::remote::TargetSpec;
use narrows_fleet::{cost, plan::Fleet, psconfig};
use narrows_model::run::fleet::FleetCheck;
use narrows_sys::files;
use std::path::{Path, PathBuf};

/// Where a controller listens, TCP.
pub const CONTROLLER_PORT: u16 = 5223;
/// Where an agent is loaded, TCP and UDP; its reflector has the next one.
pub const AGENT_PORT: u16 = 5221;

/// No file of a fleet is larger: a hundred thousand hosts take a few megabytes.
const FILE_MAX_BYTES: u64 = 64 << 20;

/// Reads the file of a fleet.
/// Errors: it cannot be read, or makes no sense: each mistake in a line.
pub(crate) fn read(file: &Path) -> Result<Fleet, String> {
    Fleet::read(&text_of(file)?).map_err(|why| format!("cannot use {}: {why}", file.display()))
}

/// The text of a file of a fleet.
/// Errors: it cannot be read.
pub fn text_of(file: &Path) -> Result<String, String> {
    let text = files::read(file, FILE_MAX_BYTES).map_err(|error| error.to_string())?;
    String::from_utf8(text).map_err(|_| format!("cannot read {}: it is no UTF-8", file.display()))
}

/// Whether the file of a fleet can be used.
/// Errors: why not, each mistake in a line.
pub fn readable(file: &Path) -> Result<(), String> {
    read(file).map(drop)
}

/// The file with the token of the users of this host's controller: one that this user runs, or the packages' service.
pub fn own_token(state: &Path) -> Option<PathBuf> {
    let places = [state, Path::new("/var/lib/narrows-fleet")].map(|state| state.join("controller/token"));
    places.into_iter().find(|file| files::exists(file))
}

/// What the file of a fleet asks for.
/// Errors: it cannot be read, or makes no sense: each mistake in a line.
pub fn check(file: &Path) -> Result<FleetCheck, String> {
    read(file).map(|fleet| cost::check(&fleet))
}

/// What the tests between the hosts of a mesh should be, each as the file of a fleet has it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Asked {
    pub every: Option<String>,
    pub lasts: Option<String>,
    pub expect: Option<String>,
    pub probe_every: Option<String>,
    pub design: Option<String>,
}

/// The file of a fleet that does what a pSConfig template asks for, or that tests the hosts of `narrows mesh --hosts` again and again; and in a
/// sentence each what could not be taken over.
/// Errors: the file cannot be read, names too few hosts, or none of its tasks has a counterpart; what is asked for makes no sense, or a template
/// says that itself.
pub fn imported(file: &Path, asked: &Asked) -> Result<(String, Vec<String>), String> {
    let text = files::read(file, psconfig::TEMPLATE_MAX_BYTES).map_err(|error| error.to_string())?;
    let text = String::from_utf8(text).map_err(|_| format!("cannot read {}: it is no UTF-8", file.display()))?;
    if !text.trim_start().starts_with('{') {
        return of_hosts(file, asked);
    }
    if *asked != Asked::default() {
        return Err(
            "a template of perfSONAR says itself how often and how it is tested: those flags go with a file of hosts"
                .to_owned(),
        );
    }
    psconfig::imported(&text).map_err(|why| format!("{}: {why}", file.display()))
}

/// Loads each hour and probes each minute, or as asked for, between the hosts of a mesh.
fn of_hosts(file: &Path, asked: &Asked) -> Result<(String, Vec<String>), String> {
    let (mut hosts, mut remarks) = (toml::Table::new(), Vec::new());
    for listed in crate::mesh::listed(file)? {
        let target = TargetSpec { asked: listed.name.clone(), family: None, port: AGENT_PORT, token: None };
        let (at, ..) = target.server().map_err(|error| error.to_string())?;
        let name = listed.alias.unwrap_or_else(|| at.clone());
        let mut host = toml::Table::new();
        if !listed.group.is_empty() {
            host.insert("group".to_owned(), listed.group.into());
        }
        if name != at || at.parse::<std::net::IpAddr>().is_ok() {
            host.insert("address".to_owned(), at.into());
        }
        if hosts.insert(name.clone(), host.into()).is_some() {
            remarks.push(format!("{name} is named twice"));
        }
    }
    let table = |keys: &[(&str, Option<&str>)]| {
        toml::Table::from_iter(keys.iter().filter_map(|(key, value)| Some(((*key).to_owned(), (*value)?.into()))))
    };
    let Asked { every, lasts, expect, probe_every, design } = asked;
    let load = table(&[
        ("kind", Some("load")),
        ("every", every.as_deref().or(Some("1h"))),
        ("lasts", lasts.as_deref()),
        ("expect", expect.as_deref()),
    ]);
    let probe = table(&[("kind", Some("probe")), ("every", probe_every.as_deref().or(Some("1m")))]);
    let mut mesh = table(&[("name", Some("all")), ("design", design.as_deref().or(Some("regular")))]);
    mesh.insert("test".to_owned(), vec![load, probe].into());
    let mut fleet = toml::Table::from_iter([("name".to_owned(), "fleet".into()), ("hosts".to_owned(), hosts.into())]);
    fleet.insert("mesh".to_owned(), vec![mesh].into());
    let text = toml::to_string(&fleet).map_err(|error| error.to_string())?;
    Fleet::read(&text).map_err(|why| format!("cannot use {}: {why}", file.display()))?;
    Ok((text, remarks))
}

/// What the configuration of a nats-server needs for a fleet.
/// Errors: this build knows no NATS.
#[cfg(not(feature = "nats"))]
pub fn users_of(_: &Path, _: &Path) -> Result<String, String> {
    Err(NO_NATS.to_owned())
}

#[cfg(not(feature = "nats"))]
const NO_NATS: &str = "this build of narrows has no NATS: it takes one with the feature `nats`";

/// What it serves others it need not serve with all rights.
fn warn_of_root(unit: &str, watch: &mut dyn FnMut(&str)) {
    if narrows_sys::process::is_root_of_machine() {
        watch(&format!("it runs as root and keeps all rights; {unit}.service of the packages has a user of its own"));
    }
}
