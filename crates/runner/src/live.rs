//! The collectors and the engines of this host as the instruments of an end, and a server's session as the other end.

use crate::ends::{Ends, EndsError, On, TrialFailed, Watch};
use crate::instruments::{Drops, Instruments};
use crate::loopback;
use crate::remote::{Remote, RemoteError, Session, TrialError};
use crate::stop::Stop;
use crate::tune::Tuner;
use narrows_collect::Live;
use narrows_model::{
    Change, Flow, InterfaceSample, LoadPlan, LoadRecord, Place, Progress, Setting, Snapshot, TcpPlan, Trial,
};
use narrows_sys::udp::Arrival;
use narrows_traffic::Connections;
use narrows_traffic::udp::UdpStream;
use narrows_wire::{Key, probe};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;

/// The collectors and the engine of this host.
#[derive(Debug, Clone, Copy)]
pub struct LiveInstruments {
    /// Whether counters and CPU times are read around and during a trial; without them nothing can be diagnosed.
    pub collect: bool,
}

impl Instruments for LiveInstruments {
    fn host_name(&self) -> String {
        narrows_sys::process::host_name()
    }

    fn inventory(&self, peer: Option<IpAddr>) -> Snapshot {
        narrows_collect::inventory(&Live::new(), peer)
    }

    fn counters(&self, peer: Option<IpAddr>) -> Snapshot {
        if self.collect { narrows_collect::counters(&Live::new(), peer) } else { Snapshot::default() }
    }

    fn interfaces(&self) -> Result<Vec<InterfaceSample>, String> {
        narrows_collect::interfaces().map_err(|missing| missing.to_string())
    }

    fn watch_drops(&self) -> Drops {
        if self.collect { Drops::watch() } else { Drops::default() }
    }

    fn prepare(&self, socket: BorrowedFd<'_>, place: Place, flow: Flow, plan: &TcpPlan) -> Result<(), String> {
        narrows_traffic::tcp::prepare(socket, place, flow, plan).map_err(|error| error.to_string())
    }

    fn open_udp(
        &self,
        address: SocketAddr,
        key: &Key,
        id: u32,
        flow: Flow,
        plan: &LoadPlan,
    ) -> Result<UdpStream, String> {
        narrows_traffic::open_udp(address, key, id, flow, plan).map_err(|error| error.to_string())
    }

    fn accept_udp(&self, hello: &probe::Hello, arrival: &Arrival, plan: &LoadPlan) -> Result<UdpStream, String> {
        narrows_traffic::accept_udp(hello, arrival, plan).map_err(|error| error.to_string())
    }

    fn run(
        &self,
        place: Place,
        plan: &LoadPlan,
        connections: Connections,
        stop: &Stop,
        on_progress: &mut dyn FnMut(Progress),
    ) -> Result<LoadRecord, String> {
        let none = || Vec::new();
        let cpu_times: &(dyn Fn() -> _ + Sync) = if self.collect { &narrows_collect::cpu_times } else { &none };
        narrows_traffic::run(place, plan, connections, stop, cpu_times, on_progress).map_err(|error| error.to_string())
    }
}

/// This host and a server's session.
pub struct LiveEnds<'a> {
    remote: &'a Remote,
    session: Session<'a>,
    instruments: LiveInstruments,
    tuner: Option<Tuner>,
    stop: Stop,
}

impl<'a> LiveEnds<'a> {
    /// The two ends of a path. Without a `tuner` this host is not changed.
    #[must_use]
    pub const fn new(
        remote: &'a Remote,
        session: Session<'a>,
        instruments: LiveInstruments,
        tuner: Option<Tuner>,
        stop: Stop,
    ) -> Self {
        Self { remote, session, instruments, tuner, stop }
    }

    fn own_tuner(&self) -> Result<&Tuner, EndsError> {
        self.tuner.as_ref().ok_or_else(|| EndsError::Failed("this host is not to be changed".to_owned()))
    }
}

fn ends_error(error: &RemoteError) -> EndsError {
    if matches!(error, RemoteError::Lost { .. }) {
        EndsError::Lost(error.to_string())
    } else {
        EndsError::Failed(error.to_string())
    }
}

impl Ends for LiveEnds<'_> {
    fn inventory(&mut self, place: Place) -> Result<Snapshot, EndsError> {
        match place {
            Place::Client => Ok(self.instruments.inventory(Some(self.remote.data_address().ip().to_canonical()))),
            Place::Server => self.session.inventory().map_err(|error| ends_error(&error)),
            Place::Path => Err(EndsError::Failed("a path has no inventory".to_owned())),
        }
    }

    fn idle_rtt_us(&mut self) -> Vec<u64> {
        // Without it the smallest RTT that TCP sees under load must do.
        self.remote.idle_rtt_us(5).unwrap_or_default()
    }

    fn trial(&mut self, plan: &LoadPlan, on: On, watch: Watch<'_>) -> Result<Trial, TrialFailed> {
        match on {
            On::Path => self
                .session
                .trial(plan, &self.stop, watch)
                .map_err(|TrialError { partial, why }| TrialFailed { why: ends_error(&why), partial }),
            On::Loopback => loopback::trial(self.instruments, plan, &self.stop)
                .map_err(|why| TrialFailed { why: EndsError::Failed(why), partial: None }),
        }
    }

    fn apply(&mut self, place: Place, setting: &Setting) -> Result<Change, EndsError> {
        match place {
            Place::Client => {
                self.own_tuner()?.apply(setting, place).map_err(|error| EndsError::Failed(error.to_string()))
            }
            Place::Server => self.session.apply(setting).map_err(|error| ends_error(&error)),
            Place::Path => Err(EndsError::Failed("nothing on the path can be set".to_owned())),
        }
    }

    fn undo(&mut self, change: &Change) -> Result<(), EndsError> {
        match change.at {
            Place::Client => {
                self.own_tuner()?.undo(&change.id).map(|_| ()).map_err(|error| EndsError::Failed(error.to_string()))
            }
            _ => self.session.undo(&change.id).map(|_| ()).map_err(|error| ends_error(&error)),
        }
    }

    fn keep(&mut self, change: &Change) -> Result<(), EndsError> {
        match change.at {
            Place::Client => {
                self.own_tuner()?.keep(&change.id).map(|_| ()).map_err(|error| EndsError::Failed(error.to_string()))
            }
            _ => self.session.keep(&change.id).map(|_| ()).map_err(|error| ends_error(&error)),
        }
    }

    fn renew(&mut self) -> Result<(), EndsError> {
        let stop = self.stop.clone();
        self.session = self.remote.open_session(&mut |_, _| !stop.is_set()).map_err(|error| ends_error(&error))?;
        Ok(())
    }

    fn stopped(&self) -> bool {
        self.stop.is_set()
    }
}
