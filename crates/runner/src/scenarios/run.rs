//! Runs a case: its own lab, the faults, the server, and `narrows diagnose` as a user runs it.

use super::{Case, Diagnosed, Drawn, DrawnPart, DrawnResult, Interventions};
use crate::demo::{Stage, StageError};
use crate::stored;
use narrows_lab::LabSpec;
use narrows_model::{CpuTimes, Direction, MeasureReport, MeasureUdpReport, Report};
use narrows_sys::{clock, files, process, sysctl};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

/// The load of a case: long enough to leave slow start on the longest path of the suite.
const LOAD: [&str; 4] = ["--duration", "5s", "--omit", "1500ms"];

/// Runs a case and returns its diagnosis.
pub fn run(case: &Case, keep: Option<&Path>) -> Result<Diagnosed, StageError> {
    let stage = stage(case, &[])?;
    let mut other_load = start_other_load(case, &stage)?;
    let load: &[&str] = if case.args.iter().any(|word| word == "--bytes") { &[] } else { &LOAD };
    let said = diagnose(&stage, case, load, keep);
    for one in &mut other_load {
        let _ = one.kill();
        let _ = one.wait();
    }
    said
}

/// Parameters of both hosts with room for any path that is drawn, so that no default is what limits.
const ROOM: [(&str, &str); 2] =
    [("net.ipv4.tcp_rmem", "4096 131072 67108864"), ("net.ipv4.tcp_wmem", "4096 16384 67108864")];

/// A lab with a case's path, faults and server; `settings` are those of both hosts.
fn stage(case: &Case, settings: &[(&str, &str)]) -> Result<Stage, StageError> {
    let [up, down] = case.ways.clone();
    let name = "bank".to_owned();
    let spec = LabSpec { name, up, down, ..LabSpec::default() };
    let stage = Stage::up(&spec, &["--parallel", "4"])?;
    for host in stage.lab.hosts() {
        host.run(|| settings.iter().try_for_each(|(key, value)| sysctl::write(key, value)))??;
    }
    for fault in &case.faults {
        stage.lab.fault(&fault.id, fault.at, fault.value.as_deref(), Direction::Both)?;
    }
    Ok(stage)
}

/// The words of a case's load, after those of the command.
fn words<'a>(case: &'a Case, command: &[&'a str]) -> Vec<&'a str> {
    let family = if case.ipv6 { "--ipv6" } else { "--ipv4" };
    let mut words = [command, &["server", "--format", "json", "--quiet", family]].concat();
    words.extend(["--direction", case.flow.direction().word()]);
    words
}

fn diagnose(stage: &Stage, case: &Case, load: &[&str], keep: Option<&Path>) -> Result<Diagnosed, StageError> {
    let mut words = words(case, &["diagnose"]);
    words.push("--exit-zero");
    words.extend(load);
    words.extend(case.args.iter().map(String::as_str));
    let mut command = stage.client(&words)?;
    if let Some(file) = keep {
        command.arg("--output").arg(file);
    }
    let began = clock::now();
    let output = command.output().map_err(|error| StageError::Start("the diagnosis", error))?;
    let report: Report = serde_json::from_slice(&output.stdout).map_err(|_| {
        StageError::Failed("the diagnosis", String::from_utf8_lossy(&output.stderr).trim().chars().take(400).collect())
    })?;
    Ok(said(report, began.elapsed().as_secs_f64()))
}

/// Runs a drawn case as users would, then finds out what is true of it: plain loads with everything, without each part, and without all.
pub fn run_drawn(drawn: &Drawn, keep: Option<&Path>) -> Result<DrawnResult, StageError> {
    let case = &drawn.case;
    let before = narrows_collect::cpu_times();
    let stage = stage(case, &ROOM)?;
    let said = diagnose(&stage, case, &[], keep);
    let udp = case.args.iter().any(|word| word == "--udp");
    let lab = &stage.lab;
    let inject = |part: &DrawnPart| match &part.fault {
        Some(fault) => lab.fault(&fault.id, fault.at, fault.value.as_deref(), Direction::Both).map(drop),
        None => Ok(()),
    };
    let remove = |part: &DrawnPart| match &part.fault {
        Some(fault) => lab.unfault(&fault.id, Some(fault.at.into())).map(drop),
        None => Ok(()),
    };
    // A pause of the machine ends slow start early: a load that gets less than the one before it with more in its way is made again.
    let figure = |without: &[&DrawnPart], least: f64| {
        let first = plain(&stage, case, udp, without)?;
        if udp || first >= AGREES * least {
            Ok(first)
        } else {
            plain(&stage, case, udp, without).map(|again| again.max(first))
        }
    };
    let with = figure(&[], said.as_ref().map_or(0.0, |said| said.goodput_bps))?;
    let mut without = Vec::new();
    for part in &drawn.parts {
        remove(part)?;
        let bps = figure(&[part], with)?;
        inject(part)?;
        without.push((part.cause.0.clone(), part.cause.1, bps));
    }
    let clean = match &without[..] {
        [] => with,
        [(.., only)] => *only,
        _ => {
            drawn.parts.iter().try_for_each(remove)?;
            figure(&drawn.parts.iter().collect::<Vec<_>>(), with)?
        }
    };
    let result = DrawnResult {
        drawn: drawn.clone(),
        truth: Interventions { udp, with, without, clean, stolen: stolen_since(&before) },
        said: said.map_err(|why| why.to_string()),
    };
    if let Some(file) = keep {
        let text = serde_json::to_vec_pretty(&result.truth).unwrap_or_default();
        files::write_whole(&truth_file(file), &text, 0o644)?;
    }
    Ok(result)
}

/// The part of the time of all CPUs that was stolen since then.
fn stolen_since(before: &[CpuTimes]) -> f64 {
    let now = narrows_collect::cpu_times();
    let grown = now.iter().zip(before).map(|(now, before)| now.since(before));
    let [stolen, all] = grown.fold([0, 0], |[stolen, all], time| [stolen + time.steal_us, all + time.total_us()]);

    stolen as f64 / all.max(1) as f64
}

/// Makes the directory for runs that are kept.
pub fn make_directory(path: &Path) -> Result<(), StageError> {
    Ok(files::make_public_directory(path)?)
}

/// Two loads of one path agree within this part.
const AGREES: f64 = 0.85;

/// A drawn case that was kept, by today's rules.
pub fn drawn_again(drawn: &Drawn, kept: &Path) -> Result<DrawnResult, StageError> {
    let text = files::read(&truth_file(kept), 1 << 20)?;
    let truth = serde_json::from_slice(&text)
        .map_err(|error| StageError::Failed("the truth of a saved case", error.to_string()))?;
    Ok(DrawnResult { drawn: drawn.clone(), truth, said: again(kept).map_err(|why| why.to_string()) })
}

/// Beside `x.run.json`: `x.truth.json`.
fn truth_file(run: &Path) -> std::path::PathBuf {
    run.with_extension("").with_extension("truth.json")
}

/// What a plain load gets through without these parts: goodput, or of UDP the part that was lost.
fn plain(stage: &Stage, case: &Case, udp: bool, without: &[&DrawnPart]) -> Result<f64, StageError> {
    // Slow start takes a dozen round trips, and CUBIC some seconds more on a long path.
    let omit = format!("{}ms", 1_000 + 20 * case.rtt_us() / 1_000);
    let mut words = words(case, &["measure", if udp { "udp" } else { "tcp" }]);
    words.extend(["--duration", "5s", "--omit", &omit]);
    let left_out: Vec<&String> = without.iter().flat_map(|part| &part.args).collect();
    let args = case.args.iter().filter(|word| !left_out.contains(word));
    // `diagnose --udp RATE` is `measure udp --bandwidth RATE`.
    words.extend(args.map(|word| if word == "--udp" { "-b" } else { word.as_str() }));
    if udp {
        let report: MeasureUdpReport = stage.report("a plain load", &words)?;
        return Ok(report.summary.flows.first().and_then(|flow| flow.total.received.as_ref()?.loss).unwrap_or(1.0));
    }
    let report: MeasureReport = stage.report("a plain load", &words)?;
    Ok(report.summary.flows.first().map_or(0.0, |flow| flow.total.goodput_bps))
}

/// The diagnosis of a saved run by today's rules.
pub fn again(kept: &Path) -> Result<Diagnosed, StageError> {
    let run = stored::load(kept, stored::OWN)?;
    crate::report(&run)
        .map(|report| said(report, run.elapsed_us as f64 / 1e6))
        .ok_or_else(|| StageError::Failed("the diagnosis", "its run holds no measurement".to_owned()))
}

fn said(report: Report, seconds: f64) -> Diagnosed {
    let first = report.verdict.causes.first();
    Diagnosed {
        seconds,
        confidence: first.map(|cause| cause.confidence),
        witnesses: first.map_or(0, |cause| cause.witnesses.len()),
        predicted: first.and_then(|cause| Some((cause.predicted_bps?, cause.predicted_interval_bps?))),
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
