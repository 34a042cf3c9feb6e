//! # capacity-changed
//!
//! The capacity that the path has for this connection changed during the test: a link that adapts its rate, a new route, a limit
//! that begins or ends, other traffic. The path is at capacity before and after: a healthy path, whose mean is the capacity of no time.
//!
//! **Shows**: the goodput is level, then level at another rate; at each of them a queue stands, and neither host holds the sender back.
//!
//! **Mistaken for**: a host that is disturbed for a time (a core is full, or the window closes), other traffic of the same hosts (their
//! interfaces count it), a shaper whose bucket is empty, random loss that begins (no queue). The sawtooth of a congestion control,
//! slow start and BBR's probing are not level.
//!
//! **Fix**: none on the hosts; find what changed on the path at that time.
//!
//! Source: RFC 5136 (capacity is one of an interval of time); Fisher, *On Grouping for Maximum Homogeneity*, JASA 53, 1958.

use crate::causes::shared::rule::*;
use crate::evidence::tcp::{AT_CAPACITY, BEYOND, Phase, TAKEN, phases};

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "capacity-changed",
    about: "the path's capacity changed during the test",
    roles: &[Role::Path],
    needs: &[keys::QDISC_RATE],
    assess,
    look_alikes: &["competing-traffic", "path-shaper", "path-policer", "receiver-app-slow", "sender-app-slow"],
    fix,
    excludes: Excludes::Hosts,
    explains_link: true,
    ..Cause::COMMON
};

/// In a phase at capacity the sender has data, and neither window nor buffer holds it back, for this part of the time.
const FREE: f64 = 0.8;
/// A queue that stands is this part of the smallest RTT and half a millisecond at least, as for the whole load.
const QUEUE_PART: f64 = 0.1;
const QUEUE_US: f64 = 500.0;

/// Why a phase was not at the capacity of the path; `None` where it was.
fn not_full(phase: &Phase, min_rtt_us: f64) -> Option<&'static str> {
    let view = &phase.view;
    let (Some(rtt_us), Some(shares), Some(busy), Some(host_full)) =
        (view.rtt_us, view.shares, phase.busy, phase.host_full)
    else {
        return Some("what the hosts did in each phase is not known");
    };
    if host_full {
        return Some("a host had no CPU time left in one of the phases");
    }
    if busy < FREE || shares.rest < FREE {
        return Some("the application, a window or a buffer limited the sender in one of the phases");
    }
    let queue_us = rtt_us - min_rtt_us;
    (queue_us < QUEUE_US || queue_us < QUEUE_PART * min_rtt_us).then_some("no queue stood in one of the phases")
}

/// What shows that the rate changed for good and that the path was at capacity before and after.
/// Errors: why it was not, in a sentence.
pub fn full_in_each_phase(evidence: &TcpEvidence) -> Result<Vec<Witness>, String> {
    let views: Vec<_> = evidence.phases.iter().map(|phase| phase.view).collect();
    if views.len() < 2 {
        return Err("the goodput did not change for good during the load".to_owned());
    }
    let min_rtt_us = evidence.min_rtt_us.ok_or("the RTT could not be read")?;
    if let Some(why) = evidence.phases.iter().find_map(|phase| not_full(phase, min_rtt_us)) {
        return Err(why.to_owned());
    }
    let fastest_bps = views.iter().map(|view| view.goodput_bps).fold(0.0, f64::max);
    if evidence.number(Role::Sender, keys::QDISC_RATE).is_some_and(|bps| bps * AT_CAPACITY < fastest_bps) {
        return Err("a shaper of the sender may be what changed".to_owned());
    }
    if evidence.taken().is_some_and(|taken| taken >= TAKEN) {
        return Err("the interfaces of both hosts carried other traffic".to_owned());
    }
    let profile = evidence.profile.as_ref();
    if let Some(profile) = profile
        // A bucket that emptied during the load has refilled for the time of the probes, and would be seen.
        && (evidence.policed() || profile.shaper_limits())
    {
        return Err(profile.words());
    }
    // The profile is made after the load. Capacity that came back when that ended may be of the reverse path, which the acknowledgements of
    // the load no longer fill.
    let (measured, last_bps) = (evidence.capacity_goodput_bps(), views[views.len() - 1].goodput_bps);
    if measured.or(evidence.carries_bps()).is_some_and(|bps| last_bps < AT_CAPACITY * bps) {
        return Err("after the load the path carried more of UDP than in the last phase".to_owned());
    }
    let same = |bps: f64| views.iter().any(|view| (AT_CAPACITY..=BEYOND).contains(&(view.goodput_bps / bps)));
    let rtts: Vec<String> =
        views.iter().filter_map(|view| Some(units::micros((view.rtt_us? - min_rtt_us).round() as u64))).collect();
    let rates = counter(format!("the goodput is level in each phase: {}", phases::change(&views)));
    let queues = counter(format!(
        "a queue stood in each phase ({}); no window, buffer or core limited the sender",
        rtts.join(", ")
    ));
    let words = profile.filter(|_| measured.is_some_and(same)).map(|it| experiment(it.words()));
    Ok([rates, queues].into_iter().chain(words).collect())
}

fn assess(evidence: &TcpEvidence, _: Role) -> Assessment {
    match full_in_each_phase(evidence) {
        Ok(witnesses) => Assessment::Supports { share: 0.9, witnesses },
        Err(why) => contradicts(why),
    }
}

fn fix(evidence: &TcpEvidence, _: Role) -> Fix {
    let times: Vec<String> =
        evidence.phases.iter().skip(1).map(|phase| format!("{:.1} s", phase.view.from_s)).collect();
    advice(format!(
        "nothing to fix on the hosts; find what changed on the path {} after the load began (link rate, route, shaper, other traffic)",
        times.join(" and ")
    ))
}

#[cfg(test)]
mod tests {
    use crate::diagnose;
    use crate::testing::*;
    use crate::testing::profile::{Excess, ProfiledPath};
    use narrows_model::{Run, Verdict};
    use narrows_model::load::tcp::{TcpPlan, TcpSample};
    use super::*;

    /// A path of 20 ms that carries 300 Mbit/s for four seconds, then 40, behind a queue of 30 ms.
    fn run(scene: &Scene, change: impl Fn(&mut TcpSample, u64)) -> Run {
        let load = TcpPlan { interval_ms: 100, ..Scene::default().load };
        let path = ProfiledPath { rate_bps: 41.5e6, burst_bps: 41.5e6, ..ProfiledPath::default() };
        let mut run = virtual_hosts(Scene {
            load,
            goodput_bps: 170e6,
            min_rtt_us: 20_000,
            rtt_us: 50_000,
            profile: Some(scene.profile.unwrap_or(path)),
            ..scene.clone()
        })
        .run(&[]);
        for sending in [true, false] {
            let trial = &mut run.trials[0].trial;
            for sample in &mut tcp_end(if sending { &mut trial.client } else { &mut trial.server }).streams[0].samples {
                let (early, late) = (sample.at_us.min(4_000_000), sample.at_us.saturating_sub(4_000_000));
                sample.bytes = early * 300 / 8 + late * 5;
                change(sample, late);
            }
        }
        run
    }

    fn verdict(run: &Run) -> Verdict {
        diagnose(run, 0).expect("a baseline").verdict
    }

    fn of(run: &Run) -> Assessment {
        assess(&TcpEvidence::of(run, 0).expect("a baseline"), Role::Path)
    }

    #[test]
    fn a_path_that_is_full_before_and_after_is_healthy_and_its_change_is_named() {
        let verdict = verdict(&run(&Scene::default(), |_, _| {}));
        let ids: Vec<&str> = verdict.causes.iter().map(|finding| finding.id.as_str()).collect();
        assert_eq!((verdict.status, &ids[..]), (Status::Healthy, &["path-capacity"][..]), "{verdict:#?}");
        assert!(
            verdict.hazards.iter().any(|it| it.starts_with("capacity-changed was seen on the path")),
            "{verdict:#?}"
        );
        let said = "healthy: the path's capacity fell from 294 Mbit/s to 40.0 Mbit/s at ";
        assert!(verdict.headline.starts_with(said), "{}", verdict.headline);
        assert!(verdict.headline.ends_with(" s; at capacity in both phases"), "{}", verdict.headline);
    }

    #[test]
    fn what_a_host_or_loss_slows_down_is_not_the_path() {
        let no_queue = run(&Scene::default(), |sample, late| {
            sample.tcp.rtt_us = Some(if late > 0 { 20_100 } else { 50_000 });
        });
        assert_contradicts(&of(&no_queue), "no queue stood in one of the phases");
        assert_eq!(verdict(&no_queue).status, Status::Unknown);
        let window = run(&Scene::default(), |sample, late| sample.tcp.rwnd_limited_us = Some(late / 2));
        assert_contradicts(&of(&window), "limited the sender");
        let idle = run(&Scene::default(), |sample, late| sample.tcp.busy_time_us = Some(sample.at_us - late / 2));
        assert_contradicts(&of(&idle), "limited the sender");
        let thread = run(&Scene::default(), |sample, late| sample.thread_cpu_us = Some(late));
        assert_contradicts(&of(&thread), "no CPU time left");
        let unknown = run(&Scene::default(), |sample, _| sample.tcp.rtt_us = None);
        assert_contradicts(&of(&unknown), "is not known");
    }

    #[test]
    fn a_path_that_carries_more_than_either_phase_is_not_what_changed() {
        let path = |rate_bps| Some(ProfiledPath { rate_bps, burst_bps: rate_bps, ..ProfiledPath::default() });
        let of_path = |rate_bps| of(&run(&Scene { profile: path(rate_bps), ..Scene::default() }, |_, _| {}));
        assert_contradicts(&of_path(800e6), "carried more of UDP");
        // It came back when the load ended, as the reverse path does.
        assert_contradicts(&of_path(311e6), "carried more of UDP than in the last phase");
        assert_supports(&of_path(44e6));
        assert_contradicts(&of(&Scene::default().run(&[])), "did not change for good");
        // A bucket of some packets did not last for seconds, one of megabytes may have.
        let bucket = |packets| {
            let excess = Excess::WaitsAfter(packets);
            let path = ProfiledPath { rate_bps: 41.5e6, burst_bps: 2e9, excess, ..ProfiledPath::default() };
            of(&run(&Scene { profile: Some(path), ..Scene::default() }, |_, _| {}))
        };
        assert_supports(&bucket(26));
        assert_contradicts(&bucket(1_300), "behind a shaper");
    }
}
