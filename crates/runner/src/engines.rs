//! The table of engines: which one runs a load of each kind, and what it needs before it begins.

use crate::instruments::{Connections, DataStream, Each, Socket};
use crate::stop::Stop;
use narrows_model::{
    CpuTimes, DatagramSizes, Flow, LoadPlan, LoadRecord, LoadSample, Place, Progress, RrPlan, StreamProgress,
    Transaction, UdpPlan,
};
use narrows_sys::udp::Arrival;
use narrows_traffic::TrafficError;
use narrows_traffic::rr::{self, Answers, Exchange, RrStream};
use narrows_traffic::tcp::{self, Stream};
use narrows_traffic::udp::{self, UdpStream};
use narrows_wire::{Key, probe};
use std::net::SocketAddr;

/// Runs one end of a trial until it is over or `stop` is raised.
///
/// # Errors
/// Why no trial could be made.
pub(crate) fn run(
    place: Place,
    plan: &LoadPlan,
    connections: Connections,
    stop: &Stop,
    cpu_times: &(dyn Fn() -> Vec<CpuTimes> + Sync),
    on_progress: &mut dyn FnMut(Progress),
) -> Result<LoadRecord, TrafficError> {
    let Connections { streams, each } = connections;
    match plan {
        LoadPlan::Tcp(plan) => {
            tcp::run(place, plan, tcp_of(streams), stop, cpu_times, &mut |it| on_progress(to_progress(it)))
                .map(Into::into)
        }
        LoadPlan::Udp(plan) => {
            udp::run(place, plan, udp_of(streams), stop, cpu_times, &mut |it| on_progress(to_progress(it)))
                .map(Into::into)
        }
        LoadPlan::Rr(plan) => {
            rr::run(place, plan, requests(plan, streams, each), stop, cpu_times, &mut |it| on_progress(to_progress(it)))
                .map(Into::into)
        }
    }
}

fn to_progress<S: Into<LoadSample>>(it: narrows_traffic::Progress<S>) -> Progress {
    let stream =
        |it: narrows_traffic::StreamProgress<S>| StreamProgress { id: it.id, flow: it.flow, sample: it.sample.into() };
    Progress { at_us: it.at_us, streams: it.streams.into_iter().map(stream).collect() }
}

/// What answers the connections of a load that makes one for each transaction; `None` of any other load.
pub(crate) fn answers(plan: &LoadPlan) -> Option<Answers> {
    plan.get::<RrPlan>().filter(|_| plan.connects_per_transaction()).map(Answers::new)
}

/// The client's end of the handshake of a stream over UDP.
///
/// # Errors
/// Why there is no such stream, in a sentence.
pub(crate) fn open_udp(
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

/// The server's end of the handshake.
///
/// # Errors
/// Why there is no such stream, in a sentence.
pub(crate) fn accept_udp(hello: &probe::Hello, arrival: &Arrival, plan: &LoadPlan) -> Result<UdpStream, String> {
    let stream = udp::accept(hello, arrival, &handshake(plan)).map_err(|error| error.to_string())?;
    make_room(&stream, plan);
    Ok(stream)
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
