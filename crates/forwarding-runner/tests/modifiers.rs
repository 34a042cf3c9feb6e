//! Modifiers and the watch of the device against the router of the lab's forwarding bench: frames to all stations, a real agent
//! that is asked each second, routing updates, a link that goes in mid-trial. Builds networks: needs root, and fails without.

#![allow(clippy::panic)] // a test that fails loudly

use narrows_forwarding::data::modifiers::{ModifierSeen, RoutesSeen};
use narrows_forwarding::data::{ForwardingPlan, ForwardingRecord, ForwardingTrial, FrmolTest, Test};
use narrows_forwarding::plan_file::parse;
use narrows_forwarding::views::{Derived, derive};
use narrows_forwarding_runner::{HostAccess, run};
use narrows_lab::{Host, Lab, LabSpec, Topology};
use narrows_runner::Stop;
use narrows_sys::packet_io::PacketReader;
use narrows_sys::rtnl::{Links, Route};
use narrows_sys::{clock, netns};
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::time::Duration;

/// A lab, and the file by which its router's network is known.
struct Bench {
    lab: Lab,
    router: OwnedFd,
}

impl Bench {
    fn up(snmpd: bool) -> Result<Self, narrows_lab::Error> {
        let spec = LabSpec { name: "modifiers".to_owned(), topology: Topology::Dut, snmpd, ..LabSpec::default() };
        let lab = Lab::up(&spec)?;
        let router = lab.host("router")?.run(netns::network_of_this_thread)?.expect("a network");
        Ok(Self { lab, router })
    }

    fn host(&self, name: &str) -> &Host {
        self.lab.host(name).expect("it is there")
    }

    /// Trials of one second at a rate that any machine carries, of the smallest frames and with these modifiers.
    fn plan(&self, modifiers: &str, more: &str) -> ForwardingPlan {
        let text = format!(
            r#"
name = "the lab's router"
link = "10G"
max-load = "5kpps"
residue = "200ms"
rest = "10ms"
learning-frames = 0
[generator]
device = "gen0"
address = "198.18.0.2"
gateway = "198.18.0.1"
[receiver]
device = "rcv0"
address = "198.19.0.2"
gateway = "198.19.0.1"
[[traffic]]
sizes = [64]
flows = 10
modifiers = [{modifiers}]
[[hop]]
name = "router"
under-test = true
input = "in0"
output = "out0"
source = {{ kind = "namespace", name = "/proc/self/fd/{}" }}
[worst-case]
duration = "2100ms"
repetitions = 1
{more}"#,
            self.router.as_raw_fd()
        );
        parse(&text).unwrap_or_else(|problems| panic!("{problems}")).plan
    }

    fn run(&self, plan: &ForwardingPlan) -> ForwardingRecord {
        let record = self.host("tester").run(|| run(plan, &HostAccess::default(), &Stop::new(), &mut |_| {}));
        record.expect("the tester can be entered").expect("its ports can be used")
    }
}

/// The trial of a traffic whose result counts.
fn trial(record: &ForwardingRecord, traffic: usize) -> &ForwardingTrial {
    let mut trials = record.trials.iter();
    let found = trials.find(|trial| trial.traffic == traffic && trial.test == Test::Frmol);
    found.unwrap_or_else(|| panic!("no trial of traffic {traffic}: {:?}", record.ended))
}

/// Why that trial is invalid, if so.
fn invalid(derived: &Derived, traffic: usize) -> Option<String> {
    let is = |trial: &ForwardingTrial| trial.traffic == traffic && trial.test == Test::Frmol;
    let at = derived.record.trials.iter().position(is).expect("a trial");
    derived.invalid[at].clone()
}

#[test]
fn frames_to_all_stations_are_kept_back_by_the_router_and_no_loss() {
    let bench = Bench::up(false).expect("this test builds networks: it needs root");
    let plan = bench.plan("{ kind = \"broadcast\", share = 0.05 }", "");
    let record = bench.run(&plan);
    assert_eq!(record.ended, None);
    let derived = derive(&record);
    let (plain, modified) = (trial(&derived.record, 0), trial(&derived.record, 1));
    assert_eq!((&plain.modifier, invalid(&derived, 1)), (&None, None), "{modified:?}");
    let seen = modified.broadcast(0);
    let tests = modified.directions[0].sent.sent();
    // Each twentieth frame of what was sent, to the frame.
    assert_eq!(seen.sent, (seen.sent + tests) / 20, "{seen:?} beside {tests}");
    assert!(seen.sent > 100, "{seen:?}");
    assert_eq!(seen.received, 0, "a router forwards none of them");
    let at = derived.record.trials.iter().position(|trial| std::ptr::eq(trial, modified)).expect("it is there");
    let books = &derived.accounts.iter().find(|account| account.trial == at).expect("kept").account;
    let router = books.lines.iter().find(|line| line.hop == "router").expect("its line");
    assert_eq!((books.disagreement.clone(), books.broadcast), (None, Some(seen)));
    let off = router.not_forwarded.abs_diff(seen.sent);
    assert!(off <= router.uncertainty, "{} of {} kept back: {router:?}", router.not_forwarded, seen.sent);
    assert_eq!(books.lost, modified.directions[0].lost());
    // The device is watched; its kernel is the tester's.
    for trial in [plain, modified] {
        let device = trial.devices.first().expect("watched");
        assert_eq!((device.hop.as_str(), device.silent.clone(), device.reset.clone()), ("router", None, None));
        assert!(device.shared && device.links.is_empty(), "{device:?}");
        assert!(device.interrupts.is_some_and(|n| n > 0) && device.net_rx.is_some_and(|n| n > 0), "{device:?}");
        assert!(device.interrupt_share().is_some_and(|share| (0.0..=1.0).contains(&share)), "{device:?}");
    }
}

/// As a routing protocol would: routes to a part of the networks come up while the updates arrive.
#[test]
fn routing_updates_leave_by_the_port_and_what_the_router_learns_is_read() {
    let bench = Bench::up(false).expect("this test builds networks: it needs root");
    let plan = bench.plan("{ kind = \"routes\", every = \"500ms\", networks = 4 }", "");
    let open = || PacketReader::open(Links::open().and_then(|mut links| links.get("in0")).expect("in0").index);
    let mut reader = bench.host("router").run(open).expect("entered").expect("a packet socket");
    let record = bench.run(&plan);
    let Some(ModifierSeen::Routes(seen)) = &trial(&record, 1).modifier else { panic!("{record:?}") };
    // In two seconds, or in the more that a busy machine takes.
    assert!(seen.announced + seen.withdrawn >= 4, "{seen:?}");
    assert!(seen.announced.abs_diff(seen.withdrawn) <= 1, "by turns: {seen:?}");
    assert_eq!(seen.why, None);
    // Whoever learns would have them: nobody does.
    assert_eq!(seen.learned.unwrap_or(0), 0);
    assert_eq!(invalid(&derive(&record), 1), None);
    // What came in at the router: RIP's group, port 520, a response of version 2 that reaches or withdraws.
    let mut metrics = Vec::new();
    loop {
        let each = |frame: &[u8], _| {
            if frame[..6] == [1, 0, 0x5e, 0, 0, 9] {
                assert_eq!((&frame[30..38], &frame[42..44]), (&[224, 0, 0, 9, 2, 8, 2, 8][..], &[2, 2][..]));
                metrics.push(frame[65]);
            }
        };
        if reader.receive(Duration::from_millis(100), each).expect("frames") == 0 {
            break;
        }
    }
    // The calibration that nobody counts had one, too.
    let turns: Vec<u8> = (0..=seen.announced + seen.withdrawn).map(|nth| if nth % 2 == 0 { 1 } else { 16 }).collect();
    assert_eq!(metrics, turns, "one hop and infinity by turns");
    let routes: Vec<Route> = (0..3)
        .map(|nth| Route {
            destination: IpAddr::V4(Ipv4Addr::new(203, 0, 113, nth * 8)),
            prefix_bits: 29,
            gateway: Some(IpAddr::from([198, 18, 0, 2])),
        })
        .collect();
    let router = bench.host("router");
    router
        .run(|| Links::open().and_then(|mut links| links.add_routes("in0", &routes)))
        .expect("entered")
        .expect("added");
    // One update a trial: the first sample announces, the first repetition withdraws, the second announces again.
    let mut plan = bench.plan("{ kind = \"routes\", every = \"1h\", networks = 4 }", "");
    plan.tests.frmol = Some(FrmolTest { duration_ms: 100, repetitions: 2 });
    let record = bench.run(&plan);
    let seen: Vec<_> = record.trials.iter().filter_map(|trial| trial.modifier.clone()).collect();
    let one = |announced, withdrawn, learned| {
        ModifierSeen::Routes(RoutesSeen { announced, withdrawn, learned, ..RoutesSeen::default() })
    };
    assert_eq!(seen, [one(0, 1, None), one(1, 0, Some(3))]);
}

#[test]
fn a_link_of_the_device_that_goes_in_mid_trial_makes_the_trial_say_nothing() {
    let bench = Bench::up(false).expect("this test builds networks: it needs root");
    let plan = bench.plan("", "");
    let router = bench.host("router");
    let frames = || router.run(|| Links::open().and_then(|mut links| links.get("in0"))).expect("entered").expect("in0");
    let before = frames().rx_packets;
    let record = std::thread::scope(|scope| {
        scope.spawn(|| {
            // The trial's load is under way, the first sample of 200 frames is over.
            let began = clock::now();
            while frames().rx_packets < before + 1_000 && began.elapsed() < Duration::from_secs(60) {
                clock::sleep(Duration::from_millis(5));
            }
            let set = |up| router.run(|| Links::open().and_then(|mut links| links.set_up("out0", up)));
            set(false).expect("entered").expect("down");
            set(true).expect("entered").expect("up again");
        });
        bench.run(&plan)
    });
    let trial = trial(&record, 0);
    let why = invalid(&derive(&record), 0).unwrap_or_default();
    assert!(why.starts_with("a link of the device changed in mid-trial: router: the link of out0"), "{trial:?}");
    assert_eq!(trial.devices[0].links.len(), 1, "{:?}", trial.devices);
}

#[cfg(feature = "snmp")]
#[test]
fn an_agent_answers_a_query_each_second() {
    let bench = match Bench::up(true) {
        Ok(bench) => bench,
        Err(narrows_lab::Error::CannotRun(why)) => {
            println!("NOT CHECKED: a management query each second, since {why}");
            return;
        }
        Err(error) => panic!("this test builds networks: {error}"),
    };
    // Asked through the port under load, and at a port where nobody is.
    let agent = |at: &str| {
        format!("{{ kind = \"management\", agent = \"198.18.0.1:{at}\", version = \"2c\", community = \"narrows\" }}")
    };
    let record = bench.run(&bench.plan(&format!("{}, {}", agent("161"), agent("9")), ""));
    let seen = |traffic: usize| match &trial(&record, traffic).modifier {
        Some(ModifierSeen::Management(seen)) => seen.clone(),
        other => panic!("{other:?}"),
    };
    let answered = seen(1);
    println!("answers of snmpd through the port under load: {:?}", answered.answer_ns);
    assert!(answered.asked >= 2, "one at the begin of each second: {answered:?}");
    assert_eq!((answered.answered, answered.wrong), (answered.asked, 0), "{answered:?}");
    assert_eq!(answered.answer_ns.len() as u64, answered.answered);
    let silent = seen(2);
    assert_eq!((silent.answered, silent.wrong), (0, 0), "{silent:?}");
    assert!(silent.asked >= 2 && silent.why.is_some(), "{silent:?}");
    let derived = derive(&record);
    assert_eq!((invalid(&derived, 1), invalid(&derived, 2)), (None, None));
    // What is kept opens no door.
    let kept = serde_json::to_string(&record).expect("json");
    assert!(!kept.contains("narrows\\\"") && !kept.contains("\"name\":\"narrows\""), "{kept}");
}
