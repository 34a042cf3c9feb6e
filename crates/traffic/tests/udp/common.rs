//! Both ends of a trial in one process.

use narrows_model::{CpuTimes, Flow, Place, Progress, UdpEndRecord, UdpPlan, UdpRate};
use narrows_sys::event::{Event, wait_readable};
use narrows_sys::process;
use narrows_sys::udp::UdpListener;
use narrows_traffic::udp::{UdpStream, accept, open, refuse};
use narrows_traffic::{Connections, DataStream, Socket, Stop, TrafficError};
use narrows_wire::Key;
use narrows_wire::probe::Hello;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::AsFd as _;
use std::thread;
use std::time::Duration;

pub(crate) const KEY: Key = Key([7; 32]);
pub(crate) const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A short trial of small datagrams, as fast as 10,000 a second: slow enough for any machine.
pub(crate) fn plan() -> UdpPlan {
    UdpPlan {
        duration_ms: 300,
        interval_ms: 100,
        rate_up: UdpRate::Pps(10_000.0),
        rate_down: UdpRate::Pps(5_000.0),
        ..UdpPlan::default()
    }
}

/// The streams of a plan in the order of their ids.
pub(crate) fn roles(plan: &UdpPlan) -> Vec<(u32, Flow)> {
    let flows = plan.flows().iter().flat_map(|&flow| std::iter::repeat_n(flow, plan.streams as usize));
    (0..).zip(flows).collect()
}

/// What an end remarks, but that a user may not go beyond `net.core.rmem_max`: where root of the machine may, that is said rightly,
/// and is no matter of these tests.
pub(crate) fn remarks(record: &UdpEndRecord) -> Vec<&str> {
    let privileged = process::is_root_of_machine();
    let matters = |remark: &&str| privileged || !remark.contains(" bytes of SO_RCVBUF, got ");
    record.remarks.iter().map(String::as_str).filter(matters).collect()
}

/// One CPU that is always half busy.
pub(crate) fn cpus() -> Vec<CpuTimes> {
    vec![CpuTimes { cpu: 0, user_us: 1, idle_us: 1, ..CpuTimes::default() }]
}

/// A server of one trial: accepts so many streams with the right key, refuses all else.
pub(crate) fn serve(listener: &UdpListener, plan: &UdpPlan, streams: usize) -> Vec<UdpStream> {
    let never = Event::new().unwrap();
    let mut accepted: Vec<UdpStream> = Vec::new();
    let mut buffer = [0; 2048];
    while accepted.len() < streams {
        wait_readable([listener.as_fd(), never.as_fd()], Some(Duration::from_secs(10))).unwrap();
        let arrival = listener.receive(&mut buffer).unwrap().expect("a hello within ten seconds");
        match Hello::decode(&buffer[..arrival.bytes.min(buffer.len())]) {
            Ok(hello) if hello.key != KEY => refuse(listener, &hello, &arrival, "no trial has this key"),
            Ok(hello) if accepted.iter().any(|stream| stream.id == u32::from(hello.stream)) => {}
            Ok(hello) => accepted.push(accept(&hello, &arrival, plan).unwrap()),
            Err(_) => {}
        }
    }
    accepted
}

/// Opens all streams of a plan.
pub(crate) fn open_all(address: SocketAddr, plan: &UdpPlan) -> Result<Vec<UdpStream>, TrafficError> {
    roles(plan).into_iter().map(|(id, flow)| open(address, &KEY, id, flow, plan)).collect()
}

pub(crate) fn run(
    place: Place,
    plan: &UdpPlan,
    streams: Vec<UdpStream>,
    stop: &Stop,
    on_progress: &mut dyn FnMut(Progress),
) -> Result<UdpEndRecord, TrafficError> {
    let stream = |stream: UdpStream| {
        let (id, flow) = (stream.id, stream.flow);
        DataStream { id, flow, socket: Socket::Udp(stream), connect_ns: None }
    };
    let connections = Connections::of(streams.into_iter().map(stream).collect());
    let record = narrows_traffic::run(place, &plan.clone().into(), connections, stop, &cpus, on_progress)?;
    Ok(record.get::<UdpEndRecord>().unwrap().clone())
}

/// Runs one end without a listener for its progress.
pub(crate) fn run_end(place: Place, plan: &UdpPlan, streams: Vec<UdpStream>) -> UdpEndRecord {
    run(place, plan, streams, &Stop::new(), &mut |_| {}).unwrap()
}

/// Runs both ends over loopback: the client's record and the server's.
pub(crate) fn run_both(plan: &UdpPlan) -> (UdpEndRecord, UdpEndRecord) {
    let listener = UdpListener::bind(0).unwrap();
    let address = SocketAddr::new(LOOPBACK, listener.port());
    thread::scope(|scope| {
        let server = scope.spawn(|| run_end(Place::Server, plan, serve(&listener, plan, roles(plan).len())));
        let client = run_end(Place::Client, plan, open_all(address, plan).unwrap());
        (client, server.join().unwrap())
    })
}
