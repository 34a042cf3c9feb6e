//! iperf3, as packaged, with its defaults.

use super::{Moved, Tool, version, words};
use crate::network::SERVER;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// iperf3, or the program that cannot be run.
pub(super) fn tool(program: &Path) -> Result<Tool, PathBuf> {
    Ok(Tool {
        name: "iperf3",
        version: version(program)?,
        own: false,
        program: program.to_owned(),
        port: 5201,
        serve: Some(words("-s -p 5201")),
        ask: |port, streams, seconds| words(&format!("-c {SERVER} -p {port} -P {streams} -t {seconds} -J")),
        read,
    })
}

fn read(json: &Value) -> Option<Moved> {
    let sum = json.pointer("/end/sum_received")?;
    Some(Moved { bytes: sum.get("bytes")?.as_f64()?, goodput_bps: sum.get("bits_per_second")?.as_f64()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_receivers_sum_counts() {
        let said = json!({"end": {"sum_sent": {"bytes": 9}, "sum_received": {"bytes": 7, "bits_per_second": 28.0}}});
        assert_eq!(read(&said), Some(Moved { bytes: 7.0, goodput_bps: 28.0 }));
        assert_eq!(read(&json!({"error": "unable to connect"})), None);
    }
}
