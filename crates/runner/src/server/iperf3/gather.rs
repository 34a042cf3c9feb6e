//! The streams of a test, as its client opens them one after the other.

use super::control::Control;
use super::limits::STREAMS;
use super::table::{Opened, Seat};
use narrows_model::{Carrier, LoadPlan, Place, StreamSpec};
use narrows_sys::udp::socket;
use narrows_traffic::tcp::prepare;
use narrows_traffic::udp::iperf3;
use narrows_traffic::{DataStream, Socket};
use narrows_wire::iperf3::{Params, State};
use std::io::{self, ErrorKind};
use std::os::fd::AsFd as _;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

/// How often a test looks whether another one of its host still opens its UDP streams.
const TURN: Duration = Duration::from_millis(5);

/// Tells the client to open its streams, and waits for them. A client that says anything else, or leaves, is not waited for.
pub(super) async fn gather(
    control: &mut Control,
    seat: &Seat,
    params: &Params,
    plan: &LoadPlan,
) -> io::Result<Vec<DataStream>> {
    let (to, opened) = mpsc::unbounded_channel();
    let specs = plan.streams();
    if specs.iter().any(|spec| spec.carrier == Carrier::Udp) {
        // The first of its host goes first, and none longer than it may.
        while !seat.expect_udp(to.clone()) {
            tokio::select! {
                () = sleep(TURN) => {}
                state = control.state() => return Err(left(state)),
            }
        }
    } else {
        seat.expect_tcp(Some(to));
    }
    control.tell(State::CreateStreams).await?;
    let gathered = tokio::select! {
        gathered = timeout(STREAMS, all(specs, opened, params, plan)) => {
            gathered.unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()))
        }
        state = control.state() => Err(left(state)),
    };
    seat.expect_tcp(None);
    seat.expect_no_udp();
    gathered
}

fn left(state: io::Result<State>) -> io::Error {
    state.err().unwrap_or_else(|| io::Error::other("the client gave up"))
}

async fn all(
    specs: Vec<StreamSpec>,
    mut opened: mpsc::UnboundedReceiver<Opened>,
    params: &Params,
    plan: &LoadPlan,
) -> io::Result<Vec<DataStream>> {
    let mut streams = Vec::with_capacity(specs.len());
    for spec in specs {
        let opened = opened.recv().await.ok_or(ErrorKind::UnexpectedEof)?;
        // Elsewhere: the helper may have to set an option, and may be late.
        let (plan, wide) = (plan.clone(), params.wide_counters);
        let opening = tokio::task::spawn_blocking(move || open(spec, opened, wide, &plan));
        streams.push(opening.await.map_err(io::Error::other)??);
    }
    Ok(streams)
}

fn open(spec: StreamSpec, opened: Opened, wide_counters: bool, plan: &LoadPlan) -> io::Result<DataStream> {
    let StreamSpec { id, flow, .. } = spec;
    let socket = match (opened, plan) {
        (Opened::Tcp(stream), _) => {
            let options = plan.tcp_options(id).unwrap_or_default();
            prepare(stream.as_fd(), Place::Server, flow, &options).map_err(io::Error::other)?;
            let stream = stream.into_std()?;
            stream.set_nonblocking(false)?;
            Socket::Tcp(stream)
        }
        (Opened::Udp(arrival, reply), LoadPlan::Udp(plan)) => {
            let own = socket::connect_from(arrival.local, arrival.source).map_err(|error| error.source)?;
            own.send(&reply)?;
            let stream = iperf3(own, arrival.source, (id, flow), Place::Server, plan, wide_counters);
            Socket::Udp(stream.map_err(io::Error::other)?)
        }
        (Opened::Udp(..), _) => return Err(ErrorKind::InvalidData.into()),
    };
    Ok(DataStream { id, flow, socket, connect_ns: None })
}
