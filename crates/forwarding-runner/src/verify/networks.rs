//! 256 networks behind a device (RFC 2544, section 12; RFC 5180, section 7): that frames reach them all.

use crate::demo::Bench;
use narrows_lab::Row;
use narrows_model::Family;
use narrows_model::load::frame_traffic::Traffic;
use narrows_model::load::frames::{FlowGot, FrameLoad, GeneratePlan, ReceivePlan, Transport, Walk};
use narrows_runner::demo::StageError;
use narrows_runner::port::{Ends, Here, Port as _, PortError, frame_format};
use narrows_traffic::Stop;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Frames to 256 networks of either family, as a plan has them, and the destinations of those that came through the router.
pub(super) fn networks(bench: &Bench) -> Result<Vec<Row>, StageError> {
    let ports = [
        (Family::Ipv4, "198.18.0.1", ["198.18.0.2", "198.19.0.2"]),
        (Family::Ipv6, "2001:2:0:100::1", ["2001:2:0:100::2", "2001:2:0:200::2"]),
    ];
    let mut rows = Vec::new();
    for (family, gateway, addresses) in ports {
        let came = bench.lab.host("tester")?.run(|| destinations(family, gateway, addresses))??;
        let (name, bits) = if family == Family::Ipv4 { ("IPv4", 24) } else { ("IPv6", 64) };
        rows.push(Row {
            what: format!("networks of {bits} bits that are reached through a device, {name}"),
            requested: f64::from(Traffic::MAX_NETWORKS),
            measured: came as f64,
            unit: "networks",
            tolerance: "all",
            met: came == Traffic::MAX_NETWORKS as usize,
        });
    }
    Ok(rows)
}

/// In the tester's network: how many networks the destinations of the frames that come lie in.
fn destinations(family: Family, gateway: &str, addresses: [&str; 2]) -> Result<usize, StageError> {
    let failed = |error: PortError| StageError::Failed("the tester", error.to_string());
    let address =
        |word: &str| word.parse::<IpAddr>().map_err(|error| StageError::Failed("the tester", error.to_string()));
    let traffic = Traffic {
        family,
        transport: Transport::Udp,
        flows: 8,
        networks: Traffic::MAX_NETWORKS,
        walk: Walk::Odometer,
        sizes: vec![128],
        mix: Vec::new(),
        bidirectional: false,
        modifier: None,
    };
    let looked = Here.look("gen0", Some(address(gateway)?)).map_err(failed)?;
    let next =
        looked.gateway.ok_or_else(|| StageError::Failed("the tester", "no answer from the gateway".to_owned()))?;
    let ends = Ends { macs: [looked.own, next], addresses: [address(addresses[0])?, address(addresses[1])?] };
    // Of 256 networks visited at random one is missed by 20,000 frames with a chance of 1 in 10^31.
    let frames = 20_000;
    let load = FrameLoad::FramesPerSecond(20_000.0);
    let order = GeneratePlan {
        device: "gen0".to_owned(),
        mode: None,
        format: frame_format(&traffic, traffic.sizes.clone(), &ends),
        load,
        burst: GeneratePlan::usual_burst(load, 1),
        catch_up_us: 0,
        duration_ms: 10_000,
        count: Some(frames),
        workers: 1,
        workers_note: None,
        first_stream: 0,
        stamp_every: 0,
        interval_ms: 1_000,
        broadcast_every: 0,
    };
    let receive = ReceivePlan {
        device: "rcv0".to_owned(),
        mode: None,
        duration_ms: 60_000,
        idle_ms: None,
        per_flow: true,
        gaps: false,
        interval_ms: 1_000,
    };
    let mut counting = Here.receive(&receive, false).map_err(failed)?;
    Here.generate(&[order], &Stop::new()).map_err(failed)?;
    counting.wait(frames, Duration::from_millis(500)).map_err(failed)?;
    let got = counting.finish().map_err(failed)?;
    let network = |flow: &FlowGot| {
        let to: SocketAddr = flow.destination.parse().ok()?;
        Some(match to.ip() {
            IpAddr::V4(to) => u128::from(to.to_bits() >> 8),
            IpAddr::V6(to) => to.to_bits() >> 64,
        })
    };
    Ok(got.flows.iter().filter_map(network).collect::<BTreeSet<_>>().len())
}
