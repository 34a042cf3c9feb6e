//! The real thing: collectors and the TCP engine as the instruments of an end, and a server's session as the other one.

use crate::ends::{Ends, EndsError, TrialFailed};
use crate::instruments::{Connections, DataStream, Drops, Each, Instruments, Socket};
use crate::loopback;
use crate::remote::{News, Remote, RemoteError, Session, TrialError};
use crate::stop::Stop;
use crate::tune::Tuner;
use narrows_collect::Live;
use narrows_model::{
    Change, DatagramSizes, Flow, InterfaceSample, LoadPlan, LoadRecord, Place, RrPlan, RrSample, RrTrial, Setting,
    Snapshot, TcpPlan, TcpSample, Transaction, Trial, UdpPlan, UdpSample, UdpTrial,
};
use narrows_sys::udp::Arrival;
use narrows_traffic::rr::{self, Exchange, RrStream};
use narrows_traffic::tcp::{self, Stream};
use narrows_traffic::udp::{self, UdpStream};
use narrows_traffic::{Progress, StreamProgress as Moved};
use narrows_wire::api::{StreamProgress, TrialProgress};
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
        tcp::prepare(socket, place, flow, plan).map_err(|error| error.to_string())
    }

    fn open_udp(
        &self,
        address: SocketAddr,
        key: &Key,
        id: u32,
        flow: Flow,
        plan: &LoadPlan,
    ) -> Result<UdpStream, String> {
        let stream = udp::open(address, key, id, flow, &handshake(plan)).map_err(|error| error.to_string())?;
        make_room(&stream, plan);
        Ok(stream)
    }

    fn accept_udp(&self, hello: &probe::Hello, arrival: &Arrival, plan: &LoadPlan) -> Result<UdpStream, String> {
        let stream = udp::accept(hello, arrival, &handshake(plan)).map_err(|error| error.to_string())?;
        make_room(&stream, plan);
        Ok(stream)
    }

    fn run(
        &self,
        place: Place,
        plan: &LoadPlan,
        connections: Connections,
        stop: &Stop,
        on_progress: &mut dyn FnMut(TrialProgress),
    ) -> Result<LoadRecord, String> {
        let none = || Vec::new();
        let cpu_times: &(dyn Fn() -> _ + Sync) = if self.collect { &narrows_collect::cpu_times } else { &none };
        let Connections { streams, each } = connections;
        let record = match plan {
            LoadPlan::Tcp(plan) => tcp::run(place, plan, tcp_of(streams), stop, cpu_times, &mut |progress| {
                on_progress(told(&progress));
            })
            .map(LoadRecord::Tcp),
            LoadPlan::Udp(plan) => udp::run(place, plan, udp_of(streams), stop, cpu_times, &mut |progress| {
                on_progress(told_of_udp(&progress));
            })
            .map(LoadRecord::Udp),
            LoadPlan::Rr(plan) => {
                let connections = requests(plan, streams, each);
                rr::run(place, plan, connections, stop, cpu_times, &mut |progress| on_progress(told_of_rr(&progress)))
                    .map(LoadRecord::Rr)
            }
        };
        record.map_err(|error| error.to_string())
    }
}

fn tcp_of(streams: Vec<DataStream>) -> Vec<Stream> {
    let tcp = |DataStream { id, flow, socket, .. }| match socket {
        Socket::Tcp(socket) => Some(Stream { id, flow, socket }),
        Socket::Udp(_) => None,
    };
    streams.into_iter().filter_map(tcp).collect()
}

fn udp_of(streams: Vec<DataStream>) -> Vec<UdpStream> {
    let udp = |stream: DataStream| match stream.socket {
        Socket::Udp(stream) => Some(stream),
        Socket::Tcp(_) => None,
    };
    streams.into_iter().filter_map(udp).collect()
}

/// The streams of requests come first, those of the load beside them behind.
fn requests(plan: &RrPlan, streams: Vec<DataStream>, each: Each) -> rr::Connections {
    let of_load = |stream: &DataStream| {
        plan.load.is_some() && (stream.id >= plan.streams || plan.transaction == Transaction::TcpConnect)
    };
    let (load, requests): (Vec<_>, Vec<_>) = streams.into_iter().partition(of_load);
    let request = |DataStream { id, socket, connect_ns, .. }| RrStream {
        id,
        socket: match socket {
            Socket::Tcp(socket) => rr::Socket::Tcp(socket),
            Socket::Udp(stream) => rr::Socket::Udp(stream.into_socket()),
        },
        connect_ns,
    };
    let exchange = match each {
        Each::Nothing => Exchange::Streams(requests.into_iter().map(request).collect()),
        Each::Connect { address, key } => Exchange::Connect { address, key },
        Each::Answer(answers) => Exchange::Answer(answers),
    };
    rr::Connections { exchange, load: tcp_of(load) }
}

/// The handshake of requests over UDP: small datagrams that need no particular path MTU.
fn handshake(plan: &LoadPlan) -> UdpPlan {
    match plan {
        LoadPlan::Udp(plan) => plan.clone(),
        LoadPlan::Rr(plan) => UdpPlan {
            sizes: DatagramSizes::Sequence(vec![plan.request_bytes.max(plan.response_bytes)]),
            allow_fragments: true,
            ..UdpPlan::default()
        },
        LoadPlan::Tcp(_) => UdpPlan::default(),
    }
}

/// The first requests may come before the trial begins here.
fn make_room(stream: &UdpStream, plan: &LoadPlan) {
    if let LoadPlan::Rr(plan) = plan {
        // The trial asks again, and remarks what the kernel says.
        let _ = rr::prepare(stream.socket(), plan);
    }
}

fn progress_of(id: u32, flow: Flow) -> StreamProgress {
    StreamProgress {
        id,
        flow,
        bytes: 0,
        retransmits: None,
        rtt_us: None,
        cwnd_segments: None,
        mss_bytes: None,
        udp: None,
        rr: None,
    }
}

fn told_of_udp(progress: &Progress<UdpSample>) -> TrialProgress {
    let stream = |stream: &Moved<UdpSample>| StreamProgress {
        bytes: stream.sample.bytes,
        udp: Some(stream.sample.clone()),
        ..progress_of(stream.id, stream.flow)
    };
    TrialProgress { at_us: progress.at_us, streams: progress.streams.iter().map(stream).collect() }
}

fn told_of_rr(progress: &Progress<RrSample>) -> TrialProgress {
    let stream =
        |stream: &Moved<RrSample>| StreamProgress { rr: Some(stream.sample), ..progress_of(stream.id, Flow::Up) };
    TrialProgress { at_us: progress.at_us, streams: progress.streams.iter().map(stream).collect() }
}

/// What is worth telling the other end while a trial runs.
fn told(progress: &Progress<TcpSample>) -> TrialProgress {
    TrialProgress {
        at_us: progress.at_us,
        streams: progress
            .streams
            .iter()
            .map(|stream| StreamProgress {
                bytes: stream.sample.bytes,
                retransmits: stream.sample.tcp.total_retrans,
                rtt_us: stream.sample.tcp.rtt_us,
                cwnd_segments: stream.sample.tcp.snd_cwnd,
                mss_bytes: stream.sample.tcp.snd_mss_bytes,
                ..progress_of(stream.id, stream.flow)
            })
            .collect(),
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

    fn trial(&mut self, plan: &TcpPlan, watch: &mut dyn FnMut(Place, &TrialProgress)) -> Result<Trial, TrialFailed> {
        self.session
            .tcp_trial(plan, &self.stop, &mut |News { place, progress }| watch(place, &progress))
            .map_err(|TrialError { partial, why }| TrialFailed { why: ends_error(&why), partial })
    }

    fn udp_trial(
        &mut self,
        plan: &UdpPlan,
        watch: &mut dyn FnMut(Place, &TrialProgress),
    ) -> Result<UdpTrial, TrialFailed<UdpTrial>> {
        self.session
            .udp_trial(plan, &self.stop, &mut |News { place, progress }| watch(place, &progress))
            .map_err(|TrialError { partial, why }| TrialFailed { why: ends_error(&why), partial })
    }

    fn rr_trial(
        &mut self,
        plan: &RrPlan,
        watch: &mut dyn FnMut(Place, &TrialProgress),
    ) -> Result<RrTrial, TrialFailed<RrTrial>> {
        self.session
            .rr_trial(plan, &self.stop, &mut |News { place, progress }| watch(place, &progress))
            .map_err(|TrialError { partial, why }| TrialFailed { why: ends_error(&why), partial })
    }

    fn loopback(&mut self, plan: &TcpPlan) -> Result<Trial, TrialFailed> {
        loopback::tcp(self.instruments, plan, &self.stop)
            .map_err(|why| TrialFailed { why: EndsError::Failed(why), partial: None })
    }

    fn udp_loopback(&mut self, plan: &UdpPlan) -> Result<UdpTrial, TrialFailed<UdpTrial>> {
        loopback::udp(self.instruments, plan, &self.stop)
            .map_err(|why| TrialFailed { why: EndsError::Failed(why), partial: None })
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
