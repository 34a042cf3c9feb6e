//! Frames as the user asked for them, resolved on this host: addresses, next hop, load, workers.

use crate::workers::{self, Workers};
use narrows_collect::{Host, Live};
use narrows_model::Family;
use narrows_model::load::frame_words::{FrameWordError, parse_load};
use narrows_model::load::frames::{Endpoints, FrameFormat, FrameLoad, GeneratePlan, Mac, SendMode, Transport, Walk};
use narrows_sys::rtnl::{Link, Links};
use narrows_sys::{clock, ethtool, neighbour};
use narrows_traffic::Stop;
use std::net::IpAddr;
use std::time::Duration;
use thiserror::Error;

pub use narrows_traffic::frames::{FrameError, Receiver, generate};

/// Why the requested frames cannot be sent.
#[derive(Debug, Error)]
pub enum OrderError {
    /// A word of the order.
    #[error(transparent)]
    Word(#[from] FrameWordError),
    /// The device cannot be used: why, and what to do.
    #[error("cannot use device {0}: {1}")]
    Device(String, String),
    /// An address outside the ranges reserved for benchmarking.
    #[error(
        "{0} is outside the benchmarking ranges 198.18.0.0/15 and 2001:2::/48 (RFC 2544, RFC 5180); use an address in \
        them, or give --allow-any-address"
    )]
    Address(IpAddr),
    /// The next hop is unknown.
    #[error("{0}")]
    NextHop(String),
    /// The plan is inconsistent.
    #[error("{0}")]
    Plan(String),
    #[error(transparent)]
    System(#[from] narrows_sys::Error),
}

/// Where frames go first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextHop {
    /// To the MAC address that resolves for this address on the link.
    Mac(Mac),
    /// To the MAC address that resolves for the first destination.
    Gateway(IpAddr),
    /// To whoever answers for the first destination.
    Destination,
}

/// What `narrows generate` was asked for.
#[derive(Debug, Clone)]
pub struct Order {
    pub device: String,
    /// `None`: the best.
    pub mode: Option<SendMode>,
    /// Source addresses and ports.
    pub source: Endpoints,
    /// Destination addresses and ports.
    pub destination: Endpoints,
    /// `None`: the device's.
    pub source_mac: Option<Mac>,
    /// Where they go first.
    pub next_hop: NextHop,
    /// VLAN of a tag.
    pub vlan: Option<u16>,
    pub transport: Transport,
    /// Order of the flows.
    pub walk: Walk,
    /// Sizes with FCS; empty: the smallest.
    pub sizes: Vec<u32>,
    /// The word for the load.
    pub load: String,
    /// Speed of the link, if the user names it.
    pub link_bps: Option<u64>,
    /// The most frames back to back; `None`: [`GeneratePlan::usual_burst`].
    pub burst: Option<u32>,
    /// The longest stall after which the backlog is still sent.
    pub catch_up: Duration,
    pub duration: Duration,
    /// How many frames at most.
    pub count: Option<u64>,
    /// `None`: as many as the load needs.
    pub workers: Option<u32>,
    /// Every how many frames carry a timestamp; `None`: about 10,000 per second, or every 1024th at maximum rate.
    pub stamp_every: Option<u32>,
    /// How often counters are read.
    pub interval: Duration,
    /// How long to wait for a link.
    pub wait: Duration,
    /// Whether other addresses than those for benchmarks may be used.
    pub any_address: bool,
    /// Whether the device that carries the default route may be used.
    pub default_route: bool,
}

/// Stamps a second, at most, where nobody says how many.
const STAMPS_A_SECOND: f64 = 10_000.0;

fn device_error(device: &str, why: impl Into<String>) -> OrderError {
    OrderError::Device(device.to_owned(), why.into())
}

fn link(device: &str) -> Result<Link, OrderError> {
    Links::open()
        .and_then(|mut links| links.get(device))
        .map_err(|error| device_error(device, format!("{error}; see `ip link`")))
}

/// Waits until the device has a link; a device that is down stays down.
fn wait_for_link(device: &str, wait: Duration, stop: &Stop) -> Result<Link, OrderError> {
    let started = clock::now();
    loop {
        let found = link(device)?;
        if !found.up {
            return Err(device_error(device, "it is down; set it up with `ip link set DEV up`"));
        }
        if found.carrier || started.elapsed() >= wait || stop.is_set() {
            return Ok(found);
        }
        clock::sleep(Duration::from_millis(50));
    }
}

/// Bits per second of the device's link, if it says.
pub fn link_speed(device: &str) -> Option<u64> {
    let link = ethtool::Device::open(device).and_then(|device| device.link()).ok()?;
    link.speed_mbps.map(|mbps| u64::from(mbps) * 1_000_000)
}

/// The plan of an order on this host.
/// Errors: the device is missing, down or carries the default route; an address is not for benchmarking; the next hop
/// does not resolve; the frames are impossible.
pub fn resolve(order: &Order, stop: &Stop) -> Result<GeneratePlan, OrderError> {
    let allowed = |address: &IpAddr| order.any_address || narrows_model::load::frame_words::is_benchmarking(*address);
    let ends = [order.source.addresses, order.destination.addresses].concat();
    if let Some(outside) = ends.iter().find(|address| !allowed(address)) {
        return Err(OrderError::Address(*outside));
    }
    let host: &dyn Host = &Live::new();
    if !order.default_route && host.route(None).is_ok_and(|route| route.device == order.device) {
        return Err(device_error(
            &order.device,
            "it carries the default route: frames at line rate would disconnect this host; use another interface, or \
            give --use-default-route-device twice",
        ));
    }
    let found = wait_for_link(&order.device, order.wait, stop)?;
    let source_mac = match order.source_mac {
        Some(mac) => mac,
        None => Mac(found.address.ok_or_else(|| device_error(&order.device, "it has no MAC address"))?),
    };
    let destination_mac = match order.next_hop {
        NextHop::Mac(mac) => mac,
        NextHop::Gateway(address) => Mac(neighbour::resolve(address, found.index)?),
        NextHop::Destination => {
            Mac(neighbour::resolve(order.destination.addresses[0], found.index).map_err(|error| {
                OrderError::NextHop(format!(
                    "{error}; name the next hop with --gateway ADDRESS or --destination-mac MAC"
                ))
            })?)
        }
    };
    let family = if order.source.addresses[0].is_ipv4() { Family::Ipv4 } else { Family::Ipv6 };
    let mut format = FrameFormat {
        source_mac,
        destination_mac,
        vlan: order.vlan,
        family,
        transport: order.transport,
        source: order.source,
        destination: order.destination,
        walk: order.walk,
        sizes: order.sizes.clone(),
        ttl: 64,
    };
    if format.sizes.is_empty() {
        format.sizes = vec![format.least_bytes()];
    }
    let link_bps = order.link_bps.or_else(|| link_speed(&order.device));
    let load = parse_load(&order.load, link_bps, format.mean_bytes())?;
    let workers = match order.workers {
        Some(count) => Workers { count, note: None },
        None => workers::choose(&order.device, load, order.count.is_some())?,
    };
    let stamp_every = order.stamp_every.unwrap_or(match load {
        FrameLoad::Max => 1024,
        FrameLoad::FramesPerSecond(pps) => (pps / STAMPS_A_SECOND).ceil().max(1.0) as u32,
    });
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let plan = GeneratePlan {
        device: order.device.clone(),
        mode: order.mode,
        format,
        load,
        burst: order.burst.unwrap_or_else(|| GeneratePlan::usual_burst(load, workers.count)),
        catch_up_us: u32::try_from(order.catch_up.as_micros()).unwrap_or(u32::MAX),
        duration_ms: millis(order.duration),
        count: order.count,
        workers: workers.count,
        workers_note: workers.note,
        first_stream: 0,
        stamp_every,
        broadcast_every: 0,
        interval_ms: millis(order.interval),
    };
    plan.check().map_err(OrderError::Plan)?;
    Ok(plan)
}
