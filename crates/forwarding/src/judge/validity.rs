//! Whether a trial is invalid: its load says nothing of the device then.

use super::dut::dut_trouble;
use crate::data::{Accounting, ForwardingTrial, Test};

/// No trial with fewer frames than that shows that the device is lost.
const MIN_FRAMES: u64 = 100;

/// Whether nothing of many frames came out: the DUT stopped forwarding.
pub fn is_lost(trial: &ForwardingTrial) -> bool {
    let sum = |(sent, got): (u64, u64), frames: &narrows_model::load::frames::FrameTrial| {
        (sent.saturating_add(frames.sent.sent()), got.saturating_add(frames.got.distinct()))
    };
    let (sent, got) = trial.directions.iter().fold((0, 0), sum);
    sent >= MIN_FRAMES && got == 0
}

/// Why a corrected trial is invalid, if so. `accounts` are those of its directions.
pub fn judge<'a>(trial: &ForwardingTrial, accounts: impl IntoIterator<Item = &'a Accounting>) -> Option<String> {
    if trial.incomplete.is_some() {
        return trial.incomplete.clone();
    }
    if is_lost(trial) {
        return Some("device lost: nothing came back".to_owned());
    }
    // A reset that was asked for is no trouble.
    let dut = || dut_trouble(&trial.devices).filter(|_| trial.test != Test::Reset);
    let anomaly = || trial.hops.iter().find_map(|hop| hop.anomaly.as_ref().map(|why| format!("at {}: {why}", hop.hop)));
    let frames = || {
        trial.directions.iter().zip(accounts).find_map(|(frames, account)| {
            let ended = frames.sent.ended.as_ref().map(|why| format!("the generator ended early: {why}"));
            let more = || {
                let (received, sent) = (frames.got.distinct(), frames.sent.sent());
                (frames.lost() < 0).then(|| format!("{received} frames were received, but only {sent} sent"))
            };
            ended.or_else(more).or_else(|| account.disagreement.clone())
        })
    };
    dut().or_else(anomaly).or_else(frames)
}
