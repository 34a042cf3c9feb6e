//! The counters of a hop through its `narrows serve`: one session for the whole benchmark, renewed when it is lost.

use crate::hosts::HostAccess;
use narrows_model::host::device_state::DeviceState;
use narrows_runner::remote::Session;
use narrows_sys::clock;
use narrows_wire::api::frames::LinksAnswer;
use std::time::{Duration, Instant};

/// A host that could not be reached is tried again after so long: until then its hop is silent, and trials go on.
const AGAIN: Duration = Duration::from_secs(30);

/// A host that runs `narrows serve`.
pub(super) struct Served {
    host: String,
    token_file: Option<String>,
    hosts: HostAccess,
    session: Line,
}

/// The session as it stands.
enum Line {
    Open(Box<Session>),
    /// Why there is none, and when that was.
    Closed(String, Instant),
}

impl std::fmt::Debug for Served {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Served").field("host", &self.host).finish_non_exhaustive()
    }
}

impl Served {
    /// Connects. A host that cannot be reached is no error: its looks say why.
    pub(super) fn open(host: &str, token_file: Option<&str>, hosts: &HostAccess) -> Self {
        let token_file = token_file.map(str::to_owned);
        let session = Line::Closed(String::new(), clock::now());
        let mut served = Self { host: host.to_owned(), token_file, hosts: hosts.clone(), session };
        served.renew();
        served
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    fn renew(&mut self) {
        let opened = self
            .hosts
            .connect(&self.host, self.token_file.as_deref(), Vec::new())
            .and_then(|remote| remote.open_look());
        self.session = match opened {
            Ok(session) => Line::Open(Box::new(session)),
            Err(error) => Line::Closed(error.to_string(), clock::now()),
        };
    }

    /// The host's state now.
    pub(super) fn state(&mut self, input: &str, output: &str) -> Result<DeviceState, String> {
        match self.ask(input, output, true)? {
            LinksAnswer::Read { state: Some(state), .. } => Ok(*state),
            LinksAnswer::Read { .. } => Err(format!("{} does not report its state: its narrows is too old", self.host)),
            LinksAnswer::Missing { why } => Err(why),
        }
    }

    /// The counters now, with the state if `state`. A session that is lost is renewed once.
    pub(super) fn ask(&mut self, input: &str, output: &str, state: bool) -> Result<LinksAnswer, String> {
        let mut renewed = false;
        if let Line::Closed(why, since) = &self.session {
            if since.elapsed() < AGAIN {
                return Err(why.clone());
            }
            self.renew();
            renewed = true;
        }
        loop {
            let why = match &self.session {
                Line::Closed(why, _) => return Err(why.clone()),
                Line::Open(session) => match session.links(input, output, state) {
                    Ok(answer) => return Ok(answer),
                    Err(error) => session.lost().unwrap_or(error).to_string(),
                },
            };
            if renewed {
                self.session = Line::Closed(why.clone(), clock::now());
                return Err(why);
            }
            self.renew();
            renewed = true;
        }
    }
}
