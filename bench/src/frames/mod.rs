//! Raw frames over a plain veth pair with several queues: the highest rate of minimum-size frames against other generators
//! and against a pair of empty programs, which is the machine's limit; then the pacing in each mode.

mod bare;
mod own;
mod pacing;
mod pacing_table;
mod peers;
mod rate;
mod rate_table;
mod setup;

use crate::args::Args;
use crate::network::Network;
use crate::tools::Tool;
use serde_json::{Value, json};
use setup::{Bench, WORKERS};

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
        "seconds": args.frame_seconds(),
        "rate": rate_table::json(args, &rate),
        "pacing": pacing_table::json(&pacing),
    });
    Ok((text, json))
}
