//! Pacing of frames: achieved against requested rate in each send mode, and the distribution of gaps.

use super::own::{self, Both, Family};
use super::setup::Bench;

const RATES_PPS: [u32; 4] = [100_000, 1_000_000, 5_000_000, 10_000_000];
/// The send modes, best first.
pub(super) const MODES: [&str; 3] = ["live-frames", "af-xdp", "af-packet"];

pub(super) struct AtRate {
    pub(super) pps: f64,
    /// In the order of [`MODES`]; the error if it did not run.
    pub(super) modes: Vec<Result<Both, String>>,
}

pub(super) fn measure(bench: &Bench<'_>) -> Vec<AtRate> {
    let seconds = bench.args.frame_seconds();
    let mut results = Vec::new();
    for pps in RATES_PPS {
        let mut one = |mode: &&str| {
            eprint!("\rbench: frames, pacing at {:>4} Mpps: {mode:<16}", f64::from(pps) / 1e6);
            let send = format!("--rate {pps}pps --mode {mode}");
            own::trial(bench, Family::Ipv4, seconds, &send, "--gaps")
                .inspect_err(|why| eprintln!("\nbench: {mode} at {pps} frames a second: {why}"))
        };
        results.push(AtRate { pps: pps.into(), modes: MODES.iter().map(&mut one).collect() });
    }
    eprintln!();
    results
}
