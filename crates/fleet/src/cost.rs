//! What a fleet costs: tests, bytes and time of a day, before anything runs.

use crate::plan::{Fleet, Kind, MINUTES, Test};
use crate::schedule::{BESIDE_MS, Schedule};

/// Probes of a path keep to this rate with their answers, bit/s.
pub const PROBE_BPS: u64 = 20_000;

/// What is stored of a test, bytes: its figures, its verdict if it has one, and its share of the indexes.
pub const STORED_BYTES: u64 = 400;

/// What a test of a mesh costs.
#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    /// As in the file.
    pub mesh: usize,
    pub test: usize,
    pub pairs: usize,
    /// Loads are made in so many rounds.
    pub rounds: usize,
    /// A slot takes so long.
    pub slot_ms: u64,
    /// Of a day, both directions of a load counted.
    pub tests_a_day: u64,
    pub bytes_a_day: u64,
    pub stored_bytes_a_day: u64,
    /// What makes it impossible as it is.
    pub wrong: Vec<String>,
}

const DAY_MS: u64 = 24 * 3_600_000;

/// The part of the day that is not quiet.
fn awake(test: &Test) -> f64 {
    1.0 - (0..MINUTES).filter(|minute| test.is_quiet(*minute)).count() as f64 / f64::from(MINUTES)
}

/// What each test of a fleet costs, in the order of the file.
pub fn costs(fleet: &Fleet) -> Vec<Cost> {
    let schedule = Schedule::new(fleet);
    let of_mesh = |(mesh, place): (usize, &crate::plan::Mesh)| {
        let pairs = fleet.pairs(place).len();
        let of_test = |(nth, test): (usize, &Test)| {
            let rounds = schedule.rounds(mesh, nth);
            let loads: usize = rounds.iter().map(Vec::len).sum();
            let slots = awake(test) * DAY_MS as f64 / test.every_ms as f64;
            let tests_a_day = (slots * loads as f64).round() as u64;
            let rate = if test.kind == Kind::Load { test.expect_bps } else { PROBE_BPS };
            let bytes_a_day = tests_a_day.saturating_mul(rate.saturating_mul(test.lasts_ms) / 8_000);
            let beside = if test.kind == Kind::Load { BESIDE_MS } else { 0 };
            let slot_ms = rounds.len() as u64 * (test.lasts_ms + beside);
            let mut wrong = Vec::new();
            if slot_ms > test.every_ms {
                let [takes, every] = [slot_ms, test.every_ms].map(|ms| narrows_model::words::units::micros(ms * 1_000));
                wrong.push(format!(
                    "all pairs take {takes}, longer than {every}: repeat it less often, or take the design regular"
                ));
            }
            if let Some(most) = test.bytes_a_day.filter(|most| bytes_a_day > *most) {
                let [all, most] = [bytes_a_day, most].map(narrows_model::words::units::bytes);
                wrong.push(format!("{all} a day are more than bytes-a-day allows ({most})"));
            }
            let stored_bytes_a_day = tests_a_day * STORED_BYTES;
            Cost {
                mesh,
                test: nth,
                pairs,
                rounds: rounds.len(),
                slot_ms,
                tests_a_day,
                bytes_a_day,
                stored_bytes_a_day,
                wrong,
            }
        };
        place.tests.iter().enumerate().map(of_test).collect::<Vec<_>>()
    };
    fleet.meshes.iter().enumerate().flat_map(of_mesh).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_time_are_known_before_anything_runs() {
        let hosts: String = (0..40).map(|nth| format!("hosts.h{nth} = {{}}\n")).collect();
        let text = format!(
            "name = 's'\n{hosts}[[mesh]]\nname = 'all'\n[[mesh.test]]\nkind = 'load'\nevery = '1h'\nlasts = '3s'\nexpect = '1G'\n\
             quiet = ['08:00-20:00']\nbytes-a-day = '1G'\n[[mesh.test]]\nkind = 'load'\nevery = '5m'\n"
        );
        let fleet = Fleet::read(&text).expect("a fleet");
        let [hourly, often] = &costs(&fleet)[..] else { panic!("two tests") };
        // 39 colours, each in both directions; 12 of 24 hours; 375 MB each.
        assert_eq!((hourly.pairs, hourly.rounds, hourly.slot_ms), (780, 78, 78 * 6_000));
        assert_eq!((hourly.tests_a_day, hourly.bytes_a_day), (12 * 1_560, 12 * 1_560 * 375_000_000));
        assert!(hourly.wrong.len() == 1 && hourly.wrong[0].contains("more than bytes-a-day"), "{hourly:?}");
        assert!(often.wrong[0].contains("longer than 5 min") || often.wrong[0].contains("300 s"), "{often:?}");
    }
}
