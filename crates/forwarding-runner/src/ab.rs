//! The same benchmark with two configurations of the device, interleaved.
//!
//! Before anything is measured the device is switched to either configuration once: a command that fails, or a fault that the
//! lab's kernel does not support, is reported at once, not after the first run. On success, on error and on Ctrl-C alike, the
//! active configuration is rolled back.

use crate::{Event, ForwardingError, HostAccess, Watch, command, run};
use narrows_forwarding::data::ab::{AbRecord, AbRunRecord, DeviceConfiguration, ForwardingAb, Side, SwitchStep};
use narrows_lab::{Labs, Site, faults};
use narrows_model::Direction;
use narrows_sys::clock;
use narrows_traffic::Stop;
use std::time::Duration;

/// The environment variable that names the lab whose faults a configuration may use.
const LAB: &str = "NARROWS_LAB";
/// The longest that one command may take.
const COMMAND: Duration = Duration::from_secs(300);

/// Problems with the configurations, one sentence each; empty if there are none. Changes nothing.
pub fn check_pair(ab: &ForwardingAb) -> Vec<String> {
    let mut wrong = Vec::new();
    for side in [Side::A, Side::B] {
        let configuration = ab.configuration(side);
        for step in &configuration.steps {
            let SwitchStep::Fault { id, value } = step else { continue };
            let value = (!value.is_empty()).then_some(value.as_str());
            if let Err(why) = faults::find(id).and_then(|fault| fault.value(Site::Router, value)) {
                wrong.push(format!("{}, `{}`: {why}", side.word(), configuration.name));
            }
        }
    }
    if !ab.faults().is_empty() && lab().is_none() {
        wrong.push(format!(
            "a configuration has lab faults, but no lab is named: run `narrows lab exec NAME tester narrows rfc2544 \
            …`, or set {LAB}"
        ));
    }
    wrong
}

fn lab() -> Option<String> {
    std::env::var(LAB).ok().filter(|name| !name.is_empty())
}

/// The device as it is switched.
struct Device<'a> {
    ab: &'a ForwardingAb,
    /// Which configuration it is in, or was on the way to.
    at: Option<Side>,
}

impl Device<'_> {
    /// To a configuration, from whatever it is in.
    fn switch(&mut self, side: Side) -> Result<(), ForwardingError> {
        if self.at == Some(side) {
            return Ok(());
        }
        self.leave()?;
        self.at = Some(side);
        let configuration = self.ab.configuration(side);
        for (nth, step) in (1..).zip(&configuration.steps) {
            match step {
                SwitchStep::Command { words } => run_one(configuration, "to", &format!("command {nth}"), words)?,
                SwitchStep::Fault { id, value } => {
                    let refused = |why: String| failed(configuration, "to", &format!("fault {id}"), why);
                    let lab = lab().ok_or_else(|| refused(format!("set {LAB} to the name of the lab")))?;
                    let value = (!value.is_empty()).then_some(value.as_str());
                    let put_in = Labs::of_user().fault(&lab, id, Site::Router, value, Direction::Up);
                    put_in.map_err(|error| refused(error.to_string()))?;
                }
            }
        }
        Ok(())
    }

    /// Leaves the current configuration: rolls back its commands, and the faults of either configuration. A fault that belongs to neither
    /// stays.
    fn leave(&mut self) -> Result<(), ForwardingError> {
        let left = self.at.take().map(|side| self.ab.configuration(side));
        let undone = left.map_or(Ok(()), |configuration| {
            (1..)
                .zip(&configuration.undo)
                .try_for_each(|(nth, words)| run_one(configuration, "back from", &format!("undo {nth}"), words))
        });
        undone.and(self.faults_out())
    }

    fn faults_out(&self) -> Result<(), ForwardingError> {
        let (own, Some(lab)) = (self.ab.faults(), lab()) else { return Ok(()) };
        if own.is_empty() {
            return Ok(());
        }
        let labs = Labs::of_user();
        let failed = |error: narrows_lab::Error| ForwardingError::Switch {
            way: "back from",
            configuration: own.join(", "),
            step: format!("the faults of lab {lab}"),
            why: error.to_string(),
        };
        let status = labs.status(&lab).map_err(failed)?;
        let ours = status.faults.iter().filter(|fault| fault.at == Site::Router && own.contains(&fault.id.as_str()));
        ours.map(|fault| labs.unfault(&lab, &fault.id, Some(Site::Router)).map(drop).map_err(failed))
            .fold(Ok(()), Result::and)
    }

    /// At the end: rolls back the active configuration; where B cannot roll itself back, A's steps are run instead.
    fn restore(&mut self) -> Result<(), ForwardingError> {
        let commands = |side: Side| {
            let steps = &self.ab.configuration(side).steps;
            steps.iter().any(|step| matches!(step, SwitchStep::Command { .. }))
        };
        if self.at == Some(Side::B) && commands(Side::B) && self.ab.b.undo.is_empty() {
            self.switch(Side::A)?;
        }
        self.leave()
    }
}

fn run_one(
    configuration: &DeviceConfiguration,
    way: &'static str,
    step: &str,
    words: &[String],
) -> Result<(), ForwardingError> {
    // Of its further words one may be a password.
    let program = words.first().map_or("", String::as_str);
    command::run(words, COMMAND, None).map_err(|why| failed(configuration, way, &format!("{step}, `{program}`"), why))
}

fn failed(configuration: &DeviceConfiguration, way: &'static str, step: &str, why: String) -> ForwardingError {
    ForwardingError::Switch { way, configuration: configuration.name.clone(), step: step.to_owned(), why }
}

/// Runs the plan with A and B in turns. `keep` gets what was measured so far after each run.
/// Errors: a step to a configuration failed before anything was measured, or the tester's ports cannot be used.
pub fn measure_pair(
    ab: &ForwardingAb,
    hosts: &HostAccess,
    stop: &Stop,
    watch: Watch<'_>,
    keep: &mut dyn FnMut(&AbRecord),
) -> Result<AbRecord, ForwardingError> {
    let mut record = AbRecord { ab: ab.clone(), measured: Vec::new(), ended: None, remarks: Vec::new() };
    let mut device = Device { ab, at: None };
    let outcome = in_turns(&mut device, &mut record, hosts, stop, watch, keep);
    watch(Event::Says("roll back the device"));
    if let Err(why) = device.restore() {
        let says = format!("cannot roll back the device: {why}; restore it by hand");
        watch(Event::Says(&says));
        record.remarks.push(says);
    }
    match outcome {
        Err(why) if record.measured.is_empty() => return Err(why),
        Err(why) => record.ended = Some(why.to_string()),
        Ok(()) if stop.is_set() => record.ended = Some("interrupted".to_owned()),
        Ok(()) => {}
    }
    keep(&record);
    Ok(record)
}

fn in_turns(
    device: &mut Device<'_>,
    record: &mut AbRecord,
    hosts: &HostAccess,
    stop: &Stop,
    watch: Watch<'_>,
    keep: &mut dyn FnMut(&AbRecord),
) -> Result<(), ForwardingError> {
    let ab = device.ab;
    watch(Event::Says("trying each configuration once"));
    for side in [Side::B, Side::A] {
        if stop.is_set() {
            return Ok(());
        }
        device.switch(side)?;
    }
    let began = clock::now();
    let (order, mut settled) = (ab.order(), None);
    for (nth, side) in (1..).zip(&order) {
        if stop.is_set() {
            break;
        }
        let name = &ab.configuration(*side).name;
        watch(Event::Says(&format!("run {nth} of {}, {}: {name}", order.len(), side.word())));
        device.switch(*side)?;
        if settled != Some(*side) {
            clock::sleep(Duration::from_millis(ab.settle_ms));
            settled = Some(*side);
        }
        let at_ms = clock::micros_since(began) / 1000;
        let measured = run(&ab.plan, hosts, stop, &mut |event| watch(event))?;
        let ended = measured.ended.clone();
        record.measured.push(AbRunRecord { side: *side, at_ms, record: measured });
        // The end of the record if no further run completes.
        record.ended = Some(format!("partial record: {nth} of {} runs", order.len()));
        keep(record);
        record.ended = None;
        if let Some(why) = ended.filter(|_| !stop.is_set()) {
            record.ended = Some(format!("run {nth}: {why}"));
            break;
        }
    }
    Ok(())
}
