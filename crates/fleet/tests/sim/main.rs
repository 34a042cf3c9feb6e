//! A fleet in simulated time: the real controller, agents that answer by a model of a network, messages that are lost, late and repeated.

mod world;

use narrows_fleet::control::Control;
use narrows_fleet::plan::Fleet;
use narrows_fleet::truth::{End, Memory};
use narrows_model::run::mesh::MeshState;
use std::collections::{BTreeMap, BTreeSet};
use world::{BEGIN_MS, Faults, World, fleet};

#[test]
fn faults_are_found_within_three_rounds_each_with_one_message_and_one_recovery() {
    let fleet = fleet(40, 3);
    let mut world = World::new(&fleet, 11);
    let mut control = Control::new(&fleet, Memory::default(), BEGIN_MS);
    world.run(&mut control, 30);
    assert_eq!(world.reported(0), Vec::<String>::new());
    let settings = control.record(world.now_ms).members.into_iter().map(|it| it.host.settings()["tcp.sack"].clone());
    assert!(settings.enumerate().all(|(nth, it)| it == nth.is_multiple_of(5).to_string()), "each has its own");
    // They begin in the middle of a round of loads.
    while !world.loads {
        world.step(&mut control);
    }
    (0..40).for_each(|_| world.step(&mut control));
    world.faults.sends = BTreeMap::from([(3, 0.3), (8, 0.5), (21, 0.4)]);
    world.faults.trunk = BTreeMap::from([([0, 1], 0.35), ([2, 0], 0.6)]);
    world.faults.loses = BTreeMap::from([(14, 0.1), (30, 0.2)]);
    let since = world.now_ms;
    world.run(&mut control, 32);
    let mut wanted = [
        "host h003 (sending)",
        "host h008 (sending)",
        "host h014 (receiving)",
        "host h021 (sending)",
        "host h030 (receiving)",
        "the paths from group g0 to group g1",
        "the paths from group g2 to group g0",
    ]
    .map(|it| format!("began {it}"));
    wanted.sort_unstable();
    assert_eq!(world.reported(since), wanted);
    world.run(&mut control, 60);
    assert_eq!(world.reported(since), wanted, "nothing is reported twice");
    world.faults = Faults::default();
    let since = world.now_ms;
    world.run(&mut control, 40);
    assert_eq!(world.reported(since), wanted.map(|it| it.replace("began", "over")));
    let counts: Vec<_> = control.counts().map(|(_, counts)| counts).collect();
    assert!(counts.iter().all(|it| it.done > 0 && it.failed == 0 && it.missed == 0), "{counts:?}");
}

#[test]
fn what_loads_of_the_fleet_itself_push_out_of_a_queue_is_no_incident() {
    let fleet = fleet(40, 3);
    let mut world = World::new(&fleet, 12);
    let mut control = Control::new(&fleet, Memory::default(), BEGIN_MS);
    world.faults.short = (0..40).step_by(3).collect();
    world.run(&mut control, 240);
    assert!(world.pushed_out >= 20, "{} probes", world.pushed_out);
    assert_eq!(world.reported(0), Vec::<String>::new());
    // What a host loses by itself is found beside that.
    world.faults.loses = BTreeMap::from([(3, 0.1)]);
    let since = world.now_ms;
    world.run(&mut control, 20);
    assert_eq!(world.reported(since), ["began host h003 (receiving)"]);
}

#[test]
fn what_was_not_delivered_is_said_by_the_next_controller() {
    let fleet = fleet(40, 3);
    let mut world = World::new(&fleet, 11);
    let mut control = Control::new(&fleet, Memory::default(), BEGIN_MS);
    world.faults.loses = BTreeMap::from([(14, 0.1)]);
    world.run(&mut control, 20);
    assert_eq!(world.reported(0), ["began host h014 (receiving)"]);
    let (_, message) = world.messages[0].clone();
    let message = (message, vec!["a webhook".to_owned()]);
    control.on_their_way(vec![message.clone()]);
    control.keep().expect("kept");
    let mut next = Control::new(&fleet, control.into_truth(), world.now_ms);
    assert!(next.unsaid().is_empty(), "it knows nothing before its first tick");
    world.step(&mut next);
    // It was kept once more before anybody asked.
    let mut last = Control::new(&fleet, next.into_truth(), world.now_ms);
    world.step(&mut last);
    assert_eq!((last.unsaid(), last.unsaid()), (vec![message], Vec::new()));
    last.keep().expect("kept");
    let mut none = Control::new(&fleet, last.into_truth(), world.now_ms);
    world.step(&mut none);
    assert!(none.unsaid().is_empty(), "it was said");
}

#[test]
fn a_setting_that_changed_is_part_of_the_paths_of_its_host() {
    let fleet = fleet(6, 1);
    let mut world = World::new(&fleet, 7);
    let mut control = Control::new(&fleet, Memory::default(), BEGIN_MS);
    world.run(&mut control, 10);
    let since = world.now_ms;
    world.faults.set.insert(3);
    world.run(&mut control, 10);
    let found = control.series(1, 3, 0).expect("a series").settings;
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((&*found[0].host, &*found[0].says), ("h003", "tcp.sack: false → true"));
    assert!(found[0].at_unix_ms >= since, "{found:?}");
    assert_eq!(control.series(1, 2, 0).expect("a series").settings, []);
}

#[test]
fn what_arrives_nowhere_any_more_is_an_incident_and_a_site_that_is_silent_is_one() {
    let fleet = fleet(24, 3);
    let mut world = World::new(&fleet, 5);
    let mut control = Control::new(&fleet, Memory::default(), BEGIN_MS);
    world.run(&mut control, 30);
    world.faults.cut = Some([0, 2]);
    world.run(&mut control, 35);
    assert_eq!(world.reported(0), ["began the paths between group g0 and group g2"]);
    let since = world.now_ms;
    world.faults.cut = None;
    world.run(&mut control, 35);
    assert_eq!(world.reported(since), ["over the paths between group g0 and group g2"]);
    // Those of a whole group, and one of another.
    let since = world.now_ms;
    world.faults.away = (0..24).filter(|host| host % 3 == 1).chain([5]).collect();
    world.run(&mut control, 20);
    assert_eq!(world.reported(since), ["began agent h005", "began the agents of group g1"]);
    let since = world.now_ms;
    world.faults.away.clear();
    world.run(&mut control, 40);
    assert_eq!(world.reported(since), ["over agent h005", "over the agents of group g1"]);
    let since = world.now_ms;
    world.faults.behind = BTreeMap::from([(3, 5_000)]);
    world.run(&mut control, 20);
    world.faults.behind = (0..24).map(|host| (host, 5_000)).collect();
    world.run(&mut control, 20);
    world.faults.behind.clear();
    world.run(&mut control, 20);
    let both = ["the clock of h003", "the controller's clock"];
    let wanted: Vec<String> = ["began", "over"].iter().flat_map(|it| both.map(|of| format!("{it} {of}"))).collect();
    assert_eq!(world.reported(since), wanted);
    // The controller's own network; then it is stopped for an hour.
    let since = world.now_ms;
    world.faults.away = (0..24).collect();
    world.run(&mut control, 10);
    assert_eq!(world.reported(since), ["began all agents"]);
    world.faults.away.clear();
    world.run(&mut control, 20);
    let since = world.now_ms;
    world.now_ms += 3_600_000;
    world.run(&mut control, 30);
    assert_eq!(world.reported(since), Vec::<String>::new());
}

#[test]
fn what_is_worse_than_it_was_is_an_incident_where_no_other_path_shows_it() {
    for hosts in [2, 12] {
        let fleet = fleet(hosts, if hosts == 2 { 1 } else { 3 });
        let mut world = World::new(&fleet, 9);
        let mut control = Control::new(&fleet, Memory::default(), BEGIN_MS);
        world.run(&mut control, 100);
        assert_eq!(world.reported(0), Vec::<String>::new());
        let truth = control.into_truth();
        // Another controller knows what was usual.
        let mut control = Control::new(&fleet, truth, world.now_ms);
        world.run(&mut control, 3);
        let since = world.now_ms;
        world.faults.all = Some(0.5);
        world.run(&mut control, 45);
        let element = if hosts == 2 { "the path between h000 and h001" } else { "all paths" };
        assert_eq!(world.reported(since), [format!("began {element}")], "{hosts}");
        world.run(&mut control, 120);
        let since = world.now_ms;
        world.faults.all = None;
        world.run(&mut control, 45);
        assert_eq!(world.reported(since), [format!("over {element}")], "{hosts}: it became usual");
        // A host that is further away than it was.
        let since = world.now_ms;
        world.faults.far = BTreeMap::from([(1, 20_000.0)]);
        world.run(&mut control, 20);
        let element = if hosts == 2 { "the path between h000 and h001" } else { "host h001" };
        assert_eq!(world.reported(since), [format!("began {element}")], "{hosts}");
        if hosts > 2 {
            continue;
        }
        // For longer than another controller looks back.
        world.run(&mut control, 7 * 60);
        let since = world.now_ms;
        let mut control = Control::new(&fleet, control.into_truth(), world.now_ms);
        world.run(&mut control, 60);
        assert_eq!(world.reported(since), Vec::<String>::new(), "it is as far away as before");
        world.faults.far.clear();
        world.run(&mut control, 20);
        assert_eq!(world.reported(since), [format!("over {element}")]);
    }
}

#[test]
fn tests_that_never_find_anything_are_incidents_and_agents_that_never_came_are_not() {
    let fleet = fleet(3, 3);
    let mut world = World::new(&fleet, 5);
    let mut control = Control::new(&fleet, Memory::default(), BEGIN_MS);
    // It is not installed yet; the other two are, behind a filter.
    world.faults.away = BTreeSet::from([2]);
    world.faults.cut = Some([0, 1]);
    world.run(&mut control, 35);
    assert_eq!(world.reported(0), ["began the load tests of mesh all", "began the probe tests of mesh all"]);
    let since = world.now_ms;
    world.faults.cut = None;
    world.run(&mut control, 15);
    assert_eq!(world.reported(since), ["over the load tests of mesh all", "over the probe tests of mesh all"]);
    let since = world.now_ms;
    world.run(&mut control, 60);
    assert_eq!(world.reported(since), ["began agent h002"], "it should be there by now");
}

#[test]
fn no_more_loads_pass_a_router_than_may() {
    let loads_at_once = |most: usize| {
        let fleet = Fleet { concurrent: std::num::NonZeroUsize::new(most), ..fleet(6, 2) };
        let mut world = World::new(&fleet, 5);
        world.faults.traced = true;
        let mut control = Control::new(&fleet, Memory::default(), BEGIN_MS);
        // Until all paths are traced.
        world.run(&mut control, 12);
        let mut at_once = 0;
        for _ in 0..20 * 60 {
            world.step(&mut control);
            at_once = at_once.max(world.in_loads / 2);
        }
        let missed: u64 = control.counts().map(|(_, counts)| counts.missed).sum();
        (at_once, missed)
    };
    let (at_once, _) = loads_at_once(0);
    assert!(at_once >= 3, "{at_once}");
    // One over each of both routers.
    assert!(matches!(loads_at_once(1), (1..=2, 0)), "{:?}", loads_at_once(1));
}

#[test]
fn a_clock_that_was_ahead_for_a_while_leaves_no_test_out() {
    const AHEAD_MS: u64 = 3 * 3_600_000;
    let fleet = fleet(4, 1);
    let mut world = World::new(&fleet, 5);
    let mut control = Control::new(&fleet, Memory::default(), BEGIN_MS);
    world.run(&mut control, 5);
    world.now_ms += AHEAD_MS;
    world.run(&mut control, 15);
    world.now_ms -= AHEAD_MS;
    for stub in &mut world.stubs {
        (stub.working, stub.outcomes) = (BTreeMap::new(), Vec::new());
    }
    let sessions = control.sessions();
    let mut control = Control::new(&fleet, control.into_truth(), world.now_ms);
    control.resume(sessions);
    let since = world.now_ms;
    world.run(&mut control, 40);
    let ends = control.into_truth();
    let due = |at_ms: &u64| (since + 300_000..world.now_ms - 120_000).contains(at_ms);
    let made: Vec<bool> =
        ends.ends().filter(|(_, due_ms, _)| due(due_ms)).map(|(.., end)| matches!(end, Some(End::Result(_)))).collect();
    assert!(
        made.len() > 100 && made.iter().all(|made| *made),
        "{} of {}",
        made.iter().filter(|it| **it).count(),
        made.len()
    );
}

#[test]
fn what_is_silent_stays_so_for_another_controller() {
    let fleet = fleet(12, 3);
    let mut world = World::new(&fleet, 3);
    let mut control = Control::new(&fleet, Memory::default(), BEGIN_MS);
    world.run(&mut control, 5);
    world.faults.away = (0..12).filter(|host| host % 3 == 1).chain([5]).collect();
    world.run(&mut control, 10);
    assert_eq!(world.reported(0), ["began agent h005", "began the agents of group g1"]);
    let since = world.now_ms;
    let mut control = Control::new(&fleet, control.into_truth(), world.now_ms);
    world.run(&mut control, 10);
    // It is stopped for a while.
    world.now_ms += 600_000;
    world.run(&mut control, 10);
    assert_eq!(world.reported(since), Vec::<String>::new());
    world.faults.away.clear();
    world.run(&mut control, 5);
    assert_eq!(world.reported(since), ["over agent h005", "over the agents of group g1"]);
}

#[test]
fn a_file_that_is_applied_ends_nothing_that_is_under_way() {
    let fleet = fleet(12, 3);
    let mut world = World::new(&fleet, 6);
    let mut control = Control::new(&fleet, Memory::default(), BEGIN_MS);
    world.run(&mut control, 12);
    for _ in 0..20 {
        // In the middle of loads and of probes.
        while !world.loads {
            world.step(&mut control);
        }
        let sessions = control.sessions();
        control = Control::new(&fleet, control.into_truth(), world.now_ms);
        control.resume(sessions);
        (0..7).for_each(|_| world.step(&mut control));
    }
    world.run(&mut control, 12);
    let (mut ran, mut others) = (0, Vec::new());
    for (name, due_ms, end) in control.into_truth().ends() {
        match end {
            Some(End::Result(found)) if !found.windows(6).any(|it| it == b"failed") => ran += 1,
            None if due_ms > world.now_ms - 60_000 => {}
            _ => others.push((name, due_ms, end.cloned())),
        }
    }
    assert!(ran > 500 && others.is_empty(), "{ran} ran; not: {others:?}");
    assert_eq!(world.reported(0), Vec::<String>::new());
}

#[test]
fn hosts_that_join_end_nothing_that_is_under_way() {
    let of = |hosts: usize| {
        let hosts: String = (0..hosts).map(|nth| format!("hosts.h{nth:03} = {{ group = 'g{}' }}\n", nth % 3)).collect();
        let tests = "[[mesh.test]]\nkind = 'load'\nevery = '10m'\n[[mesh.test]]\nkind = 'probe'\nevery = '1m'\n";
        Fleet::read(&format!("name = 's'\n{hosts}[[mesh]]\nname = 'all'\n{tests}")).expect("a fleet")
    };
    let fleets: Vec<Fleet> = (12..=18).map(of).collect();
    let mut world = World::new(&fleets[6], 16);
    world.faults.away = (12..18).collect();
    let mut control = Control::new(&fleets[0], Memory::default(), BEGIN_MS);
    world.run(&mut control, 25);
    // A host becomes bad and somebody asks for all tests, while others join.
    world.faults.sends = BTreeMap::from([(3, 0.3)]);
    let since = world.now_ms;
    control.run(0, None, since).expect("planned");
    for (nth, fleet) in fleets.iter().enumerate().skip(1) {
        (0..40).for_each(|_| world.step(&mut control));
        let sessions = control.sessions();
        control = Control::new(fleet, control.into_truth(), world.now_ms);
        control.resume(sessions);
        world.faults.away.remove(&(11 + nth));
    }
    world.run(&mut control, 25);
    assert_eq!(world.reported(since), ["began host h003 (sending)"]);
    let done: u64 = control.counts().map(|(_, counts)| counts.done).sum();
    let (mut ran, mut others) = (0, Vec::new());
    for (name, due_ms, end) in control.into_truth().ends() {
        match end {
            Some(End::Result(found)) if !found.windows(6).any(|it| it == b"failed") => ran += 1,
            None if due_ms > world.now_ms - 60_000 => {}
            _ => others.push((name, due_ms, end.cloned())),
        }
    }
    // How tests ended is counted on, too; a diagnosis is of no test.
    assert!(ran > 2_000 && ran - done <= 1 && others.is_empty(), "{ran} ran, {done} done; not: {others:?}");
}

#[test]
fn a_host_that_loses_is_not_well_because_few_packets_were_left() {
    let fleet = fleet(40, 3);
    let over = |seed: u64| {
        let mut world = World::new(&fleet, seed);
        let mut control = Control::new(&fleet, Memory::default(), BEGIN_MS);
        world.faults.short = (0..40).collect();
        world.faults.loses = BTreeMap::from([(14, 0.015)]);
        world.run(&mut control, 180);
        let is_over = |it: &String| it.starts_with("over");
        assert!(!world.reported(0).is_empty(), "it is never seen");
        world.reported(0).iter().filter(|it| is_over(it)).count()
    };
    assert_eq!((1..5).map(over).sum::<usize>(), 0);
}

#[test]
fn where_hosts_are_busy_what_has_priority_is_first() {
    let mesh = |name: &str, more: &str| {
        format!("[[mesh]]\nname = '{name}'\n[[mesh.test]]\nkind = 'load'\nevery = '1h'\n{more}")
    };
    let meshes = [mesh("a", ""), mesh("b", "priority = 9\n")].concat();
    let fleet = Fleet::read(&format!("name = 's'\nhosts.h000 = {{}}\nhosts.h001 = {{}}\n{meshes}")).expect("a fleet");
    let mut world = World::of(&fleet, vec![0; 2], 9);
    let mut control = Control::new(&fleet, Memory::default(), BEGIN_MS);
    world.run(&mut control, 2);
    (0..2).for_each(|mesh| _ = control.run(mesh, None, world.now_ms).expect("planned"));
    let mut begun: Vec<String> = Vec::new();
    for _ in 0..60 {
        world.step(&mut control);
        let of = |stub: &world::Stub| stub.working.keys().map(|ticket| ticket.mesh.clone()).collect::<Vec<_>>();
        begun.extend(world.stubs.iter().flat_map(of));
        begun.dedup();
    }
    assert_eq!(begun, ["b", "a"]);
}

#[test]
fn in_quiet_hours_nothing_begins_that_nobody_asked_for() {
    let hosts = "hosts.h000 = {}\nhosts.h001 = {}\nhosts.h002 = {}\n";
    // The day of the simulation begins at 22:13:20.
    let test = "[[mesh.test]]\nkind = 'load'\nevery = '10m'\nquiet = ['22:30-23:30']\n";
    let fleet = Fleet::read(&format!("name = 's'\n{hosts}[[mesh]]\nname = 'all'\n{test}")).expect("a fleet");
    let mut world = World::of(&fleet, vec![0; 3], 8);
    let mut control = Control::new(&fleet, Memory::default(), BEGIN_MS);
    let runs = |world: &mut World, control: &mut Control<'_, Memory>, minutes: u64| {
        let mut seconds = 0;
        for _ in 0..minutes * 60 {
            world.step(control);
            seconds += u64::from(world.loads);
        }
        seconds
    };
    assert!(runs(&mut world, &mut control, 17) > 0, "until 22:30");
    assert_eq!(runs(&mut world, &mut control, 20), 0, "quiet");
    assert!(control.run(0, None, world.now_ms).expect("planned") > 0);
    assert!(runs(&mut world, &mut control, 5) > 0, "somebody asked");
    assert_eq!(runs(&mut world, &mut control, 30), 0, "until 23:25");
    assert!(runs(&mut world, &mut control, 20) > 0);
}

#[test]
fn quiet_hours_with_agents_that_go_dips_and_starved_hosts_report_agents_only() {
    for seed in [1, 2] {
        let fleet = fleet(12, 2);
        let mut world = World::new(&fleet, seed);
        let mut control = Control::new(&fleet, Memory::default(), BEGIN_MS);
        world.faults.dips = 0.01;
        for hour in 0..12 {
            let host = world.random.below(12) as usize;
            if hour % 3 == 0 {
                world.faults.away.insert(host);
                world.run(&mut control, 7);
                world.faults.away.clear();
            } else {
                world.faults.starved.insert(host);
                world.run(&mut control, 25);
                world.faults.starved.clear();
            }
            world.run(&mut control, 20);
        }
        let reported = world.reported(0);
        let others: Vec<&String> = reported.iter().filter(|it| !it.contains(" agent ")).collect();
        assert_eq!(others, Vec::<&String>::new(), "seed {seed}");
        assert!((2..=8).contains(&reported.len()), "four times one went: seed {seed}: {reported:?}");
    }
}

#[test]
fn who_can_connect_opens_the_loads_of_both_directions() {
    let fleet = fleet(6, 1);
    let mut world = World::new(&fleet, 4);
    let mut control = Control::new(&fleet, Memory::default(), BEGIN_MS);
    world.faults.closed = BTreeSet::from([2, 5]);
    world.run(&mut control, 40);
    let record = control.record(world.now_ms);
    let state = |from: usize, to: usize| record.loads.iter().find(|it| (it.from, it.to) == (from, to)).expect("a load");
    assert!(matches!(state(1, 2).state, MeshState::Measured { .. }) && state(1, 2).opened_by_receiver);
    assert!(matches!(state(2, 1).state, MeshState::Measured { .. }) && !state(2, 1).opened_by_receiver);
    let both = [state(2, 5), state(5, 2)];
    assert!(both.iter().all(|it| matches!(it.state, MeshState::Unreachable(_))), "{both:?}");
    assert_eq!(world.reported(0), Vec::<String>::new());
}

#[test]
fn whatever_dies_each_planned_test_ran_once_or_is_named_as_missed() {
    for seed in 1..4 {
        let fleet = fleet(10, 2);
        let mut world = World::new(&fleet, seed);
        world.faults.messages = 0.2;
        let mut control = Control::new(&fleet, Memory::default(), BEGIN_MS);
        for _ in 0..40 {
            match world.random.below(4) {
                0 => {
                    let host = world.random.below(10) as usize;
                    world.faults.away.insert(host);
                }
                1 => world.faults.away.clear(),
                2 => {
                    // Another controller takes over, after a while.
                    let truth = control.into_truth();
                    world.now_ms += 1_000 * world.random.below(100);
                    control = Control::new(&fleet, truth, world.now_ms);
                }
                _ => {}
            }
            world.run(&mut control, 2);
        }
        world.faults = Faults::default();
        world.run(&mut control, 30);
        let late = world.now_ms - 15 * 60_000;
        let truth = control.into_truth();
        let (mut ran, mut missed) = (0, 0);
        for (name, due_ms, end) in truth.ends() {
            match end {
                Some(End::Result(_)) => ran += 1,
                Some(End::Missed) => missed += 1,
                None => assert!(due_ms > late, "seed {seed}: {name:?} has no end"),
            }
        }
        assert!(ran > 1_000 && missed > 0, "seed {seed}: {ran} {missed}");
    }
}
