//! The client opens the streams, those that it sends on first.

use super::connect::Iperf3Error;
use super::control::Control;
use narrows_model::{Carrier, LoadPlan, Place, StreamSpec, Transport};
use narrows_sys::clock;
use narrows_sys::net::{self, Carried};
use narrows_sys::udp::socket;
use narrows_traffic::tcp::prepare;
use narrows_traffic::{DataStream, Socket};
use narrows_wire::iperf3::{Cookie, Params, datagram};
use std::io::Write as _;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

/// For a connection, and for the reply to the datagram that opens a stream …
const OPEN: Duration = Duration::from_secs(10);
/// … which is repeated at this interval: a server that has replied takes it for data without a number.
pub(super) const REPEAT: Duration = Duration::from_secs(1);

/// Why a connection was not made.
struct Unopened(String);

impl From<narrows_sys::Error> for Unopened {
    fn from(error: narrows_sys::Error) -> Self {
        Self(error.to_string())
    }
}

#[allow(clippy::needless_pass_by_value)] // for `map_err`
fn here(error: impl ToString) -> Iperf3Error {
    Iperf3Error::Here(error.to_string())
}

/// The largest datagram that the route carries in one packet, as far as the kernel knows.
pub(super) fn largest_datagram(address: SocketAddr) -> Result<u32, Iperf3Error> {
    let probe = socket::connect(address).map_err(here)?;
    let mtu = socket::path_mtu(&probe, address.is_ipv4()).map_err(here)?;
    Ok((mtu - socket::header_bytes(&address).min(mtu)).clamp(datagram::MIN_BYTES, datagram::MAX_BYTES))
}

/// Opens all streams of the plan.
pub(super) fn open(
    control: &mut Control,
    cookie: &Cookie,
    params: &Params,
    plan: &LoadPlan,
) -> Result<Vec<DataStream>, Iperf3Error> {
    plan.streams().into_iter().map(|spec| open_one(control, cookie, params, plan, spec)).collect()
}

fn open_one(
    control: &mut Control,
    cookie: &Cookie,
    params: &Params,
    plan: &LoadPlan,
    StreamSpec { id, flow, carrier }: StreamSpec,
) -> Result<DataStream, Iperf3Error> {
    let address = control.address;
    let began = clock::now();
    let socket = match (carrier, plan) {
        (Carrier::Udp, LoadPlan::Udp(plan)) => {
            let own = socket::connect(address).map_err(here)?;
            greet(control, &own)?;
            let stream =
                narrows_traffic::udp::iperf3(own, address, (id, flow), Place::Client, plan, params.wide_counters);
            Socket::Udp(stream.map_err(here)?)
        }
        _ => {
            let options = plan.tcp_options(id).unwrap_or_default();
            let carried = if options.transport == Transport::Multipath { Carried::Multipath } else { Carried::Plain };
            let connected = net::connect_by(address, OPEN, carried, |own| {
                prepare(own, Place::Client, flow, &options).map_err(|error| Unopened(error.to_string()))
            });
            let mut stream = connected.map_err(|Unopened(why)| Iperf3Error::Here(why))?;
            stream.write_all(cookie.bytes()).map_err(here)?;
            Socket::Tcp(stream)
        }
    };
    let connect_ns = u64::try_from(began.elapsed().as_nanos()).ok();
    Ok(DataStream { id, flow, socket, connect_ns })
}

/// Opens a stream over UDP. In reverse, data may come before the reply, or instead of a lost one.
fn greet(control: &mut Control, own: &UdpSocket) -> Result<(), Iperf3Error> {
    own.set_read_timeout(Some(REPEAT)).map_err(here)?;
    let until = clock::now() + OPEN;
    let mut buffer = [0; 2048];
    while clock::now() < until {
        own.send(&datagram::hello()).map_err(here)?;
        match own.recv(&mut buffer) {
            Ok(length) if datagram::is_reply(&buffer[..length]) || length > 4 => return Ok(()),
            // A closed port, a time-out: the server may say why.
            Ok(_) | Err(_) => drop(control.look()?),
        }
    }
    Err(Iperf3Error::Silent(control.address, OPEN.as_secs(), "its reply over UDP"))
}
