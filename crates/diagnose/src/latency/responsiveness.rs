//! Round trips a minute and how stable they were, after draft-ietf-ippm-responsiveness.
//!
//! Two things differ from the draft. Requests go over narrows' own connections instead of HTTP, so what a web server adds is not in
//! the figure. And the trial lasts as long as its plan says instead of ending once it is stable: the latencies are those of the whole
//! counted part, and stability is judged at its end.

use super::seen::{TRIMMED, latencies, load_rtt};
use narrows_model::load::rr::report::{Confidence, Responsiveness};
use narrows_model::{RrTrial, Transaction};
use narrows_stats::summary;

/// Intervals that a moving average spans, and averages that must agree (`MAD`).
const DISTANCE: usize = 4;
/// The length of an interval (`ID`).
const INTERVAL_US: u64 = 1_000_000;
/// Averages within this agree (`SDT`).
const TOLERANCE: f64 = 0.05;
/// Larger messages take longer than a round trip.
const MAX_BYTES: u32 = 1400;
const NS_PER_MINUTE: f64 = 60e9;

/// The figure of one trial.
/// Errors: why its latencies are no round trips, or that there are none, in a sentence.
pub(super) fn of(trial: RrTrial<'_>) -> Result<Responsiveness, String> {
    let plan = &trial.plan;
    if plan.outstanding > 1 {
        return Err(format!("{} requests of a stream waited for each other; ask for one at a time", plan.outstanding));
    }
    let bytes = plan.request_bytes.max(plan.response_bytes);
    if bytes > MAX_BYTES {
        return Err(format!("messages of {bytes} bytes take more than a round trip; the maximum is {MAX_BYTES}"));
    }
    let mean = latencies(trial).trimmed_mean(TRIMMED).filter(|mean| *mean > 0.0);
    let mean = mean.ok_or("no transaction was completed in the counted part")?;
    // A transaction with a connection of its own is two: the set-up and the request. Their mean is the draft's
    // (TM(tcp_f) + TM(http_f)) / 2.
    let round_trips = if plan.transaction == Transaction::TcpConnect { 2.0 } else { 1.0 };
    let requests_rpm = round_trips * NS_PER_MINUTE / mean;
    let load_rpm = load_rtt(trial).map(|rtt| NS_PER_MINUTE / rtt.mean_ns);
    let (confidence, variation) = stability(&averages(trial));
    let rpm = load_rpm.map_or(requests_rpm, |load| f64::midpoint(requests_rpm, load));
    Ok(Responsiveness { rpm, requests_rpm, load_rpm, confidence, variation })
}

/// What the draft makes of the moving averages, and their standard deviation over the newest one.
fn stability(averages: &[f64]) -> (Confidence, Option<f64>) {
    let Some((_, last)) = averages.split_last_chunk::<DISTANCE>() else { return (Confidence::Low, None) };
    let newest = last[DISTANCE - 1];
    let variation = summary(last).and_then(|last| last.sd).map(|sd| sd / newest).filter(|part| part.is_finite());
    match variation {
        Some(part) if part <= TOLERANCE => (Confidence::High, variation),
        _ => (Confidence::Medium, variation),
    }
}

/// The moving average of the responsiveness at the end of each counted second, over it and the three before. A second in which
/// nothing was completed adds nothing.
fn averages(trial: RrTrial<'_>) -> Vec<f64> {
    // (transactions, sum of their latencies) of all streams at an instant.
    let at = |at_us: u64| {
        let last = |stream: &narrows_model::RrStreamRecord| {
            let after = stream.samples.partition_point(|sample| sample.at_us <= at_us);
            after.checked_sub(1).and_then(|last| stream.samples.get(last)).copied().unwrap_or_default()
        };
        trial.client.streams.iter().map(last).fold((0_u64, 0_u64), |(count, sum), sample| {
            (count.saturating_add(sample.transactions), sum.saturating_add(sample.latency_sum_ns))
        })
    };
    let step = INTERVAL_US.max(trial.plan.interval_ms.saturating_mul(1000));
    let from = trial.plan.omit_ms.saturating_mul(1000);
    let until = trial.plan.duration_ms.saturating_mul(1000).min(trial.elapsed_us);
    // A sample is taken a little after its instant.
    let slack = step / 10;
    let seconds = until.saturating_sub(from) / step;
    // A day is the longest trial; a record from outside may say more.
    let bounds: Vec<_> =
        (0..=seconds.min(86_400)).map(|n| at(from.saturating_add(n * step).saturating_add(slack))).collect();
    (1..bounds.len())
        .filter_map(|end| {
            let (first, last) = (bounds[end.saturating_sub(DISTANCE)], bounds[end]);
            let (count, sum) = (last.0.saturating_sub(first.0), last.1.saturating_sub(first.1));
            (count > 0 && sum > 0).then(|| NS_PER_MINUTE * count as f64 / sum as f64)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stable_is_within_five_per_cent_over_four_averages() {
        assert_eq!(stability(&[300.0, 300.0, 300.0]), (Confidence::Low, None));
        assert_eq!(stability(&[900.0, 300.0, 300.0, 300.0, 300.0]), (Confidence::High, Some(0.0)));
        let (confidence, variation) = stability(&[200.0, 250.0, 300.0, 350.0]);
        assert_eq!(confidence, Confidence::Medium);
        // By hand: mean 275, squared deviations 5625 + 625 + 625 + 5625, over 3, its root 64.55, over 350.
        assert!((variation.unwrap() - 0.184_428).abs() < 1e-5);
    }
}
