//! A session with the other end: inventory, trials, changes.

use super::channel::{Channel, REQUEST};
use super::connection::Remote;
use super::data;
use super::error::{RemoteError, TrialError, plain};
use super::events::{self, BeatHolder, Incomings};
use crate::ends::Watch;
use crate::instruments::LiveInstruments;
use crate::reports::Reports;
use hyper::Method;
use narrows_model::{
    Change, ConnectionSample, InterfaceSample, LoadPlan, LoadRecord, Place, Setting, Snapshot, TracePlan, TraceRecord,
    Trial,
};
use narrows_sys::{clock, cpu};
use narrows_traffic::{Connections, DataStream, PerTransaction, Socket, Stop};
use narrows_wire::api::frames::{LinksAnswer, LinksRequest};
use narrows_wire::api::{
    BeginRequest, ChangeRequest, ConnectionsRequest, Event, InventoryRequest, SessionUse, TraceRequest, TrialReady,
    TrialRequest, key_from_hex,
};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// For an inventory: collectors may be slow on a large machine.
const INVENTORY: Duration = Duration::from_secs(30);
/// A trace, and its turn behind those of others.
const TRACE: Duration = Duration::from_secs(60);
/// For the server to gather the streams and to read its counters.
const BEGIN: Duration = Duration::from_secs(30);
/// For the server's record, once this end is done.
const RECORD: Duration = Duration::from_secs(60);
/// For the server to undo and close, once it was told to.
const CLOSING: Duration = Duration::from_secs(5);
/// How often a caller that waits in the queue is asked whether it still wants to.
const ASK_AGAIN: Duration = Duration::from_millis(100);
/// For a word that ends a trial early, in either direction.
const PARTING: Duration = Duration::from_secs(1);
/// How often a raised flag of the caller is looked for.
const LOOK: Duration = Duration::from_millis(20);

/// A session. What the server changed for it is undone when it is dropped, unless it was kept.
pub struct Session {
    // Dropped before `remote`, whose connection ends with its last channel.
    channel: Channel,
    id: String,
    beats: Option<BeatHolder>,
    events: Incomings,
    watch: Arc<events::Watch>,
    remote: Remote,
}

impl Session {
    pub(super) fn open(
        remote: &Remote,
        wanted: SessionUse,
        on_queue: &mut dyn FnMut(u32, &str) -> bool,
    ) -> Result<Self, RemoteError> {
        let channel = remote.channel()?.clone();
        let path = match wanted {
            SessionUse::Load => "/v1/sessions?use=load",
            SessionUse::Look => "/v1/sessions?use=look",
        };
        let watch = Arc::new(events::Watch::default());
        let (beats, events) = remote.runtime().block_on(async {
            let (body, beats) = events::beats();
            let response = channel.begin(Method::POST, path, body, REQUEST).await?;
            Ok::<_, RemoteError>((beats, events::read(channel.clone(), response, watch.clone())))
        })?;
        let mut session =
            Self { channel, id: String::new(), beats: Some(beats), events, watch, remote: remote.clone() };
        let (mut queued, began) = (None, clock::now());
        loop {
            // A session that only looks is not queued, and the place in a queue is said at once.
            if (queued.is_none() || wanted == SessionUse::Look) && began.elapsed() > REQUEST {
                return Err(session.channel.lost("no session within 10 s"));
            }
            match session.remote.runtime().block_on(async { timeout(ASK_AGAIN, session.events.recv()).await }) {
                Ok(Some(Ok(Event::Admitted { session: id }))) => {
                    session.id = id;
                    return Ok(session);
                }
                Ok(Some(Ok(Event::Queued { position, why }))) => queued = Some((position, plain(&why))),
                Ok(Some(Ok(_))) | Err(_) => {}
                Ok(Some(Err(error))) => return Err(error),
                Ok(None) => return Err(session.channel.lost("no more events")),
            }
            if let Some((position, why)) = &queued
                && !on_queue(*position, why)
            {
                return Err(RemoteError::Busy(format!("gave up waiting: {why}")));
            }
        }
    }

    fn path(&self, rest: &str) -> String {
        format!("/v1/sessions/{}/{rest}", self.id)
    }

    pub fn call<T: serde::de::DeserializeOwned>(
        &self,
        method: Method,
        rest: &str,
        body: &(impl serde::Serialize + Sync),
        limit: Duration,
    ) -> Result<T, RemoteError> {
        self.remote.runtime().block_on(self.channel.call(method, &self.path(rest), body, limit))
    }

    /// The inventory of the server's host, for the route to this client.
    pub fn inventory(&self) -> Result<Snapshot, RemoteError> {
        self.call(Method::POST, "inventory", &InventoryRequest::default(), INVENTORY)
    }

    /// The path from the server back to this client; for sessions that only look as well. Needs the server's token.
    pub fn trace(&self, plan: &TracePlan) -> Result<TraceRecord, RemoteError> {
        self.call(Method::POST, "trace", &TraceRequest { peer: None, plan: plan.clone() }, TRACE)
    }

    /// Counters of connections between this client and the server's host, each by its address here and there, as that host has
    /// them; as [`Session::interfaces`]. One that the host does not have, or not with this client's address, is missing.
    pub fn connections(&self, all: &[(SocketAddr, SocketAddr)]) -> Result<Vec<ConnectionSample>, RemoteError> {
        let request = ConnectionsRequest { peer: None, connections: all.to_vec() };
        let mut found: Vec<ConnectionSample> = self.call(Method::POST, "connections", &request, REQUEST)?;
        let wanted: std::collections::HashSet<_> = all.iter().copied().collect();
        found.retain(|one| wanted.contains(&(one.remote, one.local)));
        Ok(found)
    }

    /// The server's interfaces, with their traffic so far; for sessions that only look as well. Needs the server's token.
    pub fn interfaces(&self) -> Result<Vec<InterfaceSample>, RemoteError> {
        self.call(Method::GET, "interfaces", &(), REQUEST)
    }

    /// The counters of two devices of the server, and the host's state if `state`; as [`Session::interfaces`].
    pub fn links(&self, input: &str, output: &str, state: bool) -> Result<LinksAnswer, RemoteError> {
        let request = LinksRequest { input: input.to_owned(), output: output.to_owned(), state };
        self.call(Method::POST, "links", &request, REQUEST)
    }

    /// Makes a change on the server, which lasts as long as the session.
    pub fn apply(&self, setting: &Setting) -> Result<Change, RemoteError> {
        self.call(Method::POST, "changes", &ChangeRequest { setting: setting.clone() }, REQUEST)
    }

    /// Undoes one of the session's changes. A server that is lost undoes all of them by itself.
    pub fn undo(&self, id: &str) -> Result<Change, RemoteError> {
        self.call(Method::DELETE, &format!("changes/{id}"), &(), REQUEST)
    }

    /// Lets one of the session's changes outlive it.
    pub fn keep(&self, id: &str) -> Result<Change, RemoteError> {
        self.call(Method::POST, &format!("changes/{id}/keep"), &(), REQUEST)
    }

    /// The session's changes that are in force on the server.
    pub fn changes(&self) -> Result<Vec<Change>, RemoteError> {
        self.call(Method::GET, "changes", &(), REQUEST)
    }

    /// Raises `stop` when the server is lost.
    pub fn raise_when_lost(&self, stop: &Stop) {
        self.watch.set(Some(stop.clone()));
    }

    /// Why the server is lost, if it is.
    pub fn lost(&self) -> Option<RemoteError> {
        self.watch.lost()
    }

    /// Runs one trial on both ends. Raising `stop` ends it early with what was measured until then, which is no error.
    /// `on_progress` hears of both ends.
    /// The plan of the trial is the one that was run: a server that is open to clients without a token bounds its rate.
    pub fn trial(&mut self, plan: &LoadPlan, stop: &Stop, on_progress: Watch<'_>) -> Result<Trial, TrialError> {
        self.trial_at(None, plan, stop, on_progress)
    }

    /// The same with the data connections to another address of the server, as one below a tunnel.
    pub fn trial_at(
        &mut self,
        address: Option<IpAddr>,
        plan: &LoadPlan,
        stop: &Stop,
        on_progress: Watch<'_>,
    ) -> Result<Trial, TrialError> {
        plan.check().map_err(RemoteError::Here)?;
        self.remote.check_data()?;
        let light = self.remote.instruments() == LiveInstruments::Cpu;
        let request = TrialRequest { plan: plan.clone(), light, machine: cpu::machine().word.clone() };
        let ready: TrialReady = self.call(Method::POST, "trials", &request, REQUEST)?;
        within(plan, &ready.plan)?;
        let own_stop = Stop::new();
        self.watch.set(Some(own_stop.clone()));
        let mut news = Heard::default();
        let ours = self.own_end(address, &ready, &own_stop, stop, &mut news, on_progress);
        self.watch.set(None);
        news.hear(&mut self.events, on_progress, ready.trial);
        let client = match ours {
            Ok(record) => record,
            Err(why) => {
                // The server must not wait for what will not come.
                for word in ["trials/stop", "trials/end"] {
                    let _: Result<serde_json::Value, _> = self.call(Method::POST, word, &(), REQUEST);
                }
                return Err(TrialError { partial: None, why: news.why(why) });
            }
        };
        match self.call::<serde_json::Value>(Method::POST, "trials/end", &(), REQUEST) {
            Ok(_) => self.await_word(&mut news, on_progress, ready.trial, RECORD, |heard| heard.record.is_some()),
            Err(why) => {
                // What the server says of itself says more, and may still be on its way.
                self.await_word(&mut news, on_progress, ready.trial, PARTING, |_| false);
                news.trouble.get_or_insert(why);
            }
        }
        let elapsed_us = client.flow_time_us();
        let plan = ready.plan;
        let early = !stop.is_set() && (own_stop.is_set() || is_short(&plan, elapsed_us));
        if news.record.is_some() && early {
            // The server ended its part early, and its reason comes behind its record.
            self.await_word(&mut news, on_progress, ready.trial, PARTING, |_| false);
        }
        match news.record.take() {
            Some(server) if server.kind() != plan.kind() => {
                let why = "the server's record does not match its trial".to_owned();
                Err(RemoteError::Server(why).into())
            }
            Some(server) => {
                let trial = Trial { plan, client, server: *server, elapsed_us };
                match news.trouble {
                    Some(why) if early => Err(TrialError { partial: Some(Box::new(trial)), why }),
                    _ => Ok(trial),
                }
            }
            None => {
                let why = news.why(self.channel.lost("it did not deliver its record"));
                let remark = format!("the record of this end has only its progress reports: {why}");
                let server = plan.partial_record(Place::Server, &std::mem::take(&mut news.reports).into_kept(), remark);
                Err(TrialError { partial: Some(Box::new(Trial { plan, client, server, elapsed_us })), why })
            }
        }
    }

    /// This end of a trial. The counters are read right before the load and right after it; the server's, while this end waits.
    fn own_end(
        &mut self,
        to: Option<IpAddr>,
        ready: &TrialReady,
        own_stop: &Stop,
        callers_stop: &Stop,
        news: &mut Heard,
        on_progress: Watch<'_>,
    ) -> Result<LoadRecord, RemoteError> {
        let instruments = self.remote.instruments();
        let key = key_from_hex(&ready.key).ok_or_else(|| self.channel.lost("it sent an invalid key"))?;
        let mut address = to.map_or_else(|| self.remote.data_address(), |other| SocketAddr::new(other, 0));
        address.set_port(ready.data_port);
        let streams = data::open_all(address, key, &ready.plan)?;
        let cookie = |stream: &DataStream| match &stream.socket {
            Socket::Udp(udp) => Some((stream.id, udp.cookie)),
            _ => None,
        };
        let cookies = streams.iter().filter_map(cookie).collect();
        self.watch.liveness.watch(&streams);
        let per_transaction = if ready.plan.connects_per_transaction() {
            PerTransaction::Connect { address, key }
        } else {
            PerTransaction::Nothing
        };
        let beside = !ready.machine.is_empty() && ready.machine == cpu::machine().word;
        let connections = Connections { streams, per_transaction, beside };
        let peer = Some(address.ip().to_canonical());
        let mut before = instruments.counters(peer);
        let watches = instruments.watch();
        let _: serde_json::Value = self.call(Method::POST, "trials/begin", &BeginRequest { cookies }, BEGIN)?;
        let relay = self.remote.runtime().spawn(relay(
            callers_stop.clone(),
            own_stop.clone(),
            self.channel.clone(),
            self.path("trials/stop"),
        ));
        let record = instruments
            .run(Place::Client, &ready.plan, connections, own_stop, &mut |progress| {
                // Also forward the peer's messages as they arrive.
                news.hear(&mut self.events, on_progress, ready.trial);
                on_progress(Place::Client, &progress);
            })
            .map_err(RemoteError::Here);
        if callers_stop.is_set() {
            // The server must hear of it, too, however soon this end was done.
            let _ = self.remote.runtime().block_on(async { timeout(PARTING, relay).await });
        } else {
            relay.abort();
        }
        self.watch.liveness.forget();
        let record = record?;
        let mut after = instruments.counters(peer);
        watches.end(&mut before, &mut after);
        Ok(record.between(before, after))
    }

    /// Waits until `enough` was heard, for the server's trouble, or for the limit, whichever comes first.
    fn await_word(
        &mut self,
        heard: &mut Heard,
        on_progress: Watch<'_>,
        trial: u32,
        limit: Duration,
        enough: impl Fn(&Heard) -> bool,
    ) {
        let deadline = clock::now() + limit;
        while !enough(heard) && heard.trouble.is_none() {
            let left = deadline.saturating_duration_since(clock::now());
            let next = self.remote.runtime().block_on(async { timeout(left, self.events.recv()).await });
            match next {
                Ok(Some(event)) => heard.take(event, on_progress, trial),
                Ok(None) | Err(_) => return,
            }
        }
    }

    /// Ends the session and waits until the server has undone its changes.
    pub fn close(self) {
        drop(self);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // The end of the beats is the end of the session; the server ends the events when all is undone.
        self.beats = None;
        let _ = self
            .remote
            .runtime()
            .block_on(async { timeout(CLOSING, async { while let Some(Ok(_)) = self.events.recv().await {} }).await });
    }
}

/// Checks that the plan that a server returned is the one asked for, or a slower one: nothing else of it is the server's to choose.
fn within(asked: &LoadPlan, ready: &LoadPlan) -> Result<(), RemoteError> {
    let other = || RemoteError::Server("the server returned another plan than the one asked for".to_owned());
    ready.is_within(asked).then_some(()).ok_or_else(other)
}

/// What the server said of a trial.
#[derive(Default)]
struct Heard {
    /// What it reported while the trial ran: its record, should it be lost.
    reports: Reports,
    record: Option<Box<LoadRecord>>,
    trouble: Option<RemoteError>,
}

impl Heard {
    /// Takes what the server has said of a trial so far, without waiting.
    fn hear(&mut self, events: &mut Incomings, on_progress: Watch<'_>, trial: u32) {
        while let Ok(event) = events.try_recv() {
            self.take(event, on_progress, trial);
        }
    }

    fn take(&mut self, event: Result<Event, RemoteError>, on_progress: Watch<'_>, trial: u32) {
        match event {
            Ok(Event::Progress { trial: of, progress }) if of == trial => {
                on_progress(Place::Server, &progress);
                self.reports.push(progress);
            }
            Ok(Event::Finished { trial: of, record }) if of == trial => self.record = Some(record),
            Ok(Event::Failed { trial: of, why }) if of == trial => {
                self.trouble = Some(RemoteError::Server(plain(&why)));
            }
            Ok(_) => {}
            Err(error) => self.trouble = Some(error),
        }
    }

    /// The server's trouble explains ours, where it had any.
    fn why(&mut self, otherwise: RemoteError) -> RemoteError {
        self.trouble.take().unwrap_or(otherwise)
    }
}

/// Whether a trial ended well before its planned end. A profile of the path is over when it has seen enough.
fn is_short(plan: &LoadPlan, elapsed_us: u64) -> bool {
    !matches!(plan, LoadPlan::Profile(_)) && plan.duration_ms().is_some_and(|ms| elapsed_us < ms * 750)
}

/// Passes the caller's wish to stop on to both ends: to this one at once, so that what the other one does is not taken for
/// a loss.
async fn relay(callers: Stop, own: Stop, channel: Channel, path: String) {
    let mut tick = tokio::time::interval(LOOK);
    while !callers.is_set() {
        tick.tick().await;
    }
    own.stop();
    let _: Result<serde_json::Value, _> = channel.call(Method::POST, &path, &(), REQUEST).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_that_saw_enough_is_not_cut_short() {
        let tcp = narrows_model::TcpPlan { limit: narrows_model::Limit::DurationMs(8_000), ..Default::default() };
        assert_eq!([2_000_000, 7_900_000].map(|us| is_short(&tcp.clone().into(), us)), [true, false]);
        assert!(!is_short(&narrows_model::ProfilePlan::default().into(), 1_000_000));
    }
}
