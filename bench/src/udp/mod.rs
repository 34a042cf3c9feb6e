//! UDP: the highest rate without loss, and how many datagrams a CPU second receives, for each size.

mod search;
mod table;
pub(crate) mod trial;

use crate::args::Args;
use crate::network::Network;
use crate::tools::{Load, Server, Tool};
use search::{Outcome, Rules, Search};
use serde_json::{Value, json};
use trial::Trial;

struct Record {
    search: Search,
    trials: Vec<Trial>,
    /// The trials at the rate that is common to all tools.
    common: Vec<Trial>,
}

struct Sized {
    bytes: u32,
    /// The rate that is common to all tools; `None` if none has a rate without loss.
    common: Option<Load>,
    records: Vec<Record>,
}

pub(crate) fn run(args: &Args, tools: &[Tool]) -> Result<(String, Value), String> {
    let tools: Vec<&Tool> = tools.iter().filter(|tool| tool.udp.is_some()).collect();
    let network = Network::up()?;
    network.segment_udp_in_software()?;
    let servers = tools.iter().map(|tool| Server::start(tool, &network)).collect::<Result<Vec<_>, _>>()?;
    let bench = Bench { args, tools: &tools, servers: &servers, network: &network };
    let results: Vec<Sized> = args.sizes.iter().map(|bytes| bench.size(*bytes)).collect();
    let rules = rules(args);
    Ok((
        table::text(&rules, &tools, &results),
        json!({
            "rules": {
                "probe_seconds": rules.probe_seconds, "trial_seconds": rules.trial_seconds,
                "passes": rules.passes, "tries": rules.tries, "trials_max": rules.trials_max,
            },
            "results": results.iter().map(|sized| table::json(&tools, sized)).collect::<Vec<_>>(),
        }),
    ))
}

fn rules(args: &Args) -> Rules {
    let (passes, tries, trials_max) = if args.quick { (1, 2, 6) } else { (2, 3, 12) };
    Rules { probe_seconds: 1, trial_seconds: args.seconds(), passes, tries, trials_max }
}

struct Bench<'a> {
    args: &'a Args,
    tools: &'a [&'a Tool],
    servers: &'a [Server],
    network: &'a Network,
}

impl Bench<'_> {
    fn size(&self, bytes: u32) -> Sized {
        let new = || Record { search: Search::new(rules(self.args)), trials: Vec::new(), common: Vec::new() };
        let mut records: Vec<Record> = self.tools.iter().map(|_| new()).collect();
        // In turn, one trial of each tool that is not done.
        let mut busy = true;
        while busy {
            busy = false;
            for (index, record) in records.iter_mut().enumerate() {
                let Some(next) = record.search.next() else { continue };
                busy = true;
                let trial = self.trial(index, load(bytes, next.pps, next.seconds));
                record
                    .search
                    .note(trial.map(|trial| Outcome { pps: trial.heard.pps(), lossless: trial.heard.lost <= 0.0 }));
                record.trials.extend(trial);
            }
        }
        let lowest = records.iter().filter_map(|record| Some(record.search.confirmed()?.pps)).reduce(f64::min);
        let common = lowest.map(|pps| load(bytes, 0.7 * pps, self.args.seconds()));
        if let Some(load) = common {
            for _ in 0..self.args.rounds().min(3) {
                for (index, record) in records.iter_mut().enumerate() {
                    record.common.extend(self.trial(index, load));
                }
            }
        }
        eprintln!();
        Sized { bytes, common, records }
    }

    /// One trial; a failure is reported.
    fn trial(&self, index: usize, load: Load) -> Option<Trial> {
        let tool = self.tools[index];
        eprint!("\rbench: udp, {} B at {:>10.1} Mbit/s: {:<16}", load.bytes, load.bps as f64 / 1e6, tool.name);
        match Trial::run(tool, &self.servers[index], self.network, load) {
            Ok(trial) => Some(trial),
            Err(sentence) => {
                eprintln!("\nbench: {sentence}");
                None
            }
        }
    }
}

fn load(bytes: u32, pps: f64, seconds: u32) -> Load {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // positive, below 2^40
    let bps = (pps * f64::from(bytes) * 8.0).round() as u64;
    Load { bps, bytes, seconds }
}
