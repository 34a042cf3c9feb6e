//! The same benchmark with two configurations of the device, interleaved.

use super::{Event, ForwardingError, Reach, Watch, run};
use narrows_lab::{Labs, Site};
use narrows_model::Direction;
use narrows_model::forwarding_ab::{AbRow, AbRun, DeviceConfiguration, ForwardingAb, SwitchStep, ThroughputOfSize};
use narrows_search::procedures::throughput;
use narrows_sys::{clock, process};
use narrows_traffic::Stop;
use std::time::Duration;

/// The environment variable that names the lab whose faults a configuration may use.
const LAB: &str = "NARROWS_LAB";

/// Runs the plan with A and B in turns, and compares.
///
/// # Errors
/// A step to a configuration failed, or the tester's ports cannot be used.
pub fn compare(ab: &ForwardingAb, reach: &Reach, stop: &Stop, watch: Watch<'_>) -> Result<Vec<AbRow>, ForwardingError> {
    let began = clock::now();
    let mut runs = Vec::new();
    let mut last = None;
    for side in ab.order() {
        if stop.is_set() {
            break;
        }
        let configuration = ab.configuration(side);
        if last != Some(side) {
            watch(Event::Says(&format!("{}: {}", side.word(), configuration.name)));
            switch(configuration)?;
            clock::sleep(Duration::from_millis(ab.settle_ms));
            last = Some(side);
        }
        let at_ms = clock::micros_since(began) / 1000;
        let record = run(&ab.plan, reach, stop, &mut |event| watch(event))?;
        if let Some(why) = &record.ended {
            watch(Event::Says(&format!("this run ended early: {why}")));
        }
        let found = |search: &narrows_model::forwarding::SearchOfSize| {
            let (pps, at_least) = search.record.results.first().and_then(throughput::found)?;
            Some(ThroughputOfSize { traffic: search.traffic, size: search.size, pps, at_least })
        };
        runs.push(AbRun { side, at_ms, throughputs: record.searches.iter().filter_map(found).collect() });
    }
    switch(&ab.a)?;
    Ok(narrows_diagnose::forwarding::compare(&runs))
}

fn failed(step: &str, why: impl std::fmt::Display) -> ForwardingError {
    ForwardingError::Switch { step: step.to_owned(), why: why.to_string() }
}

fn switch(configuration: &DeviceConfiguration) -> Result<(), ForwardingError> {
    let lab = std::env::var(LAB).ok();
    if let Some(lab) = &lab {
        let labs = Labs::of_user();
        let status = labs.status(lab).map_err(|error| failed("all faults out", error))?;
        for fault in &status.faults {
            labs.unfault(lab, &fault.id, None).map_err(|error| failed(&fault.id, error))?;
        }
    }
    for step in &configuration.steps {
        match step {
            SwitchStep::Command { words } => {
                let Some((program, rest)) = words.split_first() else { continue };
                let status = process::bound_command(program).args(rest).status();
                let status = status.map_err(|error| failed(program, error))?;
                if !status.success() {
                    return Err(failed(program, status));
                }
            }
            SwitchStep::Fault { id, value } => {
                let lab = lab.as_ref().ok_or_else(|| failed(id, format!("name the lab in the variable {LAB}")))?;
                let value = (!value.is_empty()).then_some(value.as_str());
                let labs = Labs::of_user();
                labs.fault(lab, id, Site::Router, value, Direction::Up).map_err(|error| failed(id, error))?;
            }
        }
    }
    Ok(())
}
