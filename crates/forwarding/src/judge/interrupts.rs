//! Whether interrupts took the device's time from it: a note, and only by two witnesses.
//!
//! - **Receive livelock** (Mogul, Ramakrishnan: *Eliminating receive livelock in an interrupt-driven kernel*, ACM TOCS 15, 1997): a
//!   CPU spends all its time taking frames in, and so fewer leave the more come. Witnesses: the kernel's account of that CPU,
//!   and a forwarding rate that is a tenth below the one at a lower load. A tenth, because repetitions of router benchmarks
//!   differ by more than 5.6 % in one of ten groups.
//! - **Interrupt storm**: the CPU is as busy, and the device takes an interrupt for every second frame or more. A driver that
//!   polls (NAPI) takes next to none once a CPU is full, and moderation takes one for many frames. Witnesses: the kernel's
//!   account of the CPU, and its count of interrupts less what timers may have had.
//!
//! A device that shares its kernel with the tester is never judged: the interrupts are those of both.

use crate::data::{ForwardingRecord, ForwardingTrial};
use narrows_model::host::device_state::DeviceSeen;
use narrows_model::run::search::LoadTrial;

/// A CPU that spends so much of its time in interrupts has none left.
const FULL: f64 = 0.9;
const UNMODERATED: f64 = 0.5;
/// Of fewer frames the ratio says nothing.
const FEWEST_FRAMES: u64 = 10_000;
/// The fastest timer of a kernel, interrupts a second and CPU (`CONFIG_HZ`).
const TIMER_HZ: f64 = 1_000.0;
/// A forwarding rate below this part of the best rate at a lower load has fallen.
const FALLS: f64 = 0.9;

/// What interrupts did to a device at one size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterruptNote {
    /// Index into the plan's traffic.
    pub traffic: usize,
    /// Frame size with FCS; `None`: the mix.
    pub size: Option<u32>,
    /// A sentence with both witnesses.
    pub says: String,
}

/// The notes of a record: for each size and hop the first trial of each kind.
pub fn interrupt_notes(record: &ForwardingRecord) -> Vec<InterruptNote> {
    let mut found: Vec<(&'static str, &str, InterruptNote)> = Vec::new();
    for trial in &record.trials {
        for device in trial.devices.iter().filter(|device| !device.shared && device.silent.is_none()) {
            let Some(share) = device.interrupt_share().filter(|share| *share >= FULL) else { continue };
            let cpu = device.busiest.as_ref().map_or(0, |cpu| cpu.cpu);
            let busy = format!("CPU {cpu} of {} spent {:.0} % of the trial in interrupts", device.hop, share * 100.0);
            let notes = [("livelock", livelock(record, trial)), ("storm", unmoderated(device, trial))];
            for (kind, witness) in notes.into_iter().filter_map(|(kind, witness)| Some((kind, witness?))) {
                let (traffic, size) = (trial.traffic, trial.size);
                let known = |(other, hop, note): &(&str, &str, InterruptNote)| {
                    (*other, *hop, note.traffic, note.size) == (kind, device.hop.as_str(), traffic, size)
                };
                if !found.iter().any(known) {
                    let what = if kind == "storm" { "interrupt storm" } else { "receive livelock" };
                    let says = format!("{what}: {busy}, and {witness}");
                    found.push((kind, &device.hop, InterruptNote { traffic, size, says }));
                }
            }
        }
    }
    found.into_iter().map(|(_, _, note)| note).collect()
}

/// Whether more was forwarded at a lower load.
fn livelock(record: &ForwardingRecord, trial: &ForwardingTrial) -> Option<String> {
    let frames = trial.directions.first()?;
    let (offered, forwarded) = (frames.sent.sent_pps(), frames.got.received_pps());
    let searches = record.searches.iter().chain(&record.curves);
    let own = searches.filter(|of| (of.traffic, of.size) == (trial.traffic, trial.size));
    let both = trial.directions.len().max(1) as f64;
    let rate = |of: &LoadTrial| of.seen.received as f64 * 1e3 / of.duration_ms.max(1) as f64 / both;
    let lower = own.flat_map(|of| &of.record.trials).filter(|of| of.seen.invalid.is_none() && of.load_pps < offered);
    let best = lower.max_by(|a, b| rate(a).total_cmp(&rate(b)))?;
    (forwarded < rate(best) * FALLS && forwarded > 0.0).then(|| {
        format!(
            "it forwarded {forwarded:.0} frames/s of {offered:.0}, but {:.0} where only {:.0} came",
            rate(best),
            best.load_pps
        )
    })
}

/// Whether the device took an interrupt for every other frame.
fn unmoderated(device: &DeviceSeen, trial: &ForwardingTrial) -> Option<String> {
    let frames: u64 = trial.directions.iter().fold(0, |sum, it| sum.saturating_add(it.sent.sent()));
    if frames < FEWEST_FRAMES {
        return None;
    }
    let timers = TIMER_HZ * device.cpus as f64 * device.took_us as f64 / 1e6;
    let each = (device.interrupts? as f64 - timers) / frames as f64;
    (each >= UNMODERATED).then(|| format!("took {each:.2} interrupts a frame: it neither polls nor moderates them"))
}

#[cfg(test)]
mod tests {
    use super::super::testing::trial;
    use super::*;
    use crate::testing::plan;
    use narrows_model::load::host::CpuTimes;
    use narrows_model::run::search::{Observation, SearchPlan, SearchRecord};

    fn device(share: f64, interrupts: u64) -> DeviceSeen {
        let softirq_us = (share * 1e6) as u64;
        DeviceSeen {
            hop: "router".to_owned(),
            took_us: 1_000_000,
            interrupts: Some(interrupts),
            cpus: 4,
            busiest: Some(CpuTimes {
                cpu: 2,
                user_us: 0,
                system_us: 0,
                irq_us: 0,
                softirq_us,
                steal_us: 0,
                idle_us: 1_000_000 - softirq_us,
            }),
            ..DeviceSeen::default()
        }
    }

    /// A million frames in a second, of which so many came out, after a search in which 500,000 of as many did.
    fn record(received: u64, device: DeviceSeen) -> ForwardingRecord {
        let seen = Observation {
            intended: 500_000,
            offered: 500_000,
            sent: 500_000,
            received: 500_000,
            effective_ms: 1_000,
            ..Observation::default()
        };
        let lower = LoadTrial { load_pps: 500_000.0, duration_ms: 1_000, ended_at_ms: 0, seen };
        let (of, trials) = (SearchPlan::between(1.0, 1e6), vec![lower]);
        let search = SearchRecord { plan: of, trials, results: Vec::new(), spent: Vec::new() };
        ForwardingRecord {
            trials: vec![ForwardingTrial { devices: vec![device], ..trial(1_000_000, received, Vec::new()) }],
            searches: vec![crate::data::SearchOfSize {
                traffic: 0,
                size: Some(64),
                record: search,
                not_confirmed_pps: None,
            }],
            ..ForwardingRecord::of(plan())
        }
    }

    fn says(record: &ForwardingRecord) -> Vec<String> {
        interrupt_notes(record).into_iter().map(|note| note.says).collect()
    }

    #[test]
    fn both_witnesses_of_a_livelock_are_told() {
        assert_eq!(
            says(&record(200_000, device(0.97, 100))),
            [
                "receive livelock: CPU 2 of router spent 97 % of the trial in interrupts, and it forwarded 200000 frames/s of \
              1000000, but 500000 where only 500000 came"
            ]
        );
    }

    #[test]
    fn both_witnesses_of_a_storm_are_told_once() {
        let mut record = record(500_000, device(0.95, 804_000));
        record.trials.push(record.trials[0].clone());
        assert_eq!(
            says(&record),
            [
                "interrupt storm: CPU 2 of router spent 95 % of the trial in interrupts, and took 0.80 interrupts a frame: it neither \
              polls nor moderates them"
            ]
        );
    }

    #[test]
    fn one_witness_alone_accuses_nobody() {
        assert_eq!(says(&record(200_000, device(0.5, 100))), [""; 0], "the CPU has time left");
        assert_eq!(says(&record(490_000, device(0.97, 100))), [""; 0], "as much leaves as at a lower load");
        assert_eq!(says(&record(500_000, device(0.5, 900_000))), [""; 0], "many interrupts that cost little");
        let shared = DeviceSeen { shared: true, ..device(0.97, 900_000) };
        assert_eq!(says(&record(200_000, shared)), [""; 0], "the tester's interrupts are among them");
        let silent = DeviceSeen { silent: Some("no /proc".to_owned()), ..device(0.97, 900_000) };
        assert_eq!(says(&record(200_000, silent)), [""; 0]);
        let timers = DeviceSeen { cpus: 1_000, ..device(0.97, 900_000) };
        assert_eq!(says(&record(500_000, timers)), [""; 0], "timers of a thousand CPUs");
    }
}
