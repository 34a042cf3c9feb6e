//! How long a campaign takes: its loads, and the round trips and file writes around them.

use super::plan::{CampaignPlan, Load};
use super::schedule::Step;
use narrows_model::Place;

/// The load that tests whether a host is ready.
pub(super) const READY_MS: u64 = 300;
/// Of each run, for the store.
const RUN_MS: u64 = 40;
/// Of the control of a trial, which shares the queue of the path with the load and sometimes is lost there.
const QUEUE_MS: u64 = 250;
/// Of both inventories, for loads that read them.
const INVENTORY_MS: u64 = 300;
/// Of a setting and its roll-back, for the journal.
const SETTING_MS: u64 = 40;
/// Round trips of a run: the idle RTT takes 10, the control of a trial 9.
const RUN_RTTS: u64 = 19;
/// Round trips of a session with its ready test.
const SESSION_RTTS: u64 = 20;
/// Of a session, for the handshake.
const SESSION_MS: u64 = 100;

/// Round trips with the host of a step, microseconds.
fn rtts_us(plan: &CampaignPlan, step: &Step, rtt_us: &[u64], count: u64) -> u64 {
    if plan.needs_server() { rtt_us.get(step.host).unwrap_or(&0) * count } else { 0 }
}

/// What a run takes, microseconds, as [`expected_ms`].
pub(super) fn run_us(plan: &CampaignPlan, step: &Step, rtt_us: &[u64]) -> u64 {
    let (control_ms, rtts) = match &plan.load {
        Load::Narrows(_) => (QUEUE_MS + INVENTORY_MS, RUN_RTTS),
        Load::Command(_) => (0, 0),
    };
    let settings: Vec<_> = plan.of_cell(&step.cell).flat_map(|(_, level)| &level.settings).collect();
    let far = settings.iter().filter(|(place, _)| *place == Place::Server).count() as u64;
    let ms = plan.load.duration_ms() + RUN_MS + control_ms + SETTING_MS * settings.len() as u64;
    ms * 1000 + rtts_us(plan, step, rtt_us, rtts + 2 * far)
}

/// What the steps will take, milliseconds. `rtt_us`: of each host, microseconds; 0 for one that is not known. What commands of factors
/// take is not known.
pub fn expected_ms(plan: &CampaignPlan, steps: &[Step], rtt_us: &[u64]) -> u64 {
    let session_us = |step: &Step| match plan.needs_server() {
        true => (READY_MS + SESSION_MS) * 1000 + rtts_us(plan, step, rtt_us, SESSION_RTTS),
        false => 0,
    };
    let groups = steps.chunk_by(|a, b| (a.block, a.host) == (b.block, b.host));
    let sessions_us: u64 = groups.filter_map(|group| group.first().map(session_us)).sum();
    (steps.iter().map(|step| run_us(plan, step, rtt_us)).sum::<u64>() + sessions_us) / 1000
}

#[cfg(test)]
mod tests {
    use super::super::{plan, steps};
    use super::*;

    #[test]
    fn round_trips_and_settings_take_time() {
        let text = "hosts = [\"a\"]\nrepetitions = 1\n[load]\nduration = \"1s\"\n[[factor]]\nat = \"both\"\n\
            sysctl = \"net.ipv4.tcp_sack\"\nvalues = [0, 1]\n";
        let plan = plan::parse(text, false).expect("a plan");
        // Two runs of 1 s with two settings each, 40 ms for the store, 250 ms of a full queue, the inventories; and one session.
        let still = 2 * (1_000 + 40 + 250 + INVENTORY_MS + 2 * 40) + 400;
        assert_eq!(expected_ms(&plan, &steps(&plan), &[]), still);
        // Two runs with 19 round trips and those of one far setting; the session.
        assert_eq!(expected_ms(&plan, &steps(&plan), &[10_000]), still + 10 * (2 * (19 + 2) + 20));
    }
}
