//! The way to the other hosts of a benchmark: the user's words for a host, the token, the port.

use narrows_forwarding::data::{CounterSource, ForwardingPlan};
use narrows_model::Family;
use narrows_runner::live::LiveInstruments;
use narrows_runner::remote::{Options, Remote, RemoteError, TargetSpec};
use narrows_runner::{DEFAULT_PORT, trust};
use narrows_wire::Token;
use std::path::Path;

/// How the other hosts of a benchmark are reached.
#[derive(Clone)]
pub struct HostAccess {
    /// The port where a host's word names none.
    pub port: u16,
    /// The family, where the user insists on one.
    pub family: Option<Family>,
    /// The token of hosts for which the plan names no file.
    pub token: Option<Token>,
    /// How ssh is started, and the other end greeted.
    pub options: Options,
}

impl std::fmt::Debug for HostAccess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostAccess").field("port", &self.port).field("family", &self.family).finish_non_exhaustive()
    }
}

impl Default for HostAccess {
    /// The usual port, any family, no token.
    fn default() -> Self {
        let options = Options::new(LiveInstruments::Nothing);
        Self { port: DEFAULT_PORT, family: None, token: None, options }
    }
}

impl HostAccess {
    fn spec(&self, host: &str, token_file: Option<&str>) -> Result<TargetSpec, RemoteError> {
        let token = match token_file {
            Some(path) => {
                trust::client_token(Some(Path::new(path))).map_err(|error| RemoteError::Here(error.to_string()))?
            }
            None => self.token.clone(),
        };
        Ok(TargetSpec { asked: host.to_owned(), family: self.family, port: self.port, token })
    }

    /// Connects to a host. `frames`: the devices by which a server that ssh starts may send and count frames.
    pub(crate) fn connect(
        &self,
        host: &str,
        token_file: Option<&str>,
        frames: Vec<String>,
    ) -> Result<Remote, RemoteError> {
        let options = Options { frames, ..self.options.clone() };
        Remote::connect(&self.spec(host, token_file)?, &options)
    }
}

/// The plan's invalid host names, one sentence each.
pub(super) fn check_hosts(plan: &ForwardingPlan) -> Vec<String> {
    let ports = [("generator.host", &plan.generator), ("receiver.host", &plan.receiver)];
    let mut words: Vec<(String, &str)> =
        ports.into_iter().filter_map(|(key, port)| Some((key.to_owned(), port.host.as_deref()?))).collect();
    for hop in &plan.hops {
        if let CounterSource::Narrows { host, .. } = &hop.source {
            words.push((format!("source.host of the hop {}", hop.name), host));
        }
    }
    let wrong = |(key, host): (String, &str)| {
        let spec = TargetSpec { asked: host.to_owned(), family: None, port: 1, token: None };
        spec.check().err().map(|error| format!("{key}: {error}"))
    };
    words.into_iter().filter_map(wrong).collect()
}
