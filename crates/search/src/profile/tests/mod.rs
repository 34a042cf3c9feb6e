//! Profiles of simulated paths: a queue, a policer, random loss, jitter.

mod path;

use super::{Below, Next, Plateau, Shape, Staircase};
use narrows_model::{Direction, Place, ProfileEndRecord, ProfilePlan, ProfileStep, StepRecord, StepSent};
use path::{BYTES, HEADER, Path, bounded, profile, recorded};
use proptest::prelude::*;

fn near(value: f64, truth: f64, part: f64) -> bool {
    (value / truth - 1.0).abs() <= part
}

#[test]
fn a_queue_is_a_plateau_with_delay() {
    let (shape, seconds) = profile(&mut Path::new(100e6, 200_000.0), 90_000_000);
    let capacity = shape.capacity.expect("saturated");
    assert!(near(capacity.bps, 100e6, 0.02), "{capacity:?}");
    assert_eq!(shape.plateau, Some(Plateau::Queue));
    assert_eq!(shape.lost_below, 0);
    assert!(seconds < 3.0, "{seconds}");
}

#[test]
fn bursts_are_slowed_by_the_path_only_where_they_left_faster() {
    let of = |link_bps: f64, silent| {
        let shape = Some((0.08 * link_bps, 0.008 * link_bps));
        let (shape, _) = profile(&mut Path { shape, silent, ..Path::new(link_bps, 200_000.0) }, 20_000_000);
        assert!(near(shape.burst_bps.expect("trains"), link_bps, 0.02), "{shape:?}");
        shape.burst_slowed
    };
    assert!(of(1e9, false), "a train leaves at 6 Gbit/s");
    // Where that is not known: no step was as fast as these bursts; 100 Mbit/s are less than any host sends.
    assert!(!of(1e9, true));
    assert!(of(100e6, true));
}

#[test]
fn trains_that_meet_a_bucket_at_different_fills_are_no_rate_of_the_path() {
    let of = |spans_ms: [u64; 4]| {
        let (plan, mut record, _) = recorded(&mut Path::new(5.16e6, 200_000.0), 4_000_000, ProfilePlan::MAX_BPS);
        let trains = record.steps.iter_mut().filter(|step| step.step.gap_ns == 0);
        let spans = spans_ms.into_iter().cycle();
        trains.filter_map(|step| step.received.as_mut()).zip(spans).for_each(|(it, ms)| it.span_ns = ms * 1_000_000);
        Shape::of(&plan, &record).expect("a shape").burst_slowed
    };
    // Ten datagrams each through a bucket of 678 kbit/s, as drawn: what was refilled since the last passed at 5 Mbit/s.
    assert!(!of([148, 22, 63, 76]));
    assert!(of([21, 22, 23, 22]));
}

#[test]
fn trains_too_short_to_tell_had_no_credit_where_they_were_no_faster() {
    let (_, record, _) = recorded(&mut Path::new(1.5e9, 4e6), 200_000_000, ProfilePlan::MAX_BPS);
    let of = |bps| super::trains::credit(&record.steps, HEADER, bps, 0.0);
    assert_eq!((of(1.66e9), of(1.45e9), of(100e6)), (Some(false), None, Some(true)));
}

#[test]
fn a_queue_that_fills_slowly_shows_the_capacity_where_a_host_can_do_no_more() {
    let mut path = Path { jitter_ns: 300_000, ..Path::new(435e6, 4e6) };
    let (shape, _) = bounded(&mut path, 300_000_000, 447_000_000);
    let capacity = shape.capacity.expect("its queue fills");
    assert!(near(capacity.bps, 435e6, 0.01), "{capacity:?}");
    assert_eq!(shape.plateau, Some(Plateau::Queue));
}

#[test]
fn a_sender_that_is_late_in_every_step_still_shows_where_far_less_arrives() {
    let mut path = Path { police: Some((25e6, 60_000.0)), late_ns: 20_000_000, ..Path::new(170e6, 200_000.0) };
    let (shape, _) = profile(&mut path, 28_000_000);
    assert!(near(shape.capacity.expect("a plateau").bps, 25e6, 0.05), "{:?}", shape.capacity);
    assert!(!matches!(shape.plateau, Some(Plateau::Queue | Plateau::Shaper { .. })), "{:?}", shape.plateau);
}

#[test]
fn a_queue_that_outlasts_the_stops_of_the_sender_shows_the_capacity() {
    for (rate_bps, period_ms, length_ms) in [(6e6, 90, 8), (40e6, 60, 6), (200e6, 45, 4)] {
        let stops = Some((f64::from(period_ms) * 1e6, f64::from(length_ms) * 1e6));
        let queue_bytes = rate_bps / 8.0 * 0.035;
        let (shape, _) = profile(&mut Path { stops, ..Path::new(rate_bps, queue_bytes) }, (0.8 * rate_bps) as u64);
        assert!(shape.capacity.is_some(), "{rate_bps}: {shape:#?}");
        assert!(near(shape.capacity.expect("saturated").bps, rate_bps, 0.03), "{rate_bps}: {:?}", shape.capacity);
        assert_eq!(shape.plateau, Some(Plateau::Queue), "{rate_bps}: {shape:#?}");
    }
}

#[test]
fn a_limit_far_above_what_tcp_got_is_found() {
    let (shape, seconds) = profile(&mut Path::new(950e6, 500_000.0), 20_000_000);
    assert!(near(shape.capacity.expect("saturated").bps, 950e6, 0.02));
    assert!(seconds < 4.5, "{seconds}");
}

#[test]
fn a_policer_loses_at_once_what_a_link_that_bursts_pass_would_carry() {
    let mut path = Path { police: Some((40e6, 50_000.0)), ..Path::new(300e6, 300_000.0) };
    let (shape, _) = profile(&mut path, 25_000_000);
    assert!(near(shape.capacity.expect("saturated").bps, 40e6, 0.03), "{:?}", shape.capacity);
    assert!(shape.burst_bps.is_some_and(|bps| near(bps, 300e6, 0.1)), "{:?}", shape.burst_bps);
    let Some(Plateau::Policer { bucket_bytes }) = shape.plateau else { panic!("{:?}", shape.plateau) };
    assert!(near(bucket_bytes, 50_000.0, 0.25), "{bucket_bytes}");
}

#[test]
fn a_policer_just_below_the_rate_of_its_link_is_not_the_links_queue() {
    for (link, rate, bucket) in [(6.83e6, 5.42e6, 15_000.0), (6.83e6, 5.42e6, 6_000.0), (68.3e6, 54.2e6, 30_000.0)] {
        let mut path = Path { police: Some((rate, bucket)), police_last: true, ..Path::new(link, link / 8.0 * 0.03) };
        let (shape, _) = profile(&mut path, (0.8 * rate) as u64);
        assert!(!matches!(shape.plateau, Some(Plateau::Queue | Plateau::Shaper { .. })), "{link} {rate}: {shape:#?}");
    }
}

#[test]
fn what_others_leave_of_a_queue_is_the_capacity() {
    let (link, others, got) = (100e6, 60e6, 38e6);
    let mut path = Path { others_bps: others, ..Path::new(link, link / 8.0 * 0.05) };
    let (shape, _) = profile(&mut path, (1.25 * got) as u64);
    assert!(shape.gives_way(), "{shape:#?}");
    let shared = shape.shared.unwrap_or_else(|| panic!("{link} {others}: {shape:#?}"));
    assert!(near(shared.link_bps, link, 0.12) && near(shared.others_bps, others, 0.25), "{shared:?}");
    assert!(near(shape.capacity.expect("saturated").bps, link - others, 0.1), "{:?}", shape.capacity);
    assert_eq!(shape.plateau, Some(Plateau::Queue));
}

#[test]
fn nobody_shares_a_queue_a_policer_or_a_path_that_loses_at_any_rate() {
    let police = Path { police: Some((40e6, 50_000.0)), ..Path::new(300e6, 300_000.0) };
    let paths = [Path::new(50e6, 200_000.0), police, Path { loss: 0.12, ..Path::new(50e6, 200_000.0) }];
    for mut path in paths {
        for start in [5_000_000, 30_000_000, 70_000_000] {
            let shape = profile(&mut path.clone(), start).0;
            assert!(shape.shared.is_none() && !shape.gives_way(), "{path:?} from {start}: {shape:#?}");
        }
        path.seed += 2;
        assert_eq!(profile(&mut path, 60_000_000).0.shared, None, "{path:?}");
    }
}

#[test]
fn what_a_deep_bucket_lets_pass_is_not_sustained() {
    for rate_bps in [20e6, 100e6] {
        for seconds in [0.02, 0.2, 0.5, 1.0] {
            let bucket_bytes = rate_bps / 8.0 * seconds;
            let police = Path { police: Some((rate_bps, bucket_bytes)), ..Path::new(1e9, 500_000.0) };
            let shape = Path { shape: Some((rate_bps, bucket_bytes)), ..Path::new(1e9, rate_bps / 8.0 * 0.2) };
            for mut path in [police, shape] {
                let (shape, _) = profile(&mut path, (0.95 * rate_bps) as u64);
                let case = format!("{rate_bps} bit/s, a bucket of {seconds} s: {shape:#?}");
                assert!(near(shape.capacity.expect("saturated").bps, rate_bps, 0.03), "{case}");
                assert!(shape.carried_bps <= 1.03 * rate_bps, "{case}");
                match path.police {
                    Some(_) => assert!(matches!(shape.plateau, Some(Plateau::Policer { .. })), "{case}"),
                    None => assert!(matches!(shape.plateau, Some(Plateau::Shaper { .. })), "{case}"),
                }
            }
        }
    }
}

#[test]
fn a_burst_passes_at_what_a_whole_step_passed_at_though_trains_were_slowed() {
    let mut path = Path { shape: Some((100e6, 6e6)), ..Path::new(1e9, 2.5e6) };
    let (plan, mut record, _) = recorded(&mut path, 95_000_000, ProfilePlan::MAX_BPS);
    let trains = record.steps.iter_mut().filter(|step| step.step.gap_ns == 0);
    trains.filter_map(|step| step.received.as_mut()).for_each(|it| it.span_ns *= 20);
    let shape = Shape::of(&plan, &record).expect("steps");
    let whole = shape.steps.iter().filter(|step| step.lost == 0 && step.queue_us < 1_000.0);
    let fastest = whole.map(super::StepView::delivered_bps).fold(0.0, f64::max);
    assert!(fastest > 110e6, "a step passed by the bucket: {shape:#?}");
    assert!(shape.burst_bps.is_some_and(|bps| bps >= 0.99 * fastest) && !shape.burst_slowed, "{shape:#?}");
}

#[test]
fn steps_that_passed_whole_above_the_capacity_are_a_bucket_whatever_trains_say() {
    for seconds in [0.3, 0.6] {
        let mut path = Path { shape: Some((100e6, 12.5e6 * seconds)), ..Path::new(1e9, 2.5e6) };
        let (plan, mut record, _) = recorded(&mut path, 115_000_000, ProfilePlan::MAX_BPS);
        let trains = record.steps.iter_mut().filter(|step| step.step.gap_ns == 0);
        trains.filter_map(|step| step.received.as_mut()).for_each(|it| it.span_ns *= 20);
        let shape = Shape::of(&plan, &record).expect("steps");
        let passed = shape.steps.iter().filter(|step| !step.saturated(0.0) && step.offered_bps > 1.14e8).count();
        assert!(passed >= 2, "the bucket lets two steps pass: {shape:#?}");
        let Some(Plateau::Shaper { bucket_bytes }) = shape.plateau else { panic!("{shape:#?}") };
        assert!(bucket_bytes <= 1.1 * 12.5e6 * seconds, "{shape:#?}");
    }
}

#[test]
fn delivered_rate_and_loss_are_of_one_part_of_a_step() {
    // A bucket that lets much of each step pass: the loss of the whole step says nothing of the rate behind it.
    for seconds in [0.02, 0.1, 0.2] {
        let mut path = Path { police: Some((40e6, 40e6 / 8.0 * seconds)), ..Path::new(1e9, 500_000.0) };
        let (shape, _) = profile(&mut path, 38_000_000);
        let behind: Vec<_> = shape.steps.iter().filter(|step| step.saturated(0.0) && !step.unsettled).collect();
        assert!(behind.len() >= 2, "{shape:#?}");
        for step in behind {
            let rest = 1.0 - step.sustained_bps / step.offered_bps;
            assert!((step.sustained_loss - rest).abs() < 0.03, "{rest}: {step:#?}");
        }
    }
    // At random it is the same part of any step.
    let (shape, _) = profile(&mut Path { loss: 0.1, ..Path::new(40e6, 400_000.0) }, 20_000_000);
    for step in shape.steps.iter().filter(|step| step.sustained_count >= 100 && !step.saturated(0.1)) {
        assert!(near(step.sustained_loss, 0.1, 0.6) && near(step.loss(), 0.1, 0.6), "{step:#?}");
    }
}

#[test]
fn the_queue_of_a_faster_link_makes_no_queue_of_a_policer() {
    // A first step that goes beyond both: trains may pass a link that has a bucket of its own.
    for (rate, bucket, link) in [(42e6, 100_000.0, 400e6), (20.5e6, 60_000.0, 400e6), (8e6, 30_000.0, 90e6)] {
        let police = Some((rate, bucket));
        let mut path = Path { police, police_last: true, ..Path::new(link, link / 8.0 * 0.04) };
        let (mut shape, _) = profile(&mut path, (1.6 * link) as u64);
        assert!(near(shape.capacity.expect("saturated").bps, rate, 0.03), "{:?}", shape.capacity);
        assert!(matches!(shape.plateau, Some(Plateau::Policer { .. })), "{rate}: {shape:#?}");
        shape.steps.clear();
        assert!(shape.queue_us < 2_000.0, "{shape:?}");
    }
}

#[test]
fn longer_trains_tell_the_link_before_a_policer_with_a_deep_bucket() {
    let mut path = Path { police: Some((40e6, 200_000.0)), jitter_ns: 40_000, ..Path::new(900e6, 400_000.0) };
    let (shape, _) = profile(&mut path, 25_000_000);
    assert!(shape.burst_bps.is_some_and(|bps| near(bps, 900e6, 0.1)), "{:?}", shape.burst_bps);
    assert!(matches!(shape.plateau, Some(Plateau::Policer { .. })), "{:?}", shape.plateau);
}

#[test]
fn a_full_queue_of_a_few_packets_is_no_policer() {
    for seed in 1..=5 {
        let shape = Some((50e6, 9_000.0));
        let path = Path { shape, delay_ns: 20_000, seed: seed * 88_172_645_463_325_252, ..Path::new(1e9, 5_000.0) };
        let (shape, _) = profile(&mut path.clone(), 20_000_000);
        assert_eq!(shape.plateau, Some(Plateau::ShortQueue), "{shape:#?}");
    }
}

#[test]
fn hosts_that_stall_make_no_shaper_and_no_policer() {
    for (period_ms, length_ms) in [(400, 20), (170, 12), (90, 4), (1_300, 60)] {
        let stalls = Some((f64::from(period_ms) * 1e6, f64::from(length_ms) * 1e6));
        let (shape, _) = profile(&mut Path { stalls, ..Path::new(50e6, 400_000.0) }, 40_000_000);
        assert_eq!(shape.plateau, Some(Plateau::Queue), "{period_ms} ms, {length_ms} ms: {shape:#?}");
        assert!(near(shape.capacity.expect("saturated").bps, 50e6, 0.05), "{period_ms}: {:?}", shape.capacity);
    }
}

#[test]
fn a_full_queue_is_no_loss_at_any_rate_where_only_late_steps_left_it_empty() {
    let mut path = Path { delay_ns: 1_000_000, ..Path::new(24.2e6, 26_000.0) };
    let mut record =
        ProfileEndRecord { header_bytes: HEADER, datagram_bytes: BYTES, ..ProfileEndRecord::empty(Place::Client) };
    let mut at = 0.0;
    for (mbps, late_ms) in [(28.7, 0), (27.5, 0), (26.8, 0), (20.6, 22), (20.6, 25)] {
        let gap_ns = (f64::from(BYTES + HEADER) * 8e3 / mbps) as u64;
        let step = ProfileStep { id: 0, gap_ns, datagrams: 600, datagram_bytes: BYTES, stop_above_us: 0 };
        path.late_ns = late_ms * 1_000_000;
        let (seen, end) = path.run(&step, at);
        record.steps.push(seen);
        at = end + 100e6;
    }
    let shape = Shape::of(&ProfilePlan::default(), &record).expect("steps");
    assert_eq!(shape.plateau, Some(Plateau::Queue), "{shape:#?}");
    assert!(near(shape.capacity.expect("saturated").bps, 24.2e6, 0.02), "{:?}", shape.capacity);
}

#[test]
fn what_each_step_overflowed_is_no_loss_at_any_rate() {
    let mut path = Path::new(579e6, 1.5e6);
    let mut record =
        ProfileEndRecord { header_bytes: HEADER, datagram_bytes: BYTES, ..ProfileEndRecord::empty(Place::Client) };
    let mut at = 0.0;
    for mbps in [640.0, 700.0, 760.0, 820.0] {
        let gap_ns = (f64::from(BYTES + HEADER) * 8e3 / mbps) as u64;
        let step = ProfileStep { id: 0, gap_ns, datagrams: 60_000, datagram_bytes: BYTES, stop_above_us: 0 };
        let (seen, end) = path.run(&step, at);
        record.steps.push(seen);
        at = end + 100e6;
    }
    let shape = Shape::of(&ProfilePlan::default(), &record).expect("steps");
    assert_eq!(shape.plateau, Some(Plateau::Queue), "{shape:#?}");
    assert!(!shape.loses_below() && near(shape.capacity.expect("saturated").bps, 579e6, 0.02), "{shape:#?}");
}

#[test]
fn a_sender_that_paused_and_caught_up_kept_up_with_no_full_queue() {
    let mut path = Path::new(626e6, 1.5e6);
    let mut record =
        ProfileEndRecord { header_bytes: HEADER, datagram_bytes: BYTES, ..ProfileEndRecord::empty(Place::Client) };
    let mut at = 0.0;
    for (mbps, datagrams, paused_ns) in [(720.0, 15_010, 42e6), (1_009.0, 21_013, 51e6)] {
        let gap_ns = (f64::from(BYTES + HEADER) * 8e3 / mbps) as u64;
        let step = ProfileStep { id: 0, gap_ns, datagrams, datagram_bytes: BYTES, stop_above_us: 0 };
        let (mut seen, end) = path.run(&step, at);
        // It paused before the first half was over, a few milliseconds at a time.
        seen.sent.span_ns += paused_ns as u64;
        seen.sent.late_ns = 4_147_121;
        record.steps.push(seen);
        at = end + 1e9;
    }
    let shape = Shape::of(&ProfilePlan::default(), &record).expect("steps");
    assert_eq!(shape.plateau, Some(Plateau::Queue), "{shape:#?}");
    assert!(near(shape.capacity.expect("saturated").bps, 626e6, 0.02), "{shape:#?}");
}

#[test]
fn loss_at_any_rate_is_no_limit_of_the_rate() {
    for loss in [0.004, 0.03, 0.12] {
        let (shape, _) = profile(&mut Path { loss, ..Path::new(100e6, 300_000.0) }, 20_000_000);
        assert!(near(shape.capacity.expect("saturated").bps, 100e6, 0.04), "{loss}: {:?}", shape.capacity);
        assert!((0.5..1.8).contains(&(shape.loss_below() / loss)), "{loss}: {}", shape.loss_below());
    }
}

#[test]
fn loss_in_bursts_at_any_rate_is_loss_below_the_capacity_and_no_limit() {
    let mut seen = 0;
    for seed in 1..=10 {
        let bursts = Some((0.001, 0.1));
        let (shape, _) = profile(
            &mut Path { bursts, seed: seed * 88_172_645_463_325_252, ..Path::new(100e6, 300_000.0) },
            20_000_000,
        );
        assert!(near(shape.capacity.expect("saturated").bps, 100e6, 0.05), "{:?}", shape.capacity);
        assert_eq!(shape.plateau, Some(Plateau::Queue), "{shape:#?}");
        assert!(shape.steps.iter().all(|step| step.outage_us == 0.0), "{shape:#?}");
        seen += usize::from(shape.loses_below() && (5.0..20.0).contains(&shape.run_below()));
    }
    assert!(seen >= 7, "{seen} of 10: an event each 1,000 datagrams is rare");
    // Bursts of a sender that was late overflow a queue of a millisecond.
    let mut shape = profile(&mut Path::new(100e6, 300_000.0), 30_000_000).0;
    (shape.lost_below, shape.loss_events_below, shape.lossy_steps_below, shape.queue_us) = (800, 40, 3, 1_000.0);
    assert!(!shape.loses_below());
}

#[test]
fn a_path_that_is_dead_for_a_time_shows_its_capacity_all_the_same() {
    let mut seen = 0;
    for nth in 0..10 {
        let outages = Some((2.5e9, 250e6, 250e6 * f64::from(nth)));
        let (shape, _) = profile(&mut Path { outages, ..Path::new(100e6, 750_000.0) }, 90_000_000);
        assert!(near(shape.capacity.expect("saturated").bps, 100e6, 0.05), "{nth}: {shape:#?}");
        assert_eq!(shape.plateau, Some(Plateau::Queue), "{nth}: {shape:#?}");
        assert!(!shape.loses_below(), "{nth}: {shape:#?}");
        seen += usize::from(shape.longest_outage().is_some_and(|it| (50e3..=260e3).contains(&it.outage_us)));
    }
    assert!(seen >= 3, "{seen} of 10");
}

#[test]
fn a_path_without_a_limit_in_reach_is_said_to_carry_at_least_what_was_tried() {
    let plan = ProfilePlan { start_bps: 10_000_000, max_bps: 50_000_000, limit_ms: 8_000, ..ProfilePlan::default() };
    let mut path = Path::new(1e9, 300_000.0);
    let mut staircase = Staircase::new(&plan, HEADER, BYTES, &[]);
    let mut record =
        ProfileEndRecord { header_bytes: HEADER, datagram_bytes: BYTES, ..ProfileEndRecord::empty(Place::Client) };
    let mut at = 0.0;
    while let Next::Step { step, .. } = staircase.next(at as u64) {
        let (seen, end) = path.run(&step, at);
        at = end;
        record.steps.push(seen.clone());
        staircase.observe(seen);
    }
    let shape = Shape::of(&plan, &record).expect("steps");
    assert_eq!((shape.capacity, shape.plateau), (None, None));
    assert!(near(shape.carried_bps, 50e6, 0.02), "{}", shape.carried_bps);
}

#[test]
fn without_a_known_limit_the_path_carries_no_more_than_what_passed() {
    let mut path = Path { delay_ns: 20_000, ..Path::new(49.5e6, 200_000.0) };
    let mut record =
        ProfileEndRecord { header_bytes: HEADER, datagram_bytes: BYTES, ..ProfileEndRecord::empty(Place::Client) };
    let mut at = 0.0;
    // The bucket of a second limit is empty in one of them.
    for (mbps, police) in [(26.0, None), (56.9, None), (56.9, Some((30.9e6, 3_000.0))), (60.5, None)] {
        let gap_ns = (f64::from(BYTES + HEADER) * 8e3 / mbps) as u64;
        let step = ProfileStep { id: 0, gap_ns, datagrams: 1_200, datagram_bytes: BYTES, stop_above_us: 0 };
        path.police = police;
        let (seen, end) = path.run(&step, at);
        record.steps.push(seen);
        at = end + 100e6;
    }
    let shape = Shape::of(&ProfilePlan::default(), &record).expect("steps");
    assert_eq!((shape.capacity, shape.below()), (None, Below { sent: 1_200, ..Below::default() }), "{shape:#?}");
}

#[test]
fn steps_whose_account_is_lost_end_the_profile() {
    let plan = ProfilePlan { direction: Direction::Down, ..ProfilePlan::default() };
    let mut staircase = Staircase::new(&plan, HEADER, BYTES, &[]);
    let mut steps = 0;
    while let Next::Step { step, .. } = staircase.next(0) {
        staircase.observe(StepRecord { at_us: 0, step, sent: StepSent::default(), received: None });
        steps += 1;
    }
    assert!(steps <= 6, "{steps}");
}

#[test]
fn behind_a_policer_another_bucket_is_seen_where_a_train_outlasts_it() {
    let two = |tokens| Path {
        police: Some((60e6, 7.5e6)),
        shape: Some((200e6, 65_536.0)),
        tokens,
        delay_ns: 1_000_000,
        ..Path::new(10e9, 750_000.0)
    };
    let (shape, _) = profile(&mut two(0.0), 72_000_000);
    assert!(shape.burst_bps.is_some_and(|bps| near(bps, 200e6, 0.1)), "{shape:?}");
    // Either what the policer sustains, or nothing that a bucket let pass: a load before it has left little there.
    for start_bps in [20_000_000, 40_000_000, 120_000_000, 165_000_000, 220_000_000] {
        for tokens in [0.0, 1e6] {
            let (shape, _) = profile(&mut two(tokens), start_bps);
            let rate = shape.capacity.map(|it| it.bps);
            assert!(rate.is_none_or(|bps| near(bps, 60e6, 0.2)), "{start_bps} {tokens} {rate:?} {:?}", shape.steps);
        }
    }
}

#[test]
fn an_account_without_parts_tells_the_mean_of_the_step() {
    let step = narrows_model::ProfileStep {
        id: 5,
        datagrams: 1_001,
        datagram_bytes: BYTES,
        gap_ns: 250_000,
        stop_above_us: 0,
    };
    let sent = StepSent { datagrams: 1_001, span_ns: 250_000_000, late_ns: 0 };
    let received = narrows_model::StepReceived { datagrams: 1_001, span_ns: 500_000_000, ..Default::default() };
    let record = StepRecord { at_us: 0, step, sent, received: Some(received) };
    let view = super::StepView::of(&record, HEADER, 0).expect("what arrived");
    assert!(near(view.sustained_bps, 1_000.0 * f64::from(BYTES + HEADER) * 8.0 / 0.5, 1e-9), "{view:?}");
    assert_eq!(view.sustained_loss, 0.0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn capacity_is_within_3_percent_of_the_truth(
        mbps in 2.0..2_000.0_f64, bdp in 0.3..4.0_f64, part in 0.1..1.2_f64, jitter_ms in 0_u64..4, delay_ms in 1_u64..80,
    ) {
        let rate = mbps * 1e6;
        let queue = (rate / 8.0 * (2.0 * delay_ms as f64 / 1e3) * bdp).max(30_000.0);
        let mut path = Path { jitter_ns: jitter_ms * 100_000, delay_ns: delay_ms * 1_000_000, ..Path::new(rate, queue) };
        let (shape, seconds) = profile(&mut path, ((rate * part) as u64).max(100_000));
        let capacity = shape.capacity.expect("saturated");
        prop_assert!(near(capacity.bps, rate, 0.03), "{capacity:?} of {rate}");
        prop_assert!(seconds < 12.0, "{}", seconds);
    }
}

#[test]
fn totals_tell_a_queue_from_a_policer_and_say_nothing_where_they_look_alike() {
    let of = |path: Path, start_bps: f64| profile(&mut Path { totals: true, ..path }, start_bps as u64).0;
    let queue = of(Path::new(100e6, 200_000.0), 90e6);
    assert_eq!(queue.plateau, Some(Plateau::Queue));
    assert!(queue.by_totals && near(queue.capacity.expect("saturated").bps, 100e6, 0.04), "{queue:?}");
    let policed =
        |rate, bucket, link: f64| of(Path { police: Some((rate, bucket)), ..Path::new(link, 2_000_000.0) }, 0.9 * rate);
    let policer = policed(20e6, 30_000.0, 1e9);
    let Some(Plateau::Policer { bucket_bytes }) = policer.plateau else { panic!("{:?}", policer.plateau) };
    assert!((14_000.0..31_000.0).contains(&bucket_bytes), "a train passed, no more is known: {bucket_bytes}");
    assert!(near(policer.capacity.expect("saturated").bps, 20e6, 0.04), "{policer:?}");
    // Trains are over before they could show a bucket: a policer of 2 Gbit/s looks like a queue that is too short to see.
    assert_eq!(policed(2e9, 1_000_000.0, 40e9).plateau, None);
}
