//! xfr, with its defaults (zero copy is one of them).

use super::{Moved, Tool, version, words};
use crate::network::SERVER;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// xfr, or the program that cannot be run.
pub(super) fn tool(program: &Path) -> Result<Tool, PathBuf> {
    Ok(Tool {
        name: "xfr",
        version: version(program)?,
        own: false,
        program: program.to_owned(),
        port: 5202,
        serve: Some(words("serve --no-mdns -p 5202")),
        ask: |port, streams, seconds| {
            words(&format!("{SERVER} -p {port} -P {streams} -t {seconds}s --json --no-tui --no-update-check"))
        },
        read,
    })
}

fn read(json: &Value) -> Option<Moved> {
    let bytes = json.get("bytes_total")?.as_f64()?;
    let seconds = json.get("duration_ms")?.as_f64().filter(|ms| *ms > 0.0)? / 1e3;
    Some(Moved { bytes, goodput_bps: bytes * 8.0 / seconds })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn goodput_is_bytes_over_time() {
        let said = json!({"bytes_total": 1_000_000, "duration_ms": 2000, "throughput_mbps": 4.0});
        assert_eq!(read(&said), Some(Moved { bytes: 1e6, goodput_bps: 4e6 }));
        assert_eq!(read(&json!({"bytes_total": 1, "duration_ms": 0})), None);
    }
}
