//! The transport of an agent's messages to the controller. It may lose and repeat them.

use crate::instruments::LiveInstruments;
use crate::remote::{Options, Remote, RemoteError, TargetSpec};
use narrows_fleet::protocol::{Poll, Reply};
use std::net::IpAddr;
use std::time::Duration;

/// A transport.
pub(super) trait Transport {
    /// Sends a message and waits for the answer: a long poll.
    /// Errors: it did not arrive, or its answer did not.
    fn exchange(&mut self, poll: &Poll) -> Result<Reply, String>;
}

/// The controller answers at least so often.
pub(super) const HOLDS: Duration = Duration::from_secs(25);
/// Beside that.
pub(super) const AROUND: Duration = Duration::from_secs(10);

/// The path of the request, …
pub(super) const PATH: &str = "/v1/fleet/poll";
/// … and of an agent that joins the fleet; its name there and its address follow.
pub(super) const JOIN_PATH: &str = "/v1/fleet/join";

/// An agent of no host in the file.
#[derive(Debug, Clone)]
pub struct Joins {
    pub name: String,
    /// Where the others load it, if the service of its group names that; `None`: where it comes from.
    pub address: Option<IpAddr>,
}

impl Joins {
    fn path(&self) -> String {
        let address = self.address.map_or_else(|| "-".to_owned(), |address| address.to_string());
        format!("{JOIN_PATH}/{}/{address}", self.name)
    }
}

/// Requests over HTTPS; the connection is made anew where it was lost, with the next controller if there are several.
pub(super) struct Https {
    to: Vec<TargetSpec>,
    /// The place of the one that is asked.
    at: usize,
    path: String,
    remote: Option<Remote>,
}

/// Whether an address is that of a bus.
pub fn is_bus(address: &str) -> bool {
    address.starts_with("nats://") || address.starts_with("tls://")
}

impl Transport for Https {
    fn exchange(&mut self, poll: &Poll) -> Result<Reply, String> {
        let mut failed = "there is no controller".to_owned();
        for _ in 0..self.to.len() {
            match self.ask(poll) {
                Ok(reply) => return Ok(reply),
                Err(why) => failed = why,
            }
            self.at = (self.at + 1) % self.to.len();
        }
        Err(failed)
    }
}

/// A connection to the controller of a fleet. `named`: how the user names it.
pub(super) fn connected(controller: &TargetSpec, named: &'static str) -> Result<Remote, RemoteError> {
    Remote::connect(controller, &Options::new(LiveInstruments::Nothing)).map_err(|error| match error {
        RemoteError::Refused(at) => RemoteError::NoController(at, named),
        error => error,
    })
}

impl Https {
    fn ask(&mut self, poll: &Poll) -> Result<Reply, String> {
        let remote = match self.remote.take() {
            Some(remote) => remote,
            None => connected(&self.to[self.at], "HOST:PORT").map_err(|it| it.to_string())?,
        };
        let reply = remote.post(&self.path, poll, HOLDS + AROUND).map_err(|error| error.to_string())?;
        self.remote = Some(remote);
        Ok(reply)
    }
}

/// The transport to controllers of one fleet: each as `host[:port]`, or one bus as `nats://host:port`.
/// Errors: the address is invalid, or an agent joins over a bus.
pub(super) fn transport(to: &[TargetSpec], joins: Option<&Joins>) -> Result<Box<dyn Transport + Send>, String> {
    let buses: Vec<&TargetSpec> = to.iter().filter(|it| is_bus(&it.asked)).collect();
    if buses.is_empty() {
        let path = joins.map_or_else(|| PATH.to_owned(), Joins::path);
        return Ok(Box::new(Https { to: to.to_vec(), at: 0, path, remote: None }));
    }
    if joins.is_some() {
        return Err("no agent joins a fleet over a bus, whose users are those of its file".to_owned());
    }
    #[cfg(feature = "nats")]
    {
        let token = buses.iter().find_map(|it| it.token.as_ref()).ok_or("an agent needs its token")?;
        let servers: Vec<&str> = buses.iter().map(|it| it.asked.as_str()).collect();
        Ok(Box::new(super::nats::Nats::new(&servers.join(","), &token.secret)?))
    }
    #[cfg(not(feature = "nats"))]
    Err(super::NO_NATS.to_owned())
}
