//! Measures narrows against its peers on a plain veth pair between two fresh network namespaces: goodput, and CPU time of
//! the whole machine per gigabyte. Rounds are interleaved, every figure is a median over rounds, and ratios are taken within a
//! round, so that what disturbs the machine for a while disturbs all alike.
//!
//! Nothing here fails on a figure: thresholds are printed as met or not met.

#![allow(clippy::disallowed_methods)] // a program beside the house: it starts the peers and reads their output

mod args;
mod figures;
mod machine;
mod network;
mod table;
mod tools;

use args::Args;
use figures::Round;
use network::Network;
use tools::{Server, Tool};

fn main() -> std::process::ExitCode {
    match run() {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("bench: {sentence}");
            std::process::ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let args = Args::parse(std::env::args().skip(1))?;
    let network = Network::up()?;
    let (tools, missing) = tools::available(&args);
    for sentence in &missing {
        eprintln!("bench: left out: {sentence}");
    }
    let servers = tools.iter().map(|tool| Server::start(tool, &network)).collect::<Result<Vec<_>, _>>()?;
    let busy = machine::busy_fraction(std::time::Duration::from_secs(1))?;
    if busy > 0.05 {
        eprintln!("bench: the machine is {:.0} % busy with other things: expect wide intervals", busy * 100.0);
    }

    let mut results = Vec::new();
    for &streams in &args.streams {
        let mut rounds = Vec::new();
        for number in 0..args.rounds {
            rounds.push(one_round(&tools, &network, streams, number, &args));
        }
        results.push((streams, rounds));
    }
    drop(servers);

    print!("{}", table::text(&args, &tools, &missing, &results));
    let json = table::json(&args, &tools, &missing, busy, &results);
    std::fs::write(&args.output, format!("{json:#}\n"))
        .map_err(|error| format!("cannot write {}: {error}; name another file with --output", args.output.display()))?;
    println!("\nEvery round is in {}.", args.output.display());
    Ok(())
}

/// Each tool once, in an order that turns from round to round and runs backwards in every other. A run that fails is said and
/// left out of its round.
fn one_round(tools: &[Tool], network: &Network, streams: u32, number: usize, args: &Args) -> Round {
    let mut order: Vec<usize> = (0..tools.len()).collect();
    order.rotate_left(number % tools.len().max(1));
    if number % 2 == 1 {
        order.reverse();
    }
    let mut round = Round::new(tools.len());
    for index in order {
        let tool = &tools[index];
        eprint!("\rbench: {streams} streams, round {} of {}: {:<24}", number + 1, args.rounds, tool.name);
        match tool.measure(network, streams, args.seconds) {
            Ok(figure) => round.put(index, figure),
            Err(sentence) => eprintln!("\nbench: {sentence}"),
        }
    }
    eprintln!();
    round
}
