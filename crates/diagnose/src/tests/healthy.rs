//! Healthy hosts and paths in situations that look like faults. Accusing one of them is the worst error there is, so
//! each must end as healthy or as unknown.

use crate::experiments::tcp::MORE_STREAMS;
use crate::testing::profile::ProfiledPath;
use crate::testing::{
    Hidden, Scene, core, fact, link, next, no_more, ordinary_host, verdict, virtual_hosts, with, without,
};
use narrows_model::host::fact::Unit;
use narrows_model::load::host::CpuTimes;
use narrows_model::load::tcp::{Limit, TcpPlan};
use narrows_model::run::RunPlan;
use narrows_model::{Fact, Family, Status, TcpInfo};

#[track_caller]
fn healthy(scene: &Scene, experiments: &[(&str, &Scene)]) {
    let verdict = verdict(scene, experiments);
    assert_eq!(verdict.status, Status::Healthy, "{verdict:#?}");
    assert_eq!(verdict.causes[0].id, "path-capacity");
}

#[track_caller]
fn unknown(scene: &Scene, experiments: &[(&str, &Scene)]) {
    let verdict = verdict(scene, experiments);
    assert_eq!(verdict.status, Status::Unknown, "{verdict:#?}");
}

/// 600 Mbit/s between hosts of 1 Gbit/s under BBR: the path is the limit, and no queue stands.
fn bbr_below_the_link() -> Scene {
    Scene {
        goodput_bps: 600e6,
        early_peak_bps: 640e6,
        rtt_us: 36_500,
        cwnd: 3_700,
        segments: 415_000,
        congestion_control: "bbr",
        ..Scene::default()
    }
}

#[test]
fn bbr_at_the_capacity_of_the_path_keeps_no_queue_and_is_asked_for_more_streams() {
    let scene = bbr_below_the_link();
    unknown(&scene, &[]);
    assert_eq!(next(&scene, &[]), [MORE_STREAMS.id]);
    let more = Scene { load: TcpPlan { streams: 4, ..scene.load.clone() }, goodput_bps: 612e6, ..scene.clone() };
    healthy(&scene, &[("more-streams", &more)]);
    // Where four streams do carry more it was not the path, and still no one is accused.
    unknown(&scene, &[("more-streams", &Scene { goodput_bps: 900e6, ..more })]);
}

#[test]
fn bbr_does_not_mind_a_little_random_loss() {
    let scene = Scene { lost: 2_000, ..bbr_below_the_link() };
    let paced = Scene { goodput_bps: 300e6, segments: 77_000, lost: 370, ..scene.clone() };
    let more = Scene { load: TcpPlan { streams: 4, ..scene.load.clone() }, goodput_bps: 612e6, ..scene.clone() };
    let verdict = verdict(&scene, &[("paced-half", &paced), ("more-streams", &more)]);
    assert!(matches!(verdict.status, Status::Healthy | Status::Unknown), "{verdict:#?}");
}

#[test]
fn bbr_in_front_of_a_short_queue_is_no_policer() {
    // It fills the queue of a few milliseconds again and again, loses 1 % there and carries all that the path can.
    let scene = Scene { lost: 4_000, rtt_us: 35_900, rtt_high_us: Some(37_500), ..bbr_below_the_link() };
    let paced = Scene { goodput_bps: 300e6, segments: 77_000, lost: 0, ..scene.clone() };
    unknown(&scene, &[("paced-half", &paced)]);
    let more = Scene { load: TcpPlan { streams: 4, ..scene.load.clone() }, goodput_bps: 612e6, ..scene.clone() };
    healthy(&scene, &[("paced-half", &paced), ("more-streams", &more)]);
}

#[test]
fn cubic_in_front_of_a_switch_with_a_short_queue_is_no_policer() {
    // 500 Mbit/s somewhere in the middle, a queue of 3 ms on a path of 35 ms: the median hardly grows.
    let scene = virtual_hosts(Scene {
        goodput_bps: 470e6,
        early_peak_bps: 490e6,
        rtt_us: 35_900,
        rtt_high_us: Some(37_800),
        lost: 180,
        segments: 325_000,
        cwnd: 1_450,
        ..Scene::default()
    });
    let paced = Scene { goodput_bps: 235e6, segments: 60_000, lost: 0, ..scene.clone() };
    let bbr = Scene { goodput_bps: 485e6, congestion_control: "bbr", ..scene.clone() };
    let more = Scene { load: TcpPlan { streams: 4, ..scene.load.clone() }, goodput_bps: 489e6, ..scene.clone() };
    let measured = [("paced-half", &paced), ("other-congestion-control", &bbr)];
    unknown(&scene, &measured);
    healthy(&scene, &[measured[0], measured[1], ("more-streams", &more)]);
}

#[test]
fn one_packet_in_ten_thousand_on_a_short_path_costs_nothing() {
    let lossy = Scene { min_rtt_us: 300, rtt_us: 520, lost: 65, segments: 650_000, ..Scene::default() };
    healthy(&lossy, &[]);
    // Nor where the links are not known: at 0.01 % CUBIC would carry several times as much.
    let lossy = virtual_hosts(lossy);
    let paced = Scene { goodput_bps: 470e6, segments: 100_000, lost: 11, ..lossy.clone() };
    unknown(&lossy, &[("paced-half", &paced)]);
}

#[test]
fn bufferbloat_is_at_capacity_whatever_fills_on_the_hosts() {
    // 20 Mbit/s with half a second of queue: windows and send buffer fill, and a neighbour keeps the only cores busy.
    let bloated = virtual_hosts(Scene {
        goodput_bps: 19e6,
        early_peak_bps: 21e6,
        min_rtt_us: 20_000,
        rtt_us: 520_000,
        rwnd: 0.6,
        sndbuf: 0.3,
        snd_wnd: 1_250_000,
        rcvbuf: 2_500_000,
        segments: 13_000,
        ..Scene::default()
    });
    healthy(&bloated, &no_more(&bloated));
    let full = CpuTimes { user_us: 8_000_000, ..CpuTimes::default() };
    let busy = Scene { sender_core: full, receiver_core: full, other_core: full, ..bloated };
    healthy(&busy, &no_more(&busy));
}

#[test]
fn a_short_path_where_scheduling_adds_to_the_rtt_is_full_all_the_same() {
    let short = Scene { min_rtt_us: 120, rtt_us: 460, rwnd: 0.9, snd_wnd: 65_000, cwnd: 45, ..Scene::default() };
    healthy(&short, &[]);
}

#[test]
fn a_host_of_1_gbit_is_not_slow_because_the_other_has_10() {
    // The two hosts of 2007: 942 Mbit/s, an end with 10 Gbit/s and an MTU of 9000, the other with 1 Gbit/s and 1500.
    let big = || with(link(10_000, ordinary_host()), fact("nic.mtu", 9000_i64, Unit::Bytes));
    let scene = Scene { goodput_bps: 942e6, sender_facts: big(), ..Scene::default() };
    healthy(&scene, &[]);
    healthy(&Scene { receiver_facts: big(), sender_facts: ordinary_host(), ..scene.clone() }, &[]);
    // With its fastest mode known it is told apart from a link that came up too slow.
    let best = with(ordinary_host(), fact("nic.speed.max", 1_000_000_000_i64, Unit::BitsPerSecond));
    healthy(&Scene { receiver_facts: best, ..scene }, &[]);
}

#[test]
fn a_virtual_device_may_say_any_speed() {
    for kind in ["veth", "virtual", "bridge", "wireguard", "unknown"] {
        for mbps in [10, 1_000, 10_000] {
            let host = || with(link(mbps, ordinary_host()), fact("nic.kind", kind, Unit::Text));
            let scene = Scene { sender_facts: host(), receiver_facts: host(), ..Scene::default() };
            // The queue says that the path is full; the speed adds nothing.
            healthy(&scene, &no_more(&scene));
            let verdict = verdict(&scene, &no_more(&scene));
            assert!(!verdict.causes[0].witnesses.iter().any(|witness| witness.says.contains("slower link")), "{kind}");
        }
    }
}

#[test]
fn a_goodput_above_the_link_speed_says_that_the_speed_is_none() {
    let host = || link(100, ordinary_host());
    unknown(&Scene { rtt_us: 35_100, sender_facts: host(), receiver_facts: host(), ..Scene::default() }, &[]);
}

#[test]
fn ipv6_and_jumbo_frames_fill_the_link_with_other_headers() {
    healthy(&Scene { goodput_bps: 928e6, mss: 1428, family: Family::Ipv6, ..Scene::default() }, &[]);
    let jumbo = || with(ordinary_host(), fact("nic.mtu", 9000_i64, Unit::Bytes));
    let both =
        Scene { goodput_bps: 990e6, mss: 8948, sender_facts: jumbo(), receiver_facts: jumbo(), ..Scene::default() };
    let path = |scene: Scene, mtu: i64| Scene {
        sender_facts: with(scene.sender_facts, fact("path.mtu", mtu, Unit::Bytes)),
        ..scene
    };
    healthy(&path(both.clone(), 9000), &[]);
    // Two jumbo hosts with the Internet between them, over IPv4 and IPv6: 1500 is no fault of the path.
    healthy(&path(Scene { goodput_bps: 941e6, mss: 1448, ..both.clone() }, 1500), &[]);
    healthy(&path(Scene { goodput_bps: 928e6, mss: 1428, family: Family::Ipv6, ..both }, 1500), &[]);
}

#[test]
fn a_container_behind_a_veth_without_gro_and_a_busy_neighbour_is_not_at_fault() {
    let scene = virtual_hosts(Scene { goodput_bps: 300e6, early_peak_bps: 310e6, rtt_us: 37_000, ..Scene::default() });
    let no_gro = with(scene.receiver_facts.clone(), fact("nic.feature.gro", false, Unit::Flag));
    let neighbour = CpuTimes { user_us: 7_900_000, idle_us: 100_000, ..CpuTimes::default() };
    let scene = Scene { receiver_facts: no_gro, receiver_core: neighbour, ..scene };
    unknown(&scene, &[]);
}

#[test]
fn a_neighbour_that_keeps_a_core_busy_does_not_make_offloads_matter() {
    let no_gro = with(ordinary_host(), fact("nic.feature.gro", false, Unit::Flag));
    let neighbour = CpuTimes { user_us: 8_000_000, ..CpuTimes::default() };
    let scene = Scene {
        goodput_bps: 300e6,
        rtt_us: 35_300,
        receiver_facts: no_gro,
        receiver_core: neighbour,
        ..Scene::default()
    };
    unknown(&scene, &[]);
}

#[test]
fn a_core_that_is_nearly_full_at_line_rate_costs_nothing() {
    let ten = || link(10_000, ordinary_host());
    let scene = Scene {
        goodput_bps: 9.41e9,
        segments: 6_500_000,
        sender_thread: 0.96,
        sender_core: core(0.1, 0.88),
        receiver_core: core(0.92, 0.05),
        sender_facts: ten(),
        receiver_facts: with(ten(), fact("nic.feature.gro", false, Unit::Flag)),
        ..Scene::default()
    };
    healthy(&scene, &[]);
    assert_eq!(next(&scene, &[]), [""; 0], "a full link leaves nothing to separate");
}

#[test]
fn a_slot_with_fewer_lanes_than_the_card_has_can_be_wide_enough() {
    let slot = |gbit: i64| {
        let facts =
            with(link(10_000, ordinary_host()), fact("pcie.bandwidth", gbit * 1_000_000_000, Unit::BitsPerSecond));
        with(facts, fact("pcie.bandwidth.max", 32_000_000_000_i64, Unit::BitsPerSecond))
    };
    let scene = Scene {
        goodput_bps: 9.41e9,
        segments: 6_500_000,
        sender_facts: slot(16),
        receiver_facts: slot(32),
        ..Scene::default()
    };
    healthy(&scene, &[("other-direction", &scene.clone())]);
}

#[test]
fn a_cap_a_shaper_and_missing_options_are_harmless_on_a_full_link() {
    let cap = Scene { max_pacing_bytes_s: 125_000_000, rtt_us: 35_200, ..Scene::default() };
    healthy(&cap, &[]);
    let shaper = with(ordinary_host(), fact("qdisc.rate", 970_000_000_i64, Unit::BitsPerSecond));
    healthy(&Scene { sender_facts: shaper, sender_counts: vec![("qdisc.overlimits", 4_000)], ..Scene::default() }, &[]);
    let off = with(ordinary_host(), fact("tcp.sack", false, Unit::Flag));
    let options = TcpInfo::OPT_TIMESTAMPS | TcpInfo::OPT_WSCALE;
    healthy(&Scene { options, sender_facts: off, lost: 300, recovery: 0.4, ..Scene::default() }, &[]);
}

#[test]
fn a_shaper_for_other_traffic_is_not_the_senders() {
    // A class of 100 Mbit/s that this flow does not pass holds others back.
    let shaped = with(ordinary_host(), fact("qdisc.rate", 100_000_000_i64, Unit::BitsPerSecond));
    healthy(
        &Scene { sender_facts: shaped, sender_counts: vec![("qdisc.overlimits", 90_000)], ..Scene::default() },
        &[],
    );
}

#[test]
fn drops_of_other_traffic_are_not_this_connections() {
    let dropped = || vec![("qdisc.drops", 5_000)];
    // Nothing of this connection was lost.
    unknown(&Scene { goodput_bps: 300e6, rtt_us: 35_200, sender_counts: dropped(), ..Scene::default() }, &[]);
    // It lost a little, but a queue stands further on: the path is full whatever this host drops.
    let queued = virtual_hosts(Scene {
        goodput_bps: 300e6,
        early_peak_bps: 300e6,
        lost: 400,
        sender_counts: dropped(),
        ..Scene::default()
    });
    healthy(&queued, &no_more(&queued));
}

#[test]
fn a_few_rules_and_a_dhcp_client_do_not_fill_a_core() {
    let host = with(ordinary_host(), fact("taps.count", 1_i64, Unit::Number));
    let host = with(host, fact("netfilter.rules", 12_i64, Unit::Number));
    let scene = Scene {
        goodput_bps: 500e6,
        rtt_us: 35_300,
        receiver_core: core(0.87, 0.03),
        receiver_facts: host,
        ..Scene::default()
    };
    assert_ne!(verdict(&scene, &[]).status, Status::Limited);
}

#[test]
fn two_flows_that_share_a_path_are_no_shaper() {
    // The first moments take more than the fair half; then both rates go up and down.
    let scene = virtual_hosts(Scene {
        goodput_bps: 250e6,
        early_peak_bps: 420e6,
        min_rtt_us: 5_000,
        rtt_us: 11_000,
        wobble: 0.3,
        lost: 300,
        segments: 170_000,
        ..Scene::default()
    });
    healthy(&scene, &no_more(&scene));
}

#[test]
fn a_small_transfer_is_over_before_anything_can_be_said() {
    let scene = Scene {
        goodput_bps: 180e6,
        min_rtt_us: 5_000,
        rtt_us: 5_200,
        span_us: 90_000,
        segments: 1_450,
        load: TcpPlan { limit: Limit::BytesPerStream(2 << 20), ..Scene::default().load },
        ..Scene::default()
    };
    unknown(&scene, &[]);
    let steady = Scene { goodput_bps: 930e6, congestion_control: "bbr", ..Scene::default() };
    unknown(&scene, &[("other-congestion-control", &steady), ("more-streams", &steady)]);
    // A profile tells what slow start can make of the path: 396 Mbit/s of two megabytes.
    let path = ProfiledPath { idle_rtt_us: 5_000, ..ProfiledPath::default() };
    healthy(&Scene { profile: Some(path), ..scene.clone() }, &[]);
    let slow = Scene { goodput_bps: 100e6, profile: Some(path), ..scene };
    assert_ne!(verdict(&slow, &[]).status, Status::Healthy);
}

#[test]
fn an_application_that_waits_for_its_turn_is_not_slow() {
    // The writer shares its core with the packets of its own connection: neither fills it alone.
    let scene = Scene {
        goodput_bps: 700e6,
        rtt_us: 35_300,
        busy: 0.7,
        sender_thread: 0.6,
        sender_core: core(0.38, 0.6),
        ..Scene::default()
    };
    unknown(&scene, &[]);
}

#[test]
fn many_streams_add_up_to_a_full_path() {
    let load = TcpPlan { streams: 8, ..Scene::default().load };
    healthy(&Scene { load: load.clone(), ..Scene::default() }, &[]);
    let queued = virtual_hosts(Scene { load, goodput_bps: 480e6, early_peak_bps: 500e6, ..Scene::default() });
    healthy(&queued, &no_more(&queued));
}

#[test]
fn old_kernels_and_silent_hosts_are_not_accused() {
    let clean = || Scene { goodput_bps: 300e6, early_peak_bps: 300e6, rtt_us: 35_300, rwnd: 0.9, ..Scene::default() };
    for hidden in [
        &[Hidden::LimitedTimes] as &[Hidden],
        &[Hidden::SocketMemory],
        &[Hidden::BufferLock, Hidden::SocketMemory],
        &[Hidden::Rtt],
        &[Hidden::Options, Hidden::Mss],
        &[Hidden::Cores, Hidden::Threads, Hidden::Segments],
    ] {
        let scene = Scene { hidden, sender_facts: Vec::new(), receiver_facts: Vec::new(), ..clean() };
        let verdict = verdict(&scene, &[]);
        assert_eq!(verdict.status, Status::Unknown, "{hidden:?}: {verdict:#?}");
        assert!(!verdict.missing.is_empty(), "{hidden:?}");
    }
    // A queue says that something is at capacity; whether it stands on the path or in a host's device, only the hosts can say.
    let bare = |facts: Vec<Fact>| Scene {
        sender_facts: facts.clone(),
        receiver_facts: facts,
        hidden: &[Hidden::BufferLock],
        ..Scene::default()
    };
    unknown(&bare(Vec::new()), &[]);
    let kind = || fact("nic.kind", "virtual", Unit::Text);
    unknown(&bare(vec![kind()]), &[]);
    let known = bare(vec![kind(), fact("qdisc.root.kind", "pfifo_fast", Unit::Text)]);
    healthy(&known, &no_more(&known));
    healthy(&Scene { sender_facts: without(ordinary_host(), "tcp.wmem.max"), ..Scene::default() }, &[]);
}

#[test]
fn a_load_at_the_servers_own_limit_says_nothing_of_the_path() {
    let limited = |goodput_bps, asked| {
        let load = TcpPlan { pacing_bps: Some(200_000_000), ..Scene::default().load };
        let scene = Scene {
            goodput_bps,
            rtt_us: 35_100,
            cwnd: 1_200,
            max_pacing_bytes_s: 25_000_000,
            load,
            ..Scene::default()
        };
        let mut run = scene.run(&[]);
        let RunPlan::Diagnose(plan) = &mut run.plan else { panic!("a diagnosis") };
        plan.load = TcpPlan { pacing_bps: asked, ..scene.load }.into();
        crate::report(&run).expect("a baseline")
    };
    let own = limited(198e6, Some(200_000_000)).verdict;
    assert_eq!((own.status, own.causes[0].id.as_str()), (Status::Limited, "pacing-cap"), "the user's own cap");
    for asked in [None, Some(500_000_000)] {
        let report = limited(198e6, asked);
        let verdict = &report.verdict;
        assert_eq!((verdict.status, verdict.causes.len()), (Status::Unknown, 0), "{verdict:#?}");
        assert!(verdict.headline.contains("limits clients without its token to 200 Mbit/s"), "{}", verdict.headline);
        assert!(verdict.headline.contains("`narrows serve --open-rate`"), "{}", verdict.headline);
        assert_eq!(report.run.server_limit_bps, Some(200_000_000));
    }
    // Well below its limit the server is not what limits, and nothing above it is predicted.
    let below = limited(90e6, None).verdict;
    assert!(!below.headline.contains("above that is unknown"), "{}", below.headline);
    assert!(below.causes.iter().all(|cause| cause.id != "pacing-cap"), "{below:#?}");
    assert!(below.causes.iter().all(|cause| cause.predicted_bps.is_none_or(|bps| bps <= 200e6)), "{below:#?}");
}

#[test]
fn a_capacity_that_fell_after_the_load_is_no_capacity_of_the_load() {
    let scene = Scene {
        goodput_bps: 287e6,
        early_peak_bps: 290e6,
        min_rtt_us: 12_100,
        rtt_us: 63_500,
        cwnd: 1_600,
        profile: Some(ProfiledPath { rate_bps: 39.6e6, ..ProfiledPath::default() }),
        ..Scene::default()
    };
    let more = Scene { load: TcpPlan { streams: 4, ..scene.load.clone() }, goodput_bps: 38.2e6, ..scene.clone() };
    let said = verdict(&scene, &[("more-streams", &more)]);
    assert_eq!(said.status, Status::Healthy, "{said:#?}");
    assert!(
        said.headline.contains("in the profile after it") && said.headline.contains("not constant"),
        "{}",
        said.headline
    );
}
