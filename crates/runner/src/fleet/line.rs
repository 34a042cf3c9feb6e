//! The transport of an agent's messages to the controller. It may lose and repeat them.

use crate::instruments::LiveInstruments;
use crate::remote::{Options, Remote, TargetSpec};
use narrows_fleet::talk::{Down, Up};
use std::time::Duration;

/// A transport.
pub(super) trait Line {
    /// Sends a message and waits for the answer: a long poll.
    /// Errors: it did not arrive, or its answer did not.
    fn exchange(&mut self, up: &Up) -> Result<Down, String>;
}

/// The controller answers at least so often.
pub(super) const HOLDS: Duration = Duration::from_secs(25);
/// Beside that.
pub(super) const AROUND: Duration = Duration::from_secs(10);

/// The path of the request.
pub(super) const PATH: &str = "/v1/fleet/up";

/// Requests over HTTPS; the connection is made anew where it was lost.
pub(super) struct Https {
    to: TargetSpec,
    remote: Option<Remote>,
}

impl Https {
    pub(super) const fn new(to: TargetSpec) -> Self {
        Self { to, remote: None }
    }
}

/// Whether a word names a bus.
pub fn is_bus(word: &str) -> bool {
    word.starts_with("nats://") || word.starts_with("tls://")
}

impl Line for Https {
    fn exchange(&mut self, up: &Up) -> Result<Down, String> {
        let remote = match self.remote.take() {
            Some(remote) => remote,
            None => Remote::connect(&self.to, &Options::new(LiveInstruments { collect: false }))
                .map_err(|it| it.to_string())?,
        };
        let down = remote.post(PATH, up, HOLDS + AROUND).map_err(|error| error.to_string())?;
        self.remote = Some(remote);
        Ok(down)
    }
}
