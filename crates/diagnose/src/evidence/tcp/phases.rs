//! Phases of a trial: a rate that changed for good in its middle, so that its mean is that of no time.

use super::counted::thread_share;
use super::loss::Loss;
use super::shares::Shares;
use crate::evidence::cores;
use narrows_model::load::tcp::{TcpEndRecord, TcpSample};
use narrows_model::run::report::{PhaseShares, PhaseView};
use narrows_model::words::units::{self, micros, percent};
use narrows_model::{Flow, TcpTrial};

/// Means of the rate that a trial is looked at by.
const GROUPS: usize = 32;
/// A phase lasts this many of them at least …
const LEAST: usize = 6;
/// … and its rate is so many times that of the one beside it.
const STEP: f64 = 1.6;
/// Steps explain this part of how the rate varied. A ramp is explained as well by three steps, but not by level ones:
const EXPLAINED: f64 = 0.85;
/// the halves of a phase differ by this part of the step beside it at most.
const LEVEL: f64 = 0.25;

/// The phases of a trial whose rates, one each interval, are these from `from_s` to `to_s`; none where the rate did not change for good.
/// The split into two or three parts with the least squared error of log rates (Fisher 1958).
pub fn phases(rates: &[f64], from_s: f64, to_s: f64) -> Vec<PhaseView> {
    let width = rates.len() / GROUPS;
    if width == 0 {
        return Vec::new();
    }
    let means: Vec<f64> = rates.chunks_exact(width).map(mean).collect();
    // A pause counts no more than a deep fall.
    let floor = (mean(&means) / 20.0).max(1.0);
    let logs: Vec<f64> = means.iter().map(|bps| bps.max(floor).ln()).collect();
    let whole = squares(&logs);
    let n = logs.len();
    let splits = (LEAST..=n - LEAST)
        .flat_map(|a| std::iter::once(vec![a]).chain((a + LEAST..=n - LEAST).map(move |b| vec![a, b])));
    let error = |cuts: &Vec<usize>| parts(n, cuts).map(|(from, to)| squares(&logs[from..to])).sum::<f64>();
    // Of two and of three phases the best; three where two do not do.
    let best =
        |count: usize| splits.clone().filter(|cuts| cuts.len() == count).min_by(|a, b| error(a).total_cmp(&error(b)));
    let good = |cuts: &Vec<usize>| whole > 0.0 && 1.0 - error(cuts) / whole >= EXPLAINED && are_steps(&logs, cuts);
    let Some(cuts) = [best(1), best(2)].into_iter().flatten().find(good) else { return Vec::new() };
    let at = |group: usize| from_s + (to_s - from_s) * (group * width) as f64 / rates.len() as f64;
    parts(n, &cuts)
        .map(|(from, to)| PhaseView {
            from_s: at(from),
            to_s: at(to),
            goodput_bps: mean(&means[from..to]),
            ..PhaseView::default()
        })
        .collect()
}

/// A phase, and what the hosts did in it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Phase {
    pub view: PhaseView,
    /// Part of the time in which the sender had data to send.
    pub busy: Option<f64>,
    /// Whether a host had no time for more: its cores, one that takes packets, or a data thread.
    pub host_full: Option<bool>,
}

/// The phases of the counted part of a load that ends by time, with what the samples say of each; what they do not say stays unknown.
pub fn of(counted_bps: &[f64], counted_s: f64, trial: TcpTrial<'_>, flow: Flow) -> Vec<Phase> {
    let omit_ms = trial.plan.omit_ms;
    let found = phases(counted_bps, omit_ms.max(100) as f64 / 1e3, omit_ms as f64 / 1e3 + counted_s);
    found.into_iter().map(|view| account(view, trial, flow)).collect()
}

fn account(mut phase: PhaseView, trial: TcpTrial<'_>, flow: Flow) -> Phase {
    let (Some(sender), Some(receiver)) = (trial.end(flow.sender()), trial.end(flow.receiver())) else {
        return Phase { view: phase, busy: None, host_full: None };
    };
    let (from_us, to_us) = ((phase.from_s * 1e6) as u64, (phase.to_s * 1e6) as u64);
    // A phase begins and ends near a sample.
    let half_us = trial.plan.interval_ms.saturating_mul(500);
    let of_end = |end: &'_ TcpEndRecord| -> Vec<Vec<TcpSample>> {
        let of_flow = end.streams.iter().filter(|stream| stream.flow == flow);
        let within = |sample: &TcpSample| {
            sample.at_us.saturating_add(half_us) >= from_us && sample.at_us <= to_us.saturating_add(half_us)
        };
        of_flow.map(|stream| stream.samples.iter().filter(|sample| within(sample)).cloned().collect()).collect()
    };
    let (sent, got) = (of_end(sender), of_end(receiver));
    let within = || sent.iter().map(Vec::as_slice);
    let loss = Loss::of(within()).filter(|loss| loss.sent > 0);
    (phase.sent, phase.retransmitted) = (loss.map(|loss| loss.sent), loss.map(|loss| loss.retransmitted));
    let rtts = within().flatten().filter_map(|sample| sample.tcp.rtt_us);
    phase.rtt_us = narrows_stats::median(&rtts.map(|us| us as f64).collect::<Vec<_>>());
    let shares = Shares::of(within());
    phase.shares = shares.map(|shares| {
        // Jiffies can make the two exceed the time.
        let rest = (1.0 - shares.receive_window - shares.send_buffer).max(0.0);
        let whole = shares.receive_window + shares.send_buffer + rest;
        PhaseShares {
            receive_window: shares.receive_window / whole,
            send_buffer: shares.send_buffer / whole,
            rest: rest / whole,
        }
    });
    let thread = |samples: &Vec<TcpSample>| thread_share(samples);
    let threads = sent.iter().chain(&got).filter_map(thread).reduce(f64::max);
    let hosts = [sender, receiver].map(|end| cores::shares_between(&end.host, from_us, to_us.saturating_add(half_us)));
    let full = hosts.iter().any(|cores| {
        let busy = cores.iter().map(|core| core.busy + core.steal).sum::<f64>();
        busy > MACHINE * cores.len() as f64 || cores.iter().any(|core| core.softirq >= SOFTIRQ)
    });
    let known = threads.is_some() || hosts.iter().all(|cores| !cores.is_empty());
    let host_full = known.then(|| full || threads.is_some_and(|share| share > THREAD));
    Phase { view: phase, busy: shares.map(|shares| shares.busy), host_full }
}

/// A machine, a core that takes packets, and a data thread that are full, as `path-capacity` takes them.
const MACHINE: f64 = 0.93;
const SOFTIRQ: f64 = 0.85;
const THREAD: f64 = 0.88;

/// How the capacity of a path changed that was full in each phase, in words.
pub fn change(phases: &[PhaseView]) -> String {
    if let [before, after] = phases {
        let [from, to] = [before, after].map(|phase| units::bps(phase.goodput_bps));
        let how = if after.goodput_bps < before.goodput_bps { "fell" } else { "rose" };
        return format!("the path's capacity {how} from {from} to {to} at {:.1} s", before.to_s);
    }
    let each = |phase: &PhaseView| format!("{} until {:.1} s", units::bps(phase.goodput_bps), phase.to_s);
    format!("the path's capacity changed ({})", phases.iter().map(each).collect::<Vec<_>>().join(", "))
}

/// The fastest phase, the one that cost the most, and the bits that it cost; `None` without two phases.
pub fn costliest(phases: &[PhaseView]) -> Option<(PhaseView, PhaseView, f64)> {
    let best = *phases.iter().max_by(|a, b| a.goodput_bps.total_cmp(&b.goodput_bps))?;
    let cost = |phase: &PhaseView| (best.goodput_bps - phase.goodput_bps) * (phase.to_s - phase.from_s);
    let worst = *phases.iter().max_by(|a, b| cost(a).total_cmp(&cost(b)))?;
    (cost(&worst) > 0.0).then(|| (best, worst, cost(&worst)))
}

/// An RTT that grew by this factor and by a millisecond is not scheduling.
const RTT_ROSE: f64 = 1.25;
/// Retransmissions that doubled, and by this part of the segments at least.
const LOSS_ROSE: f64 = 0.001;
/// A part of the time that another limit holds the sender back.
const HELD_MORE: f64 = 0.2;

/// What is worse in a phase than in the fastest one, as far as their accounts show it.
pub fn worse(best: &PhaseView, phase: &PhaseView) -> Vec<String> {
    let mut words = Vec::new();
    if let (Some(before), Some(after)) = (best.rtt_us, phase.rtt_us)
        && after > RTT_ROSE * before
        && after > before + 1_000.0
    {
        words.push(format!("the RTT was {} instead of {}", micros(after as u64), micros(before as u64)));
    }
    let rate = |of: &PhaseView| Some(of.retransmitted? as f64 / of.sent.filter(|sent| *sent > 0)? as f64);
    if let (Some(before), Some(after)) = (rate(best), rate(phase))
        && after > 2.0 * before
        && after > before + LOSS_ROSE
    {
        words.push(format!("{} of the segments were retransmitted instead of {}", percent(after), percent(before)));
    }
    if let (Some(before), Some(after)) = (best.shares, phase.shares) {
        for (what, before, after) in [
            ("receiver's window", before.receive_window, after.receive_window),
            ("send buffer", before.send_buffer, after.send_buffer),
        ] {
            if after > before + HELD_MORE {
                words.push(format!(
                    "the {what} was full for {} of the time instead of {}",
                    percent(after),
                    percent(before)
                ));
            }
        }
    }
    words
}

fn parts(n: usize, cuts: &[usize]) -> impl Iterator<Item = (usize, usize)> {
    let ends: Vec<usize> = std::iter::once(0).chain(cuts.iter().copied()).chain(std::iter::once(n)).collect();
    (1..ends.len()).map(move |index| (ends[index - 1], ends[index]))
}

/// Whether the parts are level, and clearly apart.
fn are_steps(logs: &[f64], cuts: &[usize]) -> bool {
    let parts: Vec<(usize, usize)> = parts(logs.len(), cuts).collect();
    let levels: Vec<f64> = parts.iter().map(|(from, to)| mean(&logs[*from..*to])).collect();
    let steps: Vec<f64> = levels.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    let least = steps.iter().copied().fold(f64::MAX, f64::min);
    let level = |(from, to): &(usize, usize)| {
        let middle = usize::midpoint(*from, *to);
        (mean(&logs[*from..middle]) - mean(&logs[middle..*to])).abs() <= LEVEL * least
    };
    least >= STEP.ln() && parts.iter().all(level)
}

fn mean(values: &[f64]) -> f64 {
    narrows_stats::mean(values).unwrap_or(0.0)
}

fn squares(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(rate: impl Fn(usize) -> f64) -> Vec<[f64; 3]> {
        let rates: Vec<f64> = (0..80).map(rate).collect();
        phases(&rates, 0.0, 8.0).iter().map(|phase| [phase.from_s, phase.to_s, phase.goodput_bps]).collect()
    }

    #[test]
    fn a_rate_that_falls_for_good_is_two_phases() {
        let found = of(|n| if n < 42 { 300e6 } else { 40e6 });
        assert_eq!(found.len(), 2, "{found:?}");
        assert!((found[0][1] - 4.2).abs() < 0.3 && (found[1][2] - 40e6).abs() < 5e6, "{found:?}");
    }

    #[test]
    fn another_that_comes_and_goes_makes_three() {
        let found = of(|n| if (24..56).contains(&n) { 48e6 } else { 95e6 });
        assert_eq!(found.len(), 3, "{found:?}");
    }

    #[test]
    fn ramps_sawteeth_and_steady_rates_are_one() {
        assert!(of(|n| 10e6 + 3e6 * n as f64).is_empty());
        assert!(of(|n| 10e6 * 1.05_f64.powi(n as i32)).is_empty());
        assert!(of(|n| 50e6 + 1e6 * (n % 20) as f64).is_empty());
        assert!(of(|_| 100e6).is_empty());
        assert!(phases(&[1e6; 20], 0.0, 2.0).is_empty(), "too few to say");
    }

    #[test]
    fn the_phase_that_cost_most_is_the_one_that_was_slow_for_long() {
        let phase = |from_s, to_s, goodput_bps| PhaseView { from_s, to_s, goodput_bps, ..PhaseView::default() };
        let phases = [phase(0.0, 2.0, 100e6), phase(2.0, 3.0, 10e6), phase(3.0, 8.0, 60e6)];
        let (best, worst, cost) = costliest(&phases).expect("two phases");
        assert_eq!((best, worst), (phases[0], phases[2]), "40 Mbit/s for 5 s are more than 90 Mbit/s for 1 s");
        assert!((cost - 200e6).abs() < 1.0);
        assert_eq!(costliest(&phases[..1]), None);
        assert!(worse(&best, &worst).is_empty(), "nothing is known of either");
    }

    #[test]
    fn only_what_clearly_rose_is_worse() {
        let of = |rtt_us, retransmitted, window| PhaseView {
            sent: Some(10_000),
            retransmitted: Some(retransmitted),
            rtt_us: Some(rtt_us),
            shares: Some(PhaseShares { receive_window: window, send_buffer: 0.0, rest: 1.0 - window }),
            ..PhaseView::default()
        };
        let best = of(20_000.0, 5, 0.0);
        assert!(worse(&best, &of(21_000.0, 9, 0.1)).is_empty());
        assert_eq!(
            worse(&best, &of(55_000.0, 210, 0.8)),
            [
                "the RTT was 55.0 ms instead of 20.0 ms",
                "2.1 % of the segments were retransmitted instead of 0.050 %",
                "the receiver's window was full for 80 % of the time instead of 0 %"
            ]
        );
    }

    proptest! {
        #[test]
        fn noise_is_no_phase(noise in prop::collection::vec(0.5..1.5_f64, 80)) {
            prop_assert!(of(|n| 100e6 * noise[n]).is_empty());
        }
    }
}
