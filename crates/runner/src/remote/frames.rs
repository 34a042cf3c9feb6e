//! What a forwarding benchmark asks of another host: the counters of a hop, and frames on its devices.

use super::session::Session;
use super::{REQUEST, RemoteError};
use crate::stop::Stop;
use hyper::Method;
use narrows_wire::api::frames::{
    FramesOrder, FramesProgress, FramesRecord, FramesStarted, FramesWait, LinksAnswer, LinksRequest, PortRequest,
    PortState, Qualified, QualifyRequest,
};
use std::net::IpAddr;
use std::time::Duration;

/// To attach a receiver, to find a neighbour, to look at what the host can do.
const SET_UP: Duration = Duration::from_secs(30);

impl Session<'_> {
    /// The counters of two devices of the other end, and the host's state where that is asked for. A session that only looks may
    /// ask, too.
    ///
    /// # Errors
    /// We came without the server's token, or the server is gone.
    pub fn links(&self, input: &str, output: &str, state: bool) -> Result<LinksAnswer, RemoteError> {
        let request = LinksRequest { input: input.to_owned(), output: output.to_owned(), state };
        self.call(Method::POST, "links", &request, REQUEST)
    }

    /// Raises `stop` when the other end is lost.
    pub(crate) fn raise_when_lost(&self, stop: &Stop) {
        self.watch.set(Some(stop.clone()));
    }

    /// Why the other end is lost, if it is.
    pub(crate) fn lost(&self) -> Option<RemoteError> {
        self.watch.lost()
    }

    pub(crate) fn frames_look(&self, device: &str, gateway: Option<IpAddr>) -> Result<PortState, RemoteError> {
        let request = PortRequest { device: device.to_owned(), gateway };
        self.call(Method::POST, "frames/look", &request, SET_UP)
    }

    pub(crate) fn frames_qualify(&self, request: &QualifyRequest) -> Result<Qualified, RemoteError> {
        self.call(Method::POST, "frames/qualify", request, SET_UP)
    }

    pub(crate) fn frames_begin(&self, order: &FramesOrder) -> Result<u32, RemoteError> {
        let started: FramesStarted = self.call(Method::POST, "frames", order, SET_UP)?;
        Ok(started.job)
    }

    pub(crate) fn frames_wait(&self, job: u32, least: u64, within: Duration) -> Result<FramesProgress, RemoteError> {
        let within_ms = u64::try_from(within.as_millis()).unwrap_or(u64::MAX);
        self.call(Method::POST, &format!("frames/{job}/wait"), &FramesWait { least, within_ms }, REQUEST)
    }

    pub(crate) fn frames_stop(&self, job: u32) -> Result<(), RemoteError> {
        self.call::<serde_json::Value>(Method::POST, &format!("frames/{job}/stop"), &(), REQUEST).map(drop)
    }

    pub(crate) fn frames_end(&self, job: u32) -> Result<FramesRecord, RemoteError> {
        self.call(Method::DELETE, &format!("frames/{job}"), &(), SET_UP)
    }
}
