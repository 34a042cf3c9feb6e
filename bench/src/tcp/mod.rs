//! TCP: goodput, and CPU time of the whole machine per gigabyte. Rounds are interleaved, every figure is a median over rounds,
//! and ratios are taken within a round.

mod table;

use crate::args::Args;
use crate::figures::order;
use crate::machine::Machine;
use crate::network::Network;
use crate::tools::{Server, Tool, Work};
use serde_json::Value;
use table::{Figure, Round};

pub(crate) fn run(args: &Args, tools: &[Tool]) -> Result<(String, Value), String> {
    let tools: Vec<&Tool> = tools.iter().filter(|tool| tool.tcp.is_some()).collect();
    let network = Network::up()?;
    network.control_congestion(&args.congestion_control)?;
    let servers = tools.iter().map(|tool| Server::start(tool, &network)).collect::<Result<Vec<_>, _>>()?;
    let mut results = Vec::new();
    let all = args.modes.iter().flat_map(|mode| args.ways.iter().map(move |way| (*mode, *way)));
    for (mode, way) in all {
        for &streams in &args.streams {
            let work = Work { streams, mode, way, seconds: args.seconds() };
            let rounds = (0..args.rounds()).map(|number| one_round(&tools, &network, &work, number, args));
            results.push((work, rounds.collect()));
        }
    }
    drop(servers);
    Ok((table::text(args, &tools, &results), table::json(args, &tools, &results)))
}

/// Runs each tool once. A failed run is reported and left out of its round.
fn one_round(tools: &[&Tool], network: &Network, work: &Work, number: u32, args: &Args) -> Round {
    let mut round = vec![None; tools.len()];
    for index in order(tools.len(), number).into_iter().filter(|index| tools[*index].has(work)) {
        let (tool, what) = (tools[index], table::title(work));
        eprint!("\rbench: {what}, round {} of {}: {:<24}", number + 1, args.rounds(), tool.name);
        match measure(tool, network, work) {
            Ok(figure) => round[index] = Some(figure),
            Err(sentence) => eprintln!("\nbench: {sentence}"),
        }
    }
    eprintln!();
    round
}

/// One measurement, with the CPU time of the whole machine from before the client starts until after it ended.
fn measure(tool: &Tool, network: &Network, work: &Work) -> Result<Figure, String> {
    let machine = Machine::now()?;
    let moved = tool.measure_tcp(network, work)?;
    let cpu_s = machine.busy_seconds()?;
    Ok(Figure { goodput_bps: moved.goodput_bps, cpu_s_per_gb: cpu_s / (moved.bytes / 1e9) })
}
