//! Both ends of a trial in one process, over loopback.
#![allow(dead_code, clippy::unwrap_used)] // each test file uses its part; helpers of tests may unwrap as tests do

pub(crate) mod rr;

use narrows_model::{CpuTimes, Direction, Flow, Place, Progress, TcpEndRecord, TcpInfo, TcpPlan};
use narrows_sys::net;
use narrows_traffic::tcp::prepare;
use narrows_traffic::{Connections, DataStream, Socket, Stop, TrafficError};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::BorrowedFd;
use std::thread;
use std::time::Duration;

/// The connections of a plan: `(client's, server's)` streams.
pub(crate) fn connect(plan: &TcpPlan) -> (Vec<DataStream>, Vec<DataStream>) {
    let listener = net::listen(0).unwrap();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, listener.local_addr().unwrap().port()));
    let (mut client, mut server) = (Vec::new(), Vec::new());
    for &flow in plan.flows() {
        for _ in 0..plan.streams {
            let id = client.len() as u32;
            let before = |socket: BorrowedFd<'_>| prepare(socket, Place::Client, flow, plan).map_err(Failure::from);
            let socket = net::connect(address, Duration::from_secs(5), before).unwrap();
            client.push(stream(id, flow, socket));
            let (socket, _) = listener.accept().unwrap();
            prepare(&socket, Place::Server, flow, plan).unwrap();
            server.push(stream(id, flow, socket));
        }
    }
    (client, server)
}

/// A stream over a connection.
pub(crate) fn stream(id: u32, flow: Flow, socket: TcpStream) -> DataStream {
    DataStream { id, flow, socket: Socket::Tcp(socket), connect_ns: None }
}

/// The connection of the first stream.
pub(crate) fn raw(streams: Vec<DataStream>) -> TcpStream {
    let tcp = |stream: DataStream| match stream.socket {
        Socket::Tcp(socket) => Some(socket),
        _ => None,
    };
    streams.into_iter().find_map(tcp).expect("a stream over TCP")
}

/// One connection, both ends raw.
pub(crate) fn pair() -> (TcpStream, TcpStream) {
    let (client, server) = connect(&TcpPlan { direction: Direction::Up, ..TcpPlan::default() });
    (raw(client), raw(server))
}

/// Either crate's error while connecting, in words.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) String);

impl From<narrows_sys::Error> for Failure {
    fn from(error: narrows_sys::Error) -> Self {
        Self(error.to_string())
    }
}

impl From<TrafficError> for Failure {
    fn from(error: TrafficError) -> Self {
        Self(error.to_string())
    }
}

/// One CPU that is always half busy.
pub(crate) fn cpus() -> Vec<CpuTimes> {
    vec![CpuTimes { cpu: 0, user_us: 1, idle_us: 1, ..CpuTimes::default() }]
}

/// Runs one end; `progress` gets all its reports.
pub(crate) fn run(
    place: Place,
    plan: &TcpPlan,
    streams: Vec<DataStream>,
    stop: &Stop,
    progress: &mut Vec<Progress>,
) -> Result<TcpEndRecord, TrafficError> {
    let mut listen = |step| progress.push(step);
    let record = narrows_traffic::run(place, &plan.clone().into(), Connections::of(streams), stop, &cpus, &mut listen)?;
    Ok(record.get::<TcpEndRecord>().unwrap().clone())
}

/// Runs one end without a listener for its progress.
pub(crate) fn run_end(place: Place, plan: &TcpPlan, streams: Vec<DataStream>, stop: &Stop) -> TcpEndRecord {
    run(place, plan, streams, stop, &mut Vec::new()).unwrap()
}

/// Runs both ends to their end; the client's progress as well.
pub(crate) fn run_both(plan: &TcpPlan) -> (TcpEndRecord, TcpEndRecord, Vec<Progress>) {
    let (client, server) = connect(plan);
    let mut progress = Vec::new();
    let (client, server) = thread::scope(|scope| {
        let server = scope.spawn(|| run_end(Place::Server, plan, server, &Stop::new()));
        let client = run(Place::Client, plan, client, &Stop::new(), &mut progress).unwrap();
        (client, server.join().unwrap())
    });
    (client, server, progress)
}

/// Bytes that each stream of an end moved, by id.
pub(crate) fn bytes_of(end: &TcpEndRecord, flow: Flow) -> Vec<u64> {
    let of_flow = end.streams.iter().filter(|stream| stream.flow == flow);
    of_flow.map(|stream| stream.samples.last().unwrap().bytes).collect()
}

/// The growth of a counter of `TCP_INFO` of the first stream from the end of the omitted part to the last sample.
pub(crate) fn growth(end: &TcpEndRecord, plan: &TcpPlan, counter: impl Fn(&TcpInfo) -> Option<u64>) -> u64 {
    let samples = &end.streams[0].samples;
    let first = samples.iter().find(|sample| sample.at_us >= plan.omit_ms * 1000).unwrap();
    counter(&samples.last().unwrap().tcp).unwrap() - counter(&first.tcp).unwrap()
}
