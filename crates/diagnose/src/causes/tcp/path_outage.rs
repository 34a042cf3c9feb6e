//! # path-outage
//!
//! The path carries nothing for a time, once or again and again: a link that flaps, a radio link that fades or hands over, a
//! route or spanning tree that changes.
//!
//! **Shows**: whole windows vanish: nothing arrives for longer than two round trips, while a window is on its way and none of it is
//! acknowledged. UDP loses as much time at any rate: twice as many datagrams at twice the rate.
//!
//! **Mistaken for**: random loss and a full queue (the rest of each window arrives), a policer (a part of each burst passes), a host
//! that is stopped (its samples come late, and packets are delayed rather than lost), a path MTU black hole (it has no end).
//!
//! **Fix**: find the hop that stops forwarding by its log at these times.
//!
//! Source: RFC 8985 section 7 (tail loss probes end shorter silences), RFC 6298 (what follows is a retransmission timeout).

use crate::causes::shared::rule::*;
use crate::causes::shared::tcp_stage::{in_a_host, lost_at_home};
use crate::evidence::tcp::{AT_CAPACITY, DISTURBS, Outage};

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "path-outage",
    about: "the path carries nothing for a time",
    roles: &[Role::Path],
    needs: &[keys::QDISC_DROPS],
    assess,
    look_alikes: &["random-loss", "path-policer", "path-capacity", "congestion-control", "mtu-black-hole"],
    fix: |_, _| advice(
        "find the hop that stops forwarding: its log at these times (link state, roaming or handover of a radio link, changes of \
         routes or of the spanning tree)",
    ),
    rank: 7,
    ..Cause::COMMON
};

/// At most so many are listed.
const LISTED: usize = 4;

fn words(outages: &[Outage]) -> String {
    let longest_us = outages.iter().map(|it| (it.to_s - it.from_s) * 1e6).fold(0.0, f64::max);
    let times: Vec<String> = outages.iter().take(LISTED).map(|it| format!("{:.1}", it.from_s)).collect();
    let more = if outages.len() > LISTED { ", …" } else { "" };
    let often = if outages.len() == 1 { "once".to_owned() } else { format!("{} times", outages.len()) };
    let longest = units::micros(longest_us as u64);
    format!(
        "{often}, for up to {longest}, nothing arrived (at {}{more} s), and the samples came on time",
        times.join(", ")
    )
}

/// Steps of UDP that vanished for a time.
fn of_udp(evidence: &TcpEvidence) -> Option<Witness> {
    let step = evidence.profile.as_ref()?.shape.longest_outage()?;
    let (time, rate) = (units::micros(step.outage_us as u64), units::bps(step.offered_bps));
    Some(experiment(format!("UDP at {rate}, evenly paced, lost every datagram for {time} and hardly any other")))
}

/// By how much the goodput is below that of the fastest tenth of the load.
fn cost(evidence: &TcpEvidence) -> Option<f64> {
    let fastest = narrows_stats::quantile(&evidence.base.counted_bps, 0.9).filter(|bps| *bps > 0.0)?;
    Some((1.0 - evidence.base.goodput_bps / fastest).max(0.0))
}

fn assess(evidence: &TcpEvidence, _: Role) -> Assessment {
    let (Some(outages), Some(loss)) = (&evidence.base.outages, evidence.base.loss_whole) else {
        return cannot_tell("the segments that arrived, or those on their way, could not be read");
    };
    if outages.is_empty() {
        return contradicts("whenever a window was on its way, some of it arrived within two round trips");
    }
    if lost_at_home(evidence) {
        return contradicts(in_a_host(evidence).unwrap_or_else(|| "the sender's own queue dropped them".to_owned()));
    }
    if let Some(profile) = &evidence.profile
        && evidence.policed()
    {
        return contradicts(profile.words());
    }
    let (vanished, lost) = (outages.iter().map(|it| it.outstanding).sum::<u64>(), loss.lost());
    if lost < vanished / 2 {
        return contradicts(format!(
            "{vanished} segments were on their way while nothing arrived, and only {lost} were lost: they were delayed"
        ));
    }
    if vanished < lost / 2 {
        return contradicts(format!("only {vanished} of {lost} lost segments were on their way while nothing arrived"));
    }
    if evidence.base.stolen() >= DISTURBS {
        return cannot_tell(
            "the hypervisor stopped a host for a part of the time, so an outage cannot be told from that",
        );
    }
    let cost = cost(evidence).unwrap_or(1.0);
    if cost < 1.0 - AT_CAPACITY {
        return contradicts(format!("nothing arrived for a time, which cost {} of the goodput", units::percent(cost)));
    }
    let seen = counter(words(outages));
    let sent = counter(format!(
        "whole windows vanished: {vanished} segments were on their way in these times, none of them acknowledged, of {lost} that were lost"
    ));
    // Where the load does not fill the path between them either, they are not all that limits it.
    let fastest = narrows_stats::quantile(&evidence.base.counted_bps, 0.9).zip(evidence.capacity_goodput_bps());
    let fills = fastest.is_none_or(|(bps, capacity)| bps >= AT_CAPACITY * capacity);
    let share = if fills { 0.9 } else { 0.9 * cost };
    Assessment::Supports { share, witnesses: [seen, sent].into_iter().chain(of_udp(evidence)).collect() }
}

#[cfg(test)]
mod tests {
    use crate::diagnose;
    use crate::testing::*;
    use crate::testing::profile::{Excess, ProfiledPath};
    use narrows_model::Run;
    use narrows_model::load::tcp::TcpPlan;
    use super::*;

    /// 78 Mbit/s over a path that is dead for 500 ms each 2.5 s: the bytes, and what each sample finds.
    fn run(scene: &Scene, change: impl Fn(&mut narrows_model::load::tcp::TcpSample, bool, u64)) -> Run {
        let load = TcpPlan { interval_ms: 100, ..Scene::default().load };
        let mut run = Scene { load, ..scene.clone() }.run(&[]);
        let trial = &mut run.trials[0].trial;
        for sending in [true, false] {
            let end = tcp_end(if sending { &mut trial.client } else { &mut trial.server });
            for sample in &mut end.streams[0].samples {
                sample.tcp.sacked = Some(0);
                let (period, into) = (sample.at_us / 2_500_000, sample.at_us % 2_500_000);
                // From 1.5 s into each period on nothing arrives for 500 ms.
                let live_us = period * 2_000_000 + into.min(1_500_000) + into.saturating_sub(2_000_000);
                sample.bytes = live_us * 12;
                sample.tcp.data_segs_in = Some(live_us / 100);
                sample.tcp.data_segs_out = Some(live_us / 100 + (sample.at_us + 500_000) / 2_500_000 * 300);
                sample.tcp.total_retrans = Some((sample.at_us + 500_000) / 2_500_000 * 300);
                let dead_us = if (1_500_000..=2_000_000).contains(&into) { into - 1_500_000 } else { 0 };
                sample.tcp.last_data_recv_ms = Some(dead_us / 1000);
                change(sample, sending, dead_us);
            }
        }
        run
    }

    /// A path of 150 Mbit/s at 20 ms, of which the outages leave half.
    fn scene() -> Scene {
        let profile = Some(ProfiledPath { rate_bps: 150e6, burst_bps: 150e6, ..ProfiledPath::default() });
        Scene { min_rtt_us: 20_000, rtt_us: 21_000, cwnd: 300, segments: 70_400, lost: 900, profile, ..slow() }
    }

    fn evidence(run: &Run) -> TcpEvidence {
        TcpEvidence::of(run, 0).expect("a baseline")
    }

    fn of(run: &Run) -> Assessment {
        assess(&evidence(run), Role::Path)
    }

    #[test]
    fn whole_windows_that_vanish_are_an_outage() {
        let run = run(&scene(), |_, _, _| {});
        let outages = evidence(&run).base.outages.expect("known");
        assert_eq!(outages.len(), 3, "{outages:?}");
        assert!((outages[0].from_s - 1.5).abs() < 0.06 && (outages[0].to_s - outages[0].from_s) > 0.2, "{outages:?}");
        let verdict = diagnose(&run, 0).expect("a baseline").verdict;
        let first = verdict.causes.first().map(|finding| (finding.id.as_str(), finding.at));
        assert_eq!((verdict.status, first), (Status::Limited, Some(("path-outage", Place::Path))), "{verdict:#?}");
        assert!(verdict.causes[0].witnesses[0].says.starts_with("3 times, for up to "), "{verdict:#?}");
    }

    #[test]
    fn what_looks_like_it_is_not() {
        // A part of the window was acknowledged: random loss, a policer, a queue that overflowed.
        let part = run(&scene(), |sample, sending, dead_us| {
            sample.tcp.sacked = Some(if sending && dead_us > 0 { 60 } else { 0 });
        });
        assert_contradicts(&of(&part), "some of it arrived");
        // Nothing was on its way: the application had nothing to send, or the window was closed.
        let idle = run(&scene(), |sample, sending, dead_us| {
            sample.tcp.unacked = Some(if sending && dead_us > 0 { 0 } else { 300 });
        });
        assert_contradicts(&of(&idle), "some of it arrived");
        // All that was on its way came later: a queue that nothing left, or a sender that was stopped.
        let late = run(&scene(), |sample, _, _| {
            sample.tcp.data_segs_out = sample.tcp.data_segs_in;
            sample.tcp.total_retrans = Some(0);
        });
        assert_contradicts(&of(&late), "they were delayed");
        // The receiving host took no samples in that time: it was stopped itself.
        let mut stopped = run(&scene(), |_, _, _| {});
        let samples = &mut tcp_end(&mut stopped.trials[0].trial.server).streams[0].samples;
        samples.retain(|sample| !(1_550_000..2_050_000).contains(&(sample.at_us % 2_500_000)));
        assert_contradicts(&of(&stopped), "some of it arrived");
        // Most of the loss lies elsewhere.
        let lossy = run(&scene(), |sample, _, _| {
            sample.tcp.data_segs_out = sample.tcp.data_segs_in.map(|n| n + n / 20);
        });
        assert_contradicts(&of(&lossy), "lost segments were on their way while nothing arrived");
        let path = ProfiledPath { rate_bps: 90e6, excess: Excess::DroppedAfter(40), ..ProfiledPath::default() };
        let policed = run(&Scene { profile: Some(path), ..scene() }, |_, _, _| {});
        assert_contradicts(&of(&policed), "by a policer");
    }

    #[test]
    fn a_short_one_costs_nothing_and_a_kernel_that_does_not_tell_leaves_it_open() {
        let faster = run(&scene(), |sample, _, _| sample.bytes = sample.at_us * 12);
        assert_contradicts(&of(&faster), "which cost 0 %");
        let silent = run(&scene(), |sample, _, _| sample.tcp.sacked = None);
        assert_cannot_tell(&of(&silent), "could not be read");
        // A timeout without selective acknowledgements looks alike, whatever arrived.
        let without = run(&scene(), |sample, _, _| sample.tcp.options = Some(narrows_model::TcpInfo::OPT_WSCALE));
        assert_cannot_tell(&of(&without), "could not be read");
        assert_supports(&of(&run(&scene(), |_, _, _| {})));
        // A path that is not filled between them has another limit, too, which may be the larger.
        let profile = Some(ProfiledPath { rate_bps: 500e6, burst_bps: 500e6, ..ProfiledPath::default() });
        let wide = of(&run(&Scene { profile, ..scene() }, |_, _, _| {}));
        assert!(matches!(wide, Assessment::Supports { share, .. } if share < 0.5), "{wide:?}");
    }

    #[test]
    fn a_profile_that_vanished_for_a_time_is_another_witness() {
        let path = ProfiledPath { outage: Some(1), ..scene().profile.expect("a profile") };
        let run = run(&Scene { profile: Some(path), ..scene() }, |_, _, _| {});
        let Assessment::Supports { witnesses, .. } = of(&run) else { panic!("supported") };
        assert_eq!(witnesses.len(), 3);
        assert!(witnesses[2].says.contains("lost every datagram for "), "{witnesses:?}");
    }
}
