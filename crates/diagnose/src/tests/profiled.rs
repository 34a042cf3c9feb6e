//! Verdicts where a profile of the path was made: what it says counts for more than what TCP's own figures suggest.

use super::Scene;
use crate::judge::Assessment;
use crate::testing::profile::{Excess, ProfiledPath};
use crate::testing::{
    assert_cannot_tell, assert_contradicts, assert_rejects, assessment, core, fact, lossy, named, ordinary_host, slow,
    tcp_end, udp::random_loss, verdict, virtual_hosts, with,
};
use crate::{causes, diagnose};
use narrows_model::host::fact::Unit;
use narrows_model::run::RunPlan;
use narrows_model::{Place, Status, TcpPlan};

fn cause(id: &str) -> &'static crate::judge::Cause<crate::evidence::tcp::TcpEvidence> {
    causes::tcp::TABLE.iter().find(|cause| cause.id == id).expect("in the table")
}

#[test]
fn segments_that_a_filter_drops_are_not_the_paths() {
    let scene = lossy(25_500, &[("filter.drop.packets", 170)]);
    named(&scene, &[], "filter-drop", Place::Server);
    // A tenth of them is not what slows it down.
    let few = lossy(25_347, &[("filter.drop.packets", 17)]);
    assert_contradicts(&assessment(cause("filter-drop"), crate::role::Role::Receiver, &few, &[]), "only 17 of 170");
}

#[test]
fn segments_that_wait_for_a_cpu_in_vain_are_not_the_paths() {
    let finding = named(&lossy(25_500, &[("softnet.dropped", 170)]), &[], "softnet-backlog", Place::Server);
    assert!(finding.fix.commands[0].run.contains("net.core.netdev_max_backlog="), "{:?}", finding.fix);
    // A core without time could not empty a longer backlog.
    let full = Scene { receiver_core: core(0.96, 0.02), ..lossy(25_500, &[("softnet.dropped", 170)]) };
    let backlog = assessment(cause("softnet-backlog"), crate::role::Role::Receiver, &full, &[]);
    assert_contradicts(&backlog, "could not empty a longer backlog");
}

#[test]
fn damaged_segments_are_told_from_lost_ones() {
    let finding = named(&lossy(25_500, &[("snmp.Tcp.InCsumErrors", 170)]), &[], "checksum-errors", Place::Path);
    assert!(finding.witnesses.len() >= 2, "{finding:#?}");
}

#[test]
fn loss_that_udp_meets_at_any_rate_is_the_paths() {
    let path = ProfiledPath { one_lost_of: Some(150), ..ProfiledPath::default() };
    // 15 segments a round trip at a loss of one of 150.
    let scene = Scene { goodput_bps: 5e6, segments: 3_450, lost: 23, cwnd: 15, profile: Some(path), ..slow() };
    random_loss(scene.run(&[]));
}

#[test]
fn much_loss_is_the_paths_though_its_capacity_was_not_reached() {
    // The steps ended at 4 Mbit/s, and BBR itself slows down at a loss of a fifth.
    let path = ProfiledPath { rate_bps: 16e6, tried_bps: 4.1e6, one_lost_of: Some(5), ..ProfiledPath::default() };
    let scene = Scene {
        goodput_bps: 3.7e6,
        congestion_control: "bbr",
        segments: 3_730,
        lost: 763,
        cwnd: 30,
        recovery: 0.8,
        profile: Some(path),
        ..slow()
    };
    random_loss(scene.run(&[]));
}

#[test]
fn a_quota_that_stops_the_threads_is_named_at_its_end() {
    let counts = vec![("cgroup.cpu.periods", 80), ("cgroup.cpu.throttled", 78), ("cgroup.cpu.throttled_us", 7_000_000)];
    let facts = with(ordinary_host(), fact("cgroup.cpu_quota", 0.03, Unit::Fraction));
    let scene = Scene { receiver_counts: counts, receiver_facts: facts.clone(), ..slow() };
    named(&scene, &[], "cgroup-cpu-throttle", Place::Server);
    // A quota that hardly stops them is none.
    let counts = vec![("cgroup.cpu.periods", 80), ("cgroup.cpu.throttled", 2), ("cgroup.cpu.throttled_us", 50_000)];
    let scene = Scene { receiver_counts: counts, receiver_facts: facts, ..slow() };
    let rule = cause("cgroup-cpu-throttle");
    assert_contradicts(&assessment(rule, crate::role::Role::Receiver, &scene, &[]), "the CPU quota throttled");
}

#[test]
fn a_writer_that_the_kernel_waits_for_is_slow_though_something_is_always_in_flight() {
    let mut scene = Scene { starved: true, cwnd: 800, ..slow() };
    scene.load.application.write_bps = 40_000_000;
    named(&scene, &[], "sender-app-slow", Place::Client);
    // A few losses do not slow a connection down that waits for its writer.
    named(&Scene { lost: 3, ..scene.clone() }, &[], "sender-app-slow", Place::Client);
    // A send buffer that is full looks the same to the kernel.
    let rule = cause("sender-app-slow");
    let scene = Scene { sndbuf: 0.9, ..scene };
    assert_contradicts(&assessment(rule, crate::role::Role::Sender, &scene, &[]), "had data to send 100 %");
}

#[test]
fn loss_too_rare_for_the_profile_is_told_by_the_room_that_the_path_has() {
    let path = ProfiledPath { rate_bps: 347e6, burst_bps: 347e6, ..ProfiledPath::default() };
    let scene = Scene { goodput_bps: 40e6, segments: 27_600, lost: 6, profile: Some(path), ..slow() };
    named(&scene, &[], "random-loss", Place::Path);
    // Three times far apart are enough where nothing on the path ever filled.
    named(&Scene { goodput_bps: 30e6, segments: 20_700, lost: 3, ..scene.clone() }, &[], "random-loss", Place::Path);
    // Where they were lost behind a queue, that is what dropped them.
    let filled = Scene { rtt_us: 60_000, ..scene };
    let rule = assessment(cause("random-loss"), crate::role::Role::Path, &filled, &[]);
    assert!(matches!(rule, Assessment::CannotTell { .. }), "{rule:?}");
}

#[test]
fn a_buffer_that_may_not_grow_is_no_small_maximum() {
    let facts = with(ordinary_host(), fact("tcp.moderate_rcvbuf", false, Unit::Flag));
    let scene =
        Scene { rwnd: 0.97, snd_wnd: 65_536, rcvbuf: 131_072, goodput_bps: 14.5e6, receiver_facts: facts, ..slow() };
    let finding = named(&scene, &[], "receive-autotuning-off", Place::Server);
    assert_eq!(finding.fix.commands[0].run, "sysctl -w net.ipv4.tcp_moderate_rcvbuf=1");
}

#[test]
fn packets_out_of_order_are_no_loss() {
    let path = ProfiledPath { reordered: 0.01, ..ProfiledPath::default() };
    let scene = Scene { spurious: 160, profile: Some(path), ..lossy(25_500, &[]) };
    named(&scene, &[], "reordering", Place::Path);
    // RACK repairs little of it, and BBR does not mind: the congestion control answers to what the path does.
    let heavy = Scene { spurious: 0, lost: 3, reord_seen: 900, ..scene.clone() };
    let bbr = Scene { goodput_bps: 600e6, congestion_control: "bbr", ..heavy.clone() };
    let finding = named(&heavy, &[("other-congestion-control", &bbr)], "reordering", Place::Path);
    assert_rejects(&finding, "congestion-control", "900 segments arrived after later ones");
    // Beside so many a few losses at capacity are no more than that.
    let some = Scene { lost: 260, spurious: 11, reord_seen: 4_000, ..scene.clone() };
    named(&some, &[], "reordering", Place::Path);
    // What was lost was not out of order.
    let lost = Scene { spurious: 10, lost: 170, reord_seen: 30, ..scene.clone() };
    let rule = cause("reordering");
    assert_contradicts(
        &assessment(rule, crate::role::Role::Path, &lost, &[]),
        "of 170 retransmitted segments 160 were lost",
    );
    // In order, nothing is to be said of it.
    let scene = Scene { profile: Some(ProfiledPath::default()), ..scene };
    assert_contradicts(&assessment(rule, crate::role::Role::Path, &scene, &[]), "out of order");
}

/// Reno behind CoDel of 40 Mbit/s at 60 ms: it waits for a few milliseconds each time before a segment is dropped or marked, and climbs
/// back from half of its window.
fn behind_codel() -> Scene {
    let path = ProfiledPath {
        rate_bps: 40e6,
        burst_bps: 40e6,
        idle_rtt_us: 60_000,
        tried_bps: 56e6,
        ..ProfiledPath::default()
    };
    Scene {
        goodput_bps: 27e6,
        min_rtt_us: 60_000,
        rtt_us: 64_500,
        segments: 18_700,
        lost: 6,
        cwnd: 215,
        congestion_control: "reno",
        early_peak_bps: 27e6,
        profile: Some(path),
        ..slow()
    }
}

#[test]
fn a_managed_queue_that_drops_or_marks_a_few_segments_is_a_path_at_capacity() {
    let dropping = behind_codel();
    let bbr = Scene { goodput_bps: 38e6, congestion_control: "bbr", ..dropping.clone() };
    let marking = Scene { lost: 0, marked: 6.0 / 18_700.0, goodput_bps: 26e6, ..dropping.clone() };
    let often = Scene { marked: 0.002, ..marking.clone() };
    for scene in [&dropping, &marking, &often] {
        let verdict = verdict(scene, &[("other-congestion-control", &bbr)]);
        assert_eq!((verdict.status, &*verdict.causes[0].id), (Status::Healthy, "path-capacity"), "{verdict:#?}");
    }
    // 40 Mbit/s in 60 ms are 290 kB: what a smaller buffer leaves unused is not the congestion control's part.
    let small = with(ordinary_host(), fact("tcp.wmem.max", 200_000_i64, Unit::Bytes));
    let held = verdict(&Scene { sender_facts: small, ..dropping.clone() }, &[("other-congestion-control", &bbr)]);
    assert_ne!(held.status, Status::Healthy, "{held:#?}");
    let rule = |id, scene: Scene| assessment(cause(id), crate::role::Role::Path, &scene, &[]);
    assert_contradicts(&rule("random-loss", Scene { lost: 40, ..dropping.clone() }), "when the load filled the path");
    assert_contradicts(&rule("ecn-marking", often.clone()), "when the load filled the path");
    // Marks and losses that come while nothing waits, or long before the path is full, are none of a queue.
    let few = Scene { cwnd: 120, goodput_bps: 15e6, ..often };
    named(&few, &[], "ecn-marking", Place::Path);
    let early = Scene { cwnd: 120, goodput_bps: 15e6, rtt_us: 60_300, ..dropping.clone() };
    named(&early, &[], "random-loss", Place::Path);
    // Half of the path is less than any congestion control gets of a short queue.
    let slower = Scene { goodput_bps: 20e6, ..dropping };
    assert_contradicts(&rule("path-capacity", slower), "52 % of that");
}

#[test]
fn a_full_way_back_is_no_path_at_capacity() {
    // 1600 acknowledgements a second are 660 kbit/s.
    let back = ProfiledPath { rate_bps: 800e3, burst_bps: 800e3, ..ProfiledPath::default() };
    let (acks, reverse_path) = (Some([12_750, 12_750]), Some(back));
    let scene = Scene { rtt_us: 180_000, rtt_high_us: Some(260_000), cwnd: 700, acks, reverse_path, ..slow() };
    named(&scene, &[], "reverse-path-congested", Place::Path);
    // Where UDP shows that this direction carries no more, it is the path that is full.
    let path = ProfiledPath { rate_bps: 39.5e6, burst_bps: 39.5e6, ..ProfiledPath::default() };
    let verdict = verdict(&Scene { profile: Some(path), ..scene }, &[]);
    assert_eq!((verdict.status, &*verdict.causes[0].id), (Status::Healthy, "path-capacity"), "{verdict:#?}");
}

#[test]
fn what_waits_at_the_sender_or_is_overtaken_is_not_the_way_back() {
    let way_back = Scene { rtt_us: 180_000, rtt_high_us: Some(260_000), cwnd: 700, ..slow() };
    let ids = |scene: &Scene| verdict(scene, &[]).causes.into_iter().map(|cause| cause.id).collect::<Vec<_>>();
    let capped = Scene { max_pacing_bytes_s: (way_back.goodput_bps / 8.0) as u64, ..way_back.clone() };
    assert_eq!(ids(&capped), ["pacing-cap"]);
    let path = ProfiledPath { reordered: 0.1, ..ProfiledPath::default() };
    assert!(!ids(&Scene { profile: Some(path), ..way_back }).contains(&"reverse-path-congested".to_owned()));
}

#[test]
fn a_window_counts_for_more_than_a_queue_where_the_path_has_room() {
    let scene = Scene {
        rwnd: 0.9,
        snd_wnd: 162_000,
        rcvbuf: 262_144,
        receiver_facts: with(ordinary_host(), fact("tcp.rmem.max", 262_144_i64, Unit::Bytes)),
        profile: Some(ProfiledPath { rate_bps: 100e6, burst_bps: 100e6, ..ProfiledPath::default() }),
        ..slow()
    };
    let finding = named(&scene, &[], "tcp-receive-window", Place::Server);
    // The path that was measured is what comes next, not the link of 1 Gbit/s.
    let prediction = finding.prediction.expect("a prediction");
    assert!((90e6..100e6).contains(&prediction.bps), "{prediction:#?}");
}

#[test]
fn policers_and_shapers_are_told_by_what_exceeds_their_rate() {
    let at = |excess| ProfiledPath { rate_bps: 40e6, burst_bps: 900e6, excess, ..ProfiledPath::default() };
    let policed = Scene { lost: 300, profile: Some(at(Excess::DroppedAfter(40))), ..slow() };
    let finding = named(&policed, &[], "path-policer", Place::Path);
    assert!(finding.fix.advice.contains("(40.0 Mbit/s, headers included)"), "{}", finding.fix.advice);
    assert!(finding.prediction.is_some_and(|prediction| prediction.bps > 500e6), "bursts passed at 900 Mbit/s");
    // What passes as fast as it was sent is a lower bound.
    let bursts = |sends_bps| ProfiledPath { burst_bps: 400e6, sends_bps, ..at(Excess::DroppedAfter(40)) };
    let of =
        |path| named(&Scene { profile: Some(path), ..policed.clone() }, &[], "path-policer", Place::Path).prediction;
    assert!(
        of(bursts(100e9)).is_some_and(|it| it.interval_bps.is_some() && it.then == "path-capacity"),
        "slowed by the path"
    );
    let long = ProfiledPath { excess: Excess::DroppedAfter(300), ..bursts(380e6) };
    let foretold = of(long);
    assert!(
        foretold.as_ref().is_some_and(|it| it.interval_bps.is_none() && it.bps > 300e6),
        "as it was sent: {foretold:?}"
    );
    // Forty packets pass the bucket of another limit behind it, too.
    assert!(of(bursts(380e6)).is_none_or(|it| it.interval_bps.is_none() && it.bps <= 40e6), "what it sustains");
    let words = |sends_bps| {
        let run = Scene { profile: Some(bursts(sends_bps)), ..policed.clone() }.run(&[]);
        crate::evidence::profile::of_run(&run, 0).expect("a profile").words()
    };
    assert!(words(100e9).ends_with("pass at 400 Mbit/s)"), "{}", words(100e9));
    assert!(words(380e6).ends_with("pass at 380 Mbit/s or more)"), "{}", words(380e6));
    // What else holds TCP back below the policer's rate gives the policer's rate once it is gone, and not that of bursts.
    let mut paced = Scene { goodput_bps: 9.5e6, max_pacing_bytes_s: 1_200_000, cwnd: 400, ..policed.clone() };
    paced.lost = 0;
    paced.load.pacing_bps = Some(9_600_000);
    let finding = named(&paced, &[], "pacing-cap", Place::Client);
    assert!(finding.prediction.is_some_and(|prediction| (25e6..40e6).contains(&prediction.bps)), "the policer is next");
    let shaped = Scene { rtt_us: 90_000, cwnd: 300, profile: Some(at(Excess::WaitsAfter(800))), ..slow() };
    let advice = named(&shaped, &[], "path-shaper", Place::Path).fix.advice;
    assert!(advice.contains("to 40.0 Mbit/s, headers included"), "{advice}");
    // A bucket that lasts for milliseconds is simply the capacity, and the report says so.
    let small = Scene { profile: Some(at(Excess::WaitsAfter(60))), ..shaped.clone() };
    let verdict = crate::testing::verdict(&small, &[]);
    assert_eq!((verdict.status, &*verdict.causes[0].id), (Status::Healthy, "path-capacity"), "{verdict:#?}");
    assert!(verdict.headline.contains("behind a shaper (bursts of"), "{}", verdict.headline);
    // TCP that a policer starves is limited by it, although it gets next to nothing of its rate.
    let starved = Scene { goodput_bps: 40e3, lost: 40_000, profile: Some(at(Excess::DroppedAfter(40))), ..slow() };
    let finding = named(&starved, &[], "path-policer", Place::Path);
    assert!(finding.witnesses.iter().all(|witness| witness.kind != "ceiling"), "{:?}", finding.witnesses);
    // The same queue without a first burst is an ordinary bottleneck.
    let path = ProfiledPath { rate_bps: 40e6, burst_bps: 40e6, ..ProfiledPath::default() };
    let verdict = crate::testing::verdict(&Scene { profile: Some(path), ..shaped }, &[]);
    assert_eq!((verdict.status, &*verdict.causes[0].id), (Status::Healthy, "path-capacity"), "{verdict:#?}");
}

#[test]
fn a_path_that_changed_in_the_middle_is_not_healthy_at_the_mean() {
    let load = TcpPlan { interval_ms: 100, ..Scene::default().load };
    let mut run = Scene { load, ..Scene::default() }.run(&[]);
    for end in [true, false] {
        let trial = &mut run.trials[0].trial;
        for sample in &mut tcp_end(if end { &mut trial.client } else { &mut trial.server }).streams[0].samples {
            // 300 Mbit/s for four seconds, then 40.
            let (early, late) = (sample.at_us.min(4_000_000), sample.at_us.saturating_sub(4_000_000));
            sample.bytes = early * 37 + late * 5;
            // In the second phase one segment of 50 is lost, the RTT rises, and the receiver's window is full for half of the time.
            sample.tcp.data_segs_out = Some((early * 37 + late * 5) / 1000);
            sample.tcp.total_retrans = Some(late * 5 / 50_000);
            sample.tcp.rtt_us = Some(if late > 0 { 80_000 } else { 44_000 });
            sample.tcp.rwnd_limited_us = Some(late / 2);
        }
    }
    let diagnosis = diagnose(&run, 0).expect("a baseline");
    assert_eq!(diagnosis.accounts.phases.len(), 2, "{:?}", diagnosis.accounts.phases);
    assert_ne!(diagnosis.verdict.status, Status::Healthy, "{:#?}", diagnosis.verdict);
    let [first, second] = diagnosis.accounts.phases[..] else { panic!("two phases") };
    assert_eq!((first.rtt_us, second.rtt_us), (Some(44_000.0), Some(80_000.0)));
    assert!(first.retransmitted.is_some_and(|again| again <= 20), "a phase ends near its step: {first:?}");
    let (sent, again) = (second.sent.expect("sent"), second.retransmitted.expect("counted"));
    assert!((15_000..=25_000).contains(&sent) && (370..=410).contains(&again), "{sent} {again}");
    let shares = second.shares.expect("limited times");
    assert!((shares.receive_window - 0.5).abs() < 0.02 && shares.send_buffer == 0.0, "{shares:?}");
    assert!((shares.receive_window + shares.send_buffer + shares.rest - 1.0).abs() < 1e-9);
    let headline = &diagnosis.verdict.headline;
    assert!(headline.contains(" to 7.9 s cost the most, "), "{headline}");
    assert!(headline.contains(": the RTT was 80.0 ms instead of 44.0 ms, "), "{headline}");
}

#[test]
fn a_path_that_is_full_of_small_packets_is_no_path_at_capacity() {
    let small = |bytes: i64| with(ordinary_host(), fact("nic.mtu", bytes, Unit::Bytes));
    let scene = Scene {
        goodput_bps: 238e6,
        mss: 348,
        rtt_us: 44_000,
        sender_facts: with(small(1500), fact("nic.kind", "veth", Unit::Text)),
        receiver_facts: with(small(400), fact("nic.kind", "veth", Unit::Text)),
        profile: Some(ProfiledPath { rate_bps: 274e6, burst_bps: 274e6, ..ProfiledPath::default() }),
        ..Scene::default()
    };
    named(&scene, &[], "mtu-mismatch", Place::Server);
}

#[test]
fn a_path_at_capacity_below_what_was_promised_is_limited_by_it() {
    let expecting = |bps| {
        let mut run = Scene { profile: Some(ProfiledPath::default()), ..Scene::default() }.run(&[]);
        let RunPlan::Diagnose(plan) = &mut run.plan else { panic!("a diagnosis") };
        plan.expect_bps = Some(bps);
        diagnose(&run, 0).expect("a baseline").verdict
    };
    assert_eq!(expecting(1_000_000_000).status, Status::Healthy);
    let verdict = expecting(2_000_000_000);
    assert_eq!((verdict.status, &*verdict.causes[0].id), (Status::Limited, "path-capacity"));
    assert_eq!(
        verdict.headline,
        "limited to 941 Mbit/s by the capacity of the path: 47 % of the 2.00 Gbit/s that were expected"
    );
}

#[test]
fn what_else_two_hosts_send_each_other_is_named_and_not_the_path() {
    // 37 Mbit/s for 8 s are 39 MB; as much again is not of this connection.
    let path = ProfiledPath { rate_bps: 80e6, burst_bps: 80e6, ..ProfiledPath::default() };
    let of = |bytes| Scene {
        profile: Some(path),
        sender_counts: vec![("nic.counter.tx_bytes", bytes)],
        receiver_counts: vec![("nic.counter.rx_bytes", bytes)],
        ..slow()
    };
    named(&of(78_000_000), &[], "competing-traffic", Place::Path);
    // Ten times as much did not pass this path.
    assert_cannot_tell(
        &assessment(cause("competing-traffic"), crate::role::Role::Path, &of(390_000_000), &[]),
        "another path",
    );
    // The connection alone leaves half of the path unused, for another reason.
    let rule = cause("competing-traffic");
    assert_contradicts(&assessment(rule, crate::role::Role::Path, &of(38_500_000), &[]), "uses 0 % of the capacity");
}

#[test]
fn a_path_that_others_share_is_full_at_what_they_leave() {
    let path = ProfiledPath { rate_bps: 100e6, burst_bps: 100e6, others_bps: 60e6, ..ProfiledPath::default() };
    let scene = Scene { rtt_us: 90_000, cwnd: 290, acks: Some([12_750, 12_750]), profile: Some(path), ..slow() };
    let full = verdict(&scene, &[]);
    assert_eq!((full.status, &*full.causes[0].id), (Status::Healthy, "path-capacity"), "{full:#?}");
    assert!(
        full.headline.contains("sustains 40.0 Mbit/s behind a queue beside 60.0 Mbit/s of other traffic"),
        "{}",
        full.headline
    );
    // Both hosts see the others: the whole link counts.
    let bytes = 98_000_000;
    let seen = Scene {
        sender_counts: vec![("nic.counter.tx_bytes", bytes)],
        receiver_counts: vec![("nic.counter.rx_bytes", bytes)],
        ..scene
    };
    named(&seen, &[], "competing-traffic", Place::Path);
}

/// The verdict on 100 Mbit/s of UDP of which one of twenty datagrams died on the path.
#[test]
fn a_limit_that_was_not_reached_is_a_lower_bound_and_does_not_bind() {
    let reader = Scene { goodput_bps: 50e6, rwnd: 0.98, snd_wnd: 1_000_000, recv_q: 3_000_000, cwnd: 500, ..slow() };
    let of = |tried_bps, busy| {
        let profile = Some(ProfiledPath { tried_bps, ..ProfiledPath::default() });
        let scene = Scene {
            profile,
            sender_core: core(0.0, busy),
            receiver_core: core(0.0, busy),
            sender_thread: busy,
            receiver_thread: 0.0,
            ..reader.clone()
        };
        named(&virtual_hosts(scene), &[], "receiver-app-slow", Place::Server).prediction.expect("a profile")
    };
    // The steps ended at 850 Mbit/s, of which 1448 of 1500 bytes are payload.
    let open = of(0.9e9, 0.05);
    assert_eq!((open.interval_bps, &*open.then), (None, ""), "{open:?}");
    assert!((800e6..830e6).contains(&open.bps), "{open:?}");
    // That was UDP: 50 Mbit/s of TCP take a quarter of a core, so that four times as much is all that is known to be possible.
    assert_eq!(of(0.9e9, 0.25).bps, 200e6);
    // They reached 1 Gbit/s, and a queue.
    let known = of(2e9, 0.25);
    assert!(known.interval_bps.is_some_and(|[low, high]| low < known.bps && known.bps < high), "{known:?}");
    assert_eq!((&*known.then, known.bps > 930e6), ("path-capacity", true), "{known:?}");
}

#[test]
fn a_ceiling_says_how_it_compares_with_what_was_measured() {
    let of = |goodput_bps| {
        let path = ProfiledPath { rate_bps: 100e6, burst_bps: 100e6, ..ProfiledPath::default() };
        let scene = Scene { goodput_bps, rtt_us: 80_000, cwnd: 600, profile: Some(path), ..Scene::default() };
        let ceiling = verdict(&scene, &[]).causes[0].witnesses[0].clone();
        assert_eq!(ceiling.kind, "ceiling");
        ceiling.says.rsplit_once(" headers), ").expect("a ceiling less headers").1.to_owned()
    };
    // 100 Mbit/s, of which 1448 of 1500 bytes are payload, are 96.5.
    assert_eq!(of(96.5e6), "equals the measured 96.5 Mbit/s");
    assert_eq!(of(99.4e6), "is 3 % below the measured 99.4 Mbit/s: both are accurate to 6 %");
    assert_eq!(of(92.6e6), "is 4 % above the measured 92.6 Mbit/s");
}
