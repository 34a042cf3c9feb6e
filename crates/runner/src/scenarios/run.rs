//! Runs a case: its own lab, the faults, the server, and `narrows diagnose` as a user runs it.

use super::{Case, Diagnosed};
use crate::demo::{Stage, StageError};
use narrows_lab::LabSpec;
use narrows_model::lab::Impairment;
use narrows_model::{Direction, Report};
use narrows_sys::{clock, process};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

/// The load of a case: long enough to leave slow start on the longest path of the suite.
const LOAD: [&str; 4] = ["--duration", "5s", "--omit", "1500ms"];

/// Runs a case and returns its diagnosis.
pub fn run(case: &Case, keep: Option<&Path>) -> Result<Diagnosed, StageError> {
    let way = Impairment {
        rate_bps: case.rate_bps,
        delay_us: case.rtt_us / 2,
        queue_packets: case.queue_packets,
        ..Impairment::default()
    };
    let spec = LabSpec { name: "bank".to_owned(), up: way.clone(), down: way, ..LabSpec::default() };
    let stage = Stage::up(&spec, &["--parallel", "4"])?;
    for fault in &case.faults {
        stage.lab.fault(&fault.id, fault.at, fault.value.as_deref(), Direction::Both)?;
    }
    let mut other_load = start_other_load(case, &stage)?;
    let family = if case.ipv6 { "--ipv6" } else { "--ipv4" };
    let mut words = vec!["diagnose", "server", "--format", "json", "--quiet", "--exit-zero", family];
    words.extend(["--direction", case.flow.direction().word()]);
    if !case.args.iter().any(|word| word == "--bytes") {
        words.extend(LOAD);
    }
    words.extend(case.args.iter().map(String::as_str));
    let mut command = stage.client(&words)?;
    if let Some(file) = keep {
        command.arg("--output").arg(file);
    }
    let output = command.output();
    for one in &mut other_load {
        let _ = one.kill();
        let _ = one.wait();
    }
    let output = output.map_err(|error| StageError::Start("the diagnosis", error))?;
    let report: Report = serde_json::from_slice(&output.stdout).map_err(|_| {
        StageError::Failed("the diagnosis", String::from_utf8_lossy(&output.stderr).trim().chars().take(400).collect())
    })?;
    Ok(said(report))
}

/// The diagnosis of a saved run by today's rules.
pub fn again(kept: &Path) -> Result<Diagnosed, StageError> {
    let run = crate::stored::load(kept)?;
    crate::report(&run)
        .map(said)
        .ok_or_else(|| StageError::Failed("the diagnosis", "its run holds no measurement".to_owned()))
}

fn said(report: Report) -> Diagnosed {
    Diagnosed {
        status: report.verdict.status,
        causes: report.verdict.causes.into_iter().map(|cause| (cause.id, cause.at)).collect(),
        goodput_bps: report.verdict.goodput_bps,
    }
}

/// Starts the other load of a case: busy loops on cores, other clients. All end with this process.
fn start_other_load(case: &Case, stage: &Stage) -> Result<Vec<Child>, StageError> {
    let mut other_load = Vec::new();
    for _ in 0..case.busy_cores {
        let mut spin = process::bound_command("/bin/sh");
        spin.args(["-c", "while :; do :; done"]);
        other_load.push(spin.spawn().map_err(|error| StageError::Start("a busy loop", error))?);
    }
    for _ in 0..case.neighbours {
        let mut other = stage.client(&["measure", "tcp", "server", "--duration", "30s", "--quiet"])?;
        let other = other.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        other_load.push(other.map_err(|error| StageError::Start("a neighbour", error))?);
    }
    if !other_load.is_empty() {
        // The other load must be steady before the baseline starts.
        clock::sleep(Duration::from_secs(2));
    }
    Ok(other_load)
}
