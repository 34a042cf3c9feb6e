//! Pacing: achieved against requested rate, and the distribution of gaps, with one observer for all tools.

mod departures;
mod table;

use crate::args::Args;
use crate::network::{End, Network};
use crate::tools::{Load, Server, Tool};
use crate::udp::trial::Trial;
use departures::Departures;
use serde_json::Value;

/// The requested rates, bits of payload per second.
const RATES_BPS: [u64; 5] = [1_000_000, 10_000_000, 100_000_000, 1_000_000_000, 5_000_000_000];
/// The maximum length of a trial: the observer holds all its packets.
const SECONDS_MAX: u32 = 5;
/// Ethernet's header, IP's header, UDP's header.
const HEADER_BYTES: u32 = 14 + 20 + 8;

struct Paced {
    tool: &'static str,
    own: bool,
    trial: Result<Trial, String>,
    /// The observer's result; the error if it has none.
    seen: Result<Departures, String>,
}

struct AtRate {
    load: Load,
    tools: Vec<Paced>,
}

pub(crate) fn run(args: &Args, tools: &[Tool]) -> Result<(String, Value), String> {
    let tools: Vec<&Tool> = tools.iter().filter(|tool| tool.udp.is_some()).collect();
    let network = Network::up()?;
    network.segment_udp_in_software()?;
    let servers = tools.iter().map(|tool| Server::start(tool, &network)).collect::<Result<Vec<_>, _>>()?;
    let (bytes, seconds) = (args.sizes.first().copied().unwrap_or(1448), args.seconds().min(SECONDS_MAX));
    let mut results = Vec::new();
    for bps in RATES_BPS {
        let load = Load { bps, bytes, seconds };
        let mut paced = Vec::new();
        for (tool, server) in tools.iter().zip(&servers) {
            eprint!("\rbench: pacing, {:>6} Mbit/s: {:<16}", bps / 1_000_000, tool.name);
            paced.push(one(tool, server, &network, load)?);
        }
        results.push(AtRate { load, tools: paced });
    }
    eprintln!();
    Ok((table::text(&results), table::json(&results)))
}

fn one(tool: &Tool, server: &Server, network: &Network, load: Load) -> Result<Paced, String> {
    let asked_pps = load.bps as f64 / load.datagram_bits();
    // Room for half as much again as requested, and for other packets.
    let room = (asked_pps * f64::from(load.seconds) * 1.5) as usize + 10_000;
    let ring = network.observe(End::Server, room)?;
    let trial = Trial::run(tool, server, network, load);
    let observed = ring.observed().map_err(|error| error.to_string())?;
    let length = load.bytes + HEADER_BYTES;
    let merged = observed.packets.iter().filter(|packet| packet.bytes > 1514).count();
    let times: Vec<u64> =
        observed.packets.iter().filter(|packet| packet.bytes == length).map(|packet| packet.at_ns).collect();
    let seen = if observed.missed > 0 {
        Err(format!("the observer missed {} packets", observed.missed))
    } else if merged > 0 {
        Err(format!("{merged} packets came merged"))
    } else {
        Departures::of(&times, asked_pps).ok_or_else(|| format!("the observer saw {} packets", times.len()))
    };
    if let Err(sentence) = &trial {
        eprintln!("\nbench: {sentence}");
    }
    Ok(Paced { tool: tool.name, own: tool.own, trial, seen })
}
