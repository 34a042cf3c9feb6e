//! How long the BPF programs of this machine run during a trial: the kernel counts it only while it is asked to, since that costs each
//! run two readings of the clock.
//!
//! The programs are those of the whole kernel: two hosts that are network namespaces of one machine see the same ones.
//!
//! Source: kernel `kernel/bpf/syscall.c`, `bpf_enable_stats` (Linux 5.8); `include/linux/filter.h`, `__bpf_prog_run`.

use crate::Missing;
use narrows_model::{Fact, FactKey, Unit, keys};
use narrows_sys::bpf_programs::{ProgramTime, Statistics, programs};
use std::cmp::Reverse;

/// The collector's id, as in [`narrows_model::Absent`].
pub const ID: &str = "bpf-programs";

/// Every fact that a watch provides.
pub const PROVIDES: &[FactKey] = &[keys::BPF_RUN_US, keys::BPF_PROGRAM_RUN_US, keys::BPF_PROGRAM_RUNS];

const SOURCE: &str = "bpf(BPF_OBJ_GET_INFO_BY_FD), run_time_ns";

/// So many programs have facts of their own: the most expensive.
const NAMED: usize = 3;

/// An instrument that runs during a trial: [`BpfWatch::start`] before it, [`BpfWatch::finish`] after it.
#[derive(Debug)]
pub struct BpfWatch {
    before: Vec<ProgramTime>,
    _statistics: Statistics,
}

/// Why it cannot run, and what would help.
fn cannot(error: &narrows_sys::Error) -> Missing {
    let why = match error.errno() {
        Some(1 | 13) => "it needs root (CAP_SYS_ADMIN) on the host itself, outside of a user namespace".to_owned(),
        Some(22 | 38) => "it needs Linux 5.8 with BPF".to_owned(),
        _ => error.to_string(),
    };
    Missing::Kernel { what: "the run time of BPF programs (BPF_ENABLE_STATS)".to_owned(), why }
}

impl BpfWatch {
    /// Has the kernel count.
    /// Errors: why it cannot.
    pub fn start() -> Result<Self, Missing> {
        let statistics = Statistics::enable().map_err(|error| cannot(&error))?;
        let before = programs().map_err(|error| cannot(&error))?;
        Ok(Self { before, _statistics: statistics })
    }

    /// Ends it: the run time of all programs, and of the most expensive ones with the number of their runs.
    pub fn finish(self) -> Vec<Fact> {
        programs().map_or_else(|_| Vec::new(), |after| facts(&grown(&self.before, after)))
    }
}

/// What the programs ran since; one that is new has run since it was loaded.
fn grown(before: &[ProgramTime], mut after: Vec<ProgramTime>) -> Vec<ProgramTime> {
    for now in &mut after {
        if let Some(then) = before.iter().find(|then| then.id == now.id) {
            now.run_ns = now.run_ns.saturating_sub(then.run_ns);
            now.runs = now.runs.saturating_sub(then.runs);
        }
    }
    after.sort_by_key(|program| Reverse(program.run_ns));
    after
}

/// The facts of programs, the most expensive first.
fn facts(programs: &[ProgramTime]) -> Vec<Fact> {
    let fact =
        |key: String, count: u64| Fact { key, value: count.into(), unit: Unit::Count, source: SOURCE.to_owned() };
    let total_ns = programs.iter().fold(0_u64, |sum, program| sum.saturating_add(program.run_ns));
    let mut facts = vec![fact(keys::BPF_RUN_US.name.to_owned(), total_ns / 1000)];
    for program in programs.iter().filter(|program| program.runs > 0).take(NAMED) {
        // The kernel takes letters, digits, underscores and dots.
        let plain = program.name.chars().filter(|c| c.is_ascii_alphanumeric() || "._".contains(*c));
        let name: String = format!("{}.{}.", program.id, program.kind).chars().chain(plain).collect();
        facts.push(fact(format!("bpf.run_us.{name}"), program.run_ns / 1000));
        facts.push(fact(format!("bpf.runs.{name}"), program.runs));
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(id: u32, name: &str, run_us: u64, runs: u64) -> ProgramTime {
        ProgramTime { id, kind: "xdp", name: name.to_owned(), run_ns: run_us * 1000, runs }
    }

    #[test]
    fn the_most_expensive_programs_of_a_trial_are_named() {
        let before = [program(3, "a", 900, 50), program(7, "agent", 100, 10)];
        let after = vec![
            program(3, "a", 950, 60),
            program(7, "agent", 5_100, 510),
            program(9, "new one", 70, 7),
            program(11, "", 60, 6),
            program(12, "idle", 0, 0),
        ];
        let facts = facts(&grown(&before, after));
        let told: Vec<(&str, Option<f64>)> =
            facts.iter().map(|fact| (fact.key.as_str(), fact.value.as_f64())).collect();
        let expected = [
            ("bpf.run_us", 5_180.0),
            ("bpf.run_us.7.xdp.agent", 5_000.0),
            ("bpf.runs.7.xdp.agent", 500.0),
            ("bpf.run_us.9.xdp.newone", 70.0),
            ("bpf.runs.9.xdp.newone", 7.0),
            ("bpf.run_us.11.xdp.", 60.0),
            ("bpf.runs.11.xdp.", 6.0),
        ];
        assert_eq!(told, expected.map(|(key, n)| (key, Some(n))));
        let provided = |key: &str| PROVIDES.iter().any(|provided| provided.covers(key));
        assert!(told.iter().all(|(key, _)| provided(key)));
    }
}
