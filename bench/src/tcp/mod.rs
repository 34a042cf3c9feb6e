//! TCP: goodput, and CPU time of the whole machine per gigabyte. Rounds are interleaved, every figure is a median over rounds,
//! and ratios are taken within a round.

mod table;

use crate::args::Args;
use crate::figures::order;
use crate::machine::Machine;
use crate::network::Network;
use crate::tools::{Server, Tool};
use serde_json::Value;
use table::{Figure, Round};

pub(crate) fn run(args: &Args, tools: &[Tool]) -> Result<(String, Value), String> {
    let tools: Vec<&Tool> = tools.iter().filter(|tool| tool.tcp.is_some()).collect();
    let network = Network::up()?;
    let servers = tools.iter().map(|tool| Server::start(tool, &network)).collect::<Result<Vec<_>, _>>()?;
    let mut results = Vec::new();
    for &streams in &args.streams {
        let mut rounds = Vec::new();
        for number in 0..args.rounds() {
            rounds.push(one_round(&tools, &network, streams, number, args));
        }
        results.push((streams, rounds));
    }
    drop(servers);
    Ok((table::text(args, &tools, &results), table::json(args, &tools, &results)))
}

/// Runs each tool once. A failed run is reported and left out of its round.
fn one_round(tools: &[&Tool], network: &Network, streams: u32, number: u32, args: &Args) -> Round {
    let mut round = vec![None; tools.len()];
    for index in order(tools.len(), number) {
        let tool = tools[index];
        eprint!("\rbench: {streams} streams, round {} of {}: {:<24}", number + 1, args.rounds(), tool.name);
        match measure(tool, network, streams, args.seconds()) {
            Ok(figure) => round[index] = Some(figure),
            Err(sentence) => eprintln!("\nbench: {sentence}"),
        }
    }
    eprintln!();
    round
}

/// One measurement, with the CPU time of the whole machine from before the client starts until after it ended.
fn measure(tool: &Tool, network: &Network, streams: u32, seconds: u32) -> Result<Figure, String> {
    let machine = Machine::now()?;
    let moved = tool.measure_tcp(network, streams, seconds)?;
    let cpu_s = machine.busy_seconds()?;
    Ok(Figure { goodput_bps: moved.goodput_bps, cpu_s_per_gb: cpu_s / (moved.bytes / 1e9) })
}
