//! Raw frames over a plain veth pair with several queues: the highest rate of the smallest frames against generators of others
//! and against a pair of empty programs, which is what the machine can; then how evenly they leave in each mode.

mod bare;
mod own;
mod pacing;
mod pacing_table;
mod peers;
mod rate;
mod rate_table;

use crate::args::Args;
use crate::network::Network;
use crate::tools::Tool;
use serde_json::{Value, json};

/// Queues of each end each way, and workers or threads of each contender.
const WORKERS: u32 = 2;
/// How much before ordinary programs all contenders run: as narrows' workers do.
const NICE: i32 = -15;

/// The measurement: its tables and its JSON.
pub(crate) fn run(args: &Args, tools: &[Tool]) -> Result<(String, Value), String> {
    if !tools.iter().any(|tool| tool.own) {
        return Err(format!(
            "cannot run {}: build it with `make build`, or name it with --narrows",
            args.narrows.display()
        ));
    }
    let network = Network::up_for_frames(WORKERS)?;
    let bench = Bench { args, mac: network.mac(crate::network::End::Server)?, network };
    let rate = rate::measure(&bench);
    let pacing = pacing::measure(&bench);
    let text = format!("{}\n{}", rate_table::text(args, &rate), pacing_table::text(args, &pacing));
    let json = json!({
        "seconds": args.frame_seconds,
        "rate": rate_table::json(args, &rate),
        "pacing": pacing_table::json(&pacing),
    });
    Ok((text, json))
}

/// What all measurements of frames share.
struct Bench<'a> {
    args: &'a Args,
    network: Network,
    /// The Ethernet address of the receiving end.
    mac: String,
}
