//! narrows itself, in three settings: as a user runs it, with everything sampled ten times a second, and with nothing sampled.

use super::{Moved, Tool, version, words};
use crate::network::SERVER;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The port of the one server that serves all three.
const PORT: u16 = 5220;

/// As a user runs it.
pub(super) fn plain(program: &Path) -> Result<Tool, PathBuf> {
    let serve = Some(words(&format!("serve --open --open-rate 1T --port {PORT}")));
    Ok(Tool { serve, ..setting(program, "narrows", |port, streams, seconds| ask(port, streams, seconds, ""))? })
}

/// All collectors, ten samples a second.
pub(super) fn sampling(program: &Path) -> Result<Tool, PathBuf> {
    setting(program, "narrows, 100 ms", |port, streams, seconds| ask(port, streams, seconds, "--interval 100ms"))
}

/// No collector at all.
pub(super) fn bare(program: &Path) -> Result<Tool, PathBuf> {
    setting(program, "narrows, bare", |port, streams, seconds| ask(port, streams, seconds, "--no-collect"))
}

fn setting(program: &Path, name: &'static str, ask: fn(u16, u32, u32) -> Vec<String>) -> Result<Tool, PathBuf> {
    Ok(Tool {
        name,
        version: version(program)?,
        own: true,
        program: program.to_owned(),
        port: PORT,
        serve: None,
        ask,
        read,
    })
}

fn ask(port: u16, streams: u32, seconds: u32, more: &str) -> Vec<String> {
    words(&format!("measure tcp {SERVER} --port {port} --streams {streams} --duration {seconds}s --format json {more}"))
}

fn read(json: &Value) -> Option<Moved> {
    let flow = json.pointer("/summary/flows/0/total")?;
    Some(Moved { bytes: flow.get("bytes")?.as_f64()?, goodput_bps: flow.get("goodput_bps")?.as_f64()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_summary_of_the_one_flow_counts() {
        let said = json!({"summary": {"flows": [{"total": {"bytes": 1000, "goodput_bps": 8000.0}}]}});
        assert_eq!(read(&said), Some(Moved { bytes: 1000.0, goodput_bps: 8000.0 }));
    }
}
