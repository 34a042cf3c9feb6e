//! The client's side of the control connection. A server that refuses, gives up or is gone is an error in its own words.

use super::connect::Iperf3Error;
use narrows_sys::{clock, tcp};
use narrows_wire::iperf3::{Inbox, MAX_RESULTS, State, errors};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// For each answer of the server.
pub(super) const ANSWER: Duration = Duration::from_secs(10);
/// For the codes that follow a refusal.
const CODES: Duration = Duration::from_secs(1);
/// One look for what came.
const LOOK: Duration = Duration::from_millis(5);

pub(super) struct Control {
    stream: TcpStream,
    pub(super) address: SocketAddr,
    inbox: Inbox,
}

impl Control {
    pub(super) fn new(stream: TcpStream, address: SocketAddr) -> Result<Self, Iperf3Error> {
        let here = |error: std::io::Error| Iperf3Error::Here(error.to_string());
        stream.set_nodelay(true).map_err(here)?;
        stream.set_read_timeout(Some(LOOK)).map_err(here)?;
        stream.set_write_timeout(Some(ANSWER)).map_err(here)?;
        Ok(Self { stream, address, inbox: Inbox::default() })
    }

    /// Segments of this connection that had to be sent again so far; 0 where the kernel does not tell.
    pub(super) fn retransmits(&self) -> u64 {
        tcp::info(&self.stream).ok().and_then(|info| info.total_retrans).unwrap_or(0)
    }

    fn lost(&self, why: impl Into<String>) -> Iperf3Error {
        Iperf3Error::Lost(self.address, why.into())
    }

    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<(), Iperf3Error> {
        self.stream.write_all(bytes).map_err(|error| self.lost(error.to_string()))
    }

    pub(super) fn tell(&mut self, state: State) -> Result<(), Iperf3Error> {
        self.send(&[state.byte()])
    }

    /// Takes what comes within one look.
    fn more(&mut self) -> Result<(), Iperf3Error> {
        let mut bytes = [0; 4096];
        match self.stream.read(&mut bytes) {
            Ok(0) => Err(self.lost("it closed the connection")),
            Ok(count) => {
                self.inbox.push(&bytes[..count]);
                Ok(())
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(()),
            Err(error) => Err(self.lost(error.to_string())),
        }
    }

    /// The next state, if one comes within one look. Refusals are errors.
    pub(super) fn look(&mut self) -> Result<Option<State>, Iperf3Error> {
        let mut byte = self.inbox.byte();
        if byte.is_none() {
            self.more()?;
            byte = self.inbox.byte();
        }
        let Some(byte) = byte else { return Ok(None) };
        let answered = |words: String| Err(Iperf3Error::Answered(self.address, words));
        match State::of(byte) {
            Some(State::AccessDenied) => answered(errors::words(121)),
            Some(State::ServerTerminate) => answered(errors::words(120)),
            Some(State::ServerError) => Err(self.error()),
            Some(state) => Ok(Some(state)),
            None => Err(Iperf3Error::Strange(self.address, format!("{byte} is no state"))),
        }
    }

    /// The server's words after [`State::ServerError`].
    fn error(&mut self) -> Iperf3Error {
        let until = clock::now() + CODES;
        let codes = loop {
            let ended = self.more().is_err() || clock::now() >= until;
            match self.inbox.codes(ended) {
                Some(codes) => break Some(codes),
                None if ended => break None,
                None => {}
            }
        };
        let words = codes.map_or_else(|| "an error".to_owned(), |(code, errno)| errors::both(code, errno));
        Iperf3Error::Answered(self.address, words)
    }

    /// The next state, which should be this one.
    pub(super) fn expect(&mut self, state: State, what: &'static str) -> Result<(), Iperf3Error> {
        let until = clock::now() + ANSWER;
        loop {
            match self.look()? {
                Some(found) if found == state => return Ok(()),
                Some(found) => return Err(self.strange(found)),
                None => self.check(until, what)?,
            }
        }
    }

    pub(super) fn strange(&self, found: State) -> Iperf3Error {
        Iperf3Error::Strange(self.address, format!("{found:?} is out of order"))
    }

    pub(super) fn check(&self, until: Instant, what: &'static str) -> Result<(), Iperf3Error> {
        let silent = Iperf3Error::Silent(self.address, ANSWER.as_secs(), what);
        if clock::now() < until { Ok(()) } else { Err(silent) }
    }

    pub(super) fn json(&mut self) -> Result<Vec<u8>, Iperf3Error> {
        let until = clock::now() + ANSWER;
        loop {
            match self.inbox.json(MAX_RESULTS) {
                Ok(Some(text)) => return Ok(text),
                Ok(None) => self.more()?,
                Err(length) => return Err(Iperf3Error::Strange(self.address, format!("results of {length} bytes"))),
            }
            self.check(until, "its results")?;
        }
    }
}
