//! Measures narrows against its peers on a plain veth pair between two fresh network namespaces: TCP goodput and CPU time per
//! byte, the highest UDP rate without loss and the CPU time of receiving, UDP pacing, and the rate and pacing of raw frames.
//! Compared measurements are interleaved, so that a temporary disturbance affects all alike.
//!
//! No result makes it fail: thresholds are printed as met or not met.

#![allow(clippy::disallowed_methods)] // a program outside the product: it starts the peers and reads their output

mod args;
mod claim;
mod figures;
mod frames;
mod machine;
mod network;
mod pacing;
mod task;
mod tcp;
mod tools;
mod udp;

use args::{Args, Part};
use clap::Parser as _;
use serde_json::{Value, json};

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
    let args = Args::parse();
    let (tools, missing) = tools::available(&args);
    for sentence in &missing {
        eprintln!("bench: left out: {sentence}");
    }
    let busy = machine::busy_fraction(std::time::Duration::from_secs(1))?;
    if busy > 0.05 {
        eprintln!("bench: the machine is {:.0} % busy with other things: expect wide intervals", busy * 100.0);
    }
    let mut all = json!({
        "schema": "narrows.bench/2",
        "seconds": args.seconds(),
        "busy_before": busy,
        "left_out": missing,
        "versions": tools.iter().map(|tool| (tool.name.to_owned(), tool.version.clone().into())).collect::<serde_json::Map<_, _>>(),
    });
    let measurements: [(Part, &str, Measurement); 4] = [
        (Part::Tcp, "tcp", tcp::run),
        (Part::Udp, "udp", udp::run),
        (Part::Pacing, "pacing", pacing::run),
        (Part::Frames, "frames", frames::run),
    ];
    for (part, name, measure) in measurements {
        if args.wants(part) {
            let (text, json) = measure(&args, &tools)?;
            println!("{text}");
            all[name] = json;
            // After each part, so that a long run is never lost.
            std::fs::write(&args.output, format!("{all:#}\n")).map_err(|error| {
                format!("cannot write {}: {error}; name another file with --output", args.output.display())
            })?;
        }
    }
    for tool in tools.iter().filter(|tool| tool.name == "narrows" || !tool.own) {
        println!("{:<8} {}", tool.name, tool.version);
    }
    for sentence in missing {
        println!("Left out: {sentence}.");
    }
    println!("Every measurement is in {}.", args.output.display());
    Ok(())
}

type Measurement = fn(&Args, &[tools::Tool]) -> Result<(String, Value), String>;
