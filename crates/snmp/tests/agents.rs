//! Correct agents, agents with wrong counts, and agents that send garbage.

use narrows_model::host::hop::HopCount;
use narrows_model::host::snmp::{Secret, SnmpAccess, SnmpAgent};
use narrows_snmp::testing::{Behaviour, Counts, Miscount, Port, TestAgent};
use narrows_snmp::{Agent, Counter, Growth, Settling, SnmpError, Width, hop_count, sizes};
use proptest::prelude::*;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const PATIENT: Duration = Duration::from_secs(20);
const HASTY: Duration = Duration::from_millis(60);

fn start(behave: impl FnMut() -> Behaviour + Send + 'static) -> TestAgent {
    TestAgent::start(SocketAddr::from(([127, 0, 0, 1], 0)), "narrows", behave).expect("a port of loopback")
}

fn target(agent: &TestAgent, community: &str) -> SnmpAgent {
    let access = SnmpAccess::V2c { community: Secret::new(community) };
    SnmpAgent { agent: agent.address().to_string(), access }
}

fn open(agent: &TestAgent) -> Agent {
    Agent::open(&target(agent, "narrows"), PATIENT).expect("it answers")
}

/// `frames` frames of 64 bytes, and a few of the switch's own.
fn frames(frames: u64) -> Counts {
    Counts { unicast: frames, octets: frames * 64 + 5 * 100, multicast: 3, broadcast: 2, ..Counts::default() }
}

fn ports(passed: u64) -> Vec<Port> {
    let port = |index, name: &str, input, output| Port {
        description: format!("GigabitEthernet{}", &name[2..]),
        ..Port::new(index, name, input, output)
    };
    vec![port(5, "Gi0/5", frames(passed), Counts::default()), port(10_106, "Gi0/6", Counts::default(), frames(passed))]
}

#[test]
fn a_correct_agent_is_read() {
    let agent = start(|| Behaviour::Answer(ports(1 << 40)));
    let agent = open(&agent);
    let names: Vec<_> = agent.interfaces().expect("a list").into_iter().map(|one| (one.index, one.name)).collect();
    assert_eq!(names, [(5, "Gi0/5".to_owned()), (10_106, "Gi0/6".to_owned())]);
    let interface = agent.interface("GigabitEthernet0/5").expect("by description");
    assert_eq!(agent.interface("#5").expect("by number"), interface);
    let counters = agent.counters(&interface).expect("counters");
    assert_eq!(
        counters.input.unicast,
        Counter::Read { object: "ifHCInUcastPkts", value: 1 << 40, width: Width::Bits64 }
    );
    assert_eq!(counters.width(), Some(Width::Bits64));
    assert_eq!((counters.speed_mbps, counters.discontinuity), (Some(10_000), Some(0)));
    assert_eq!(counters.input.discards.width(), Some(Width::Bits32));
    let error = agent.interface("Gi0/9").expect_err("none").to_string();
    assert!(error.ends_with("has no interface `Gi0/9`; it has Gi0/5, Gi0/6"), "{error}");
}

#[test]
fn uptime_and_link_changes_of_a_device_are_read() {
    let old = |mut ports: Vec<Port>| {
        ports[1].wide = false;
        Behaviour::Answer(ports)
    };
    let agent = start(move || old(ports(7)));
    let agent = open(&agent);
    let interfaces = ["Gi0/5", "Gi0/6"].map(|name| agent.interface(name).expect("it has it"));
    let state = agent.device_state(&[&interfaces[0], &interfaces[1]]).expect("a state");
    let changes: Vec<_> = state.links.iter().map(|link| (link.device.as_str(), link.last_change)).collect();
    assert_eq!(changes, [("Gi0/5", Some(5)), ("Gi0/6", None)], "what it does not tell is not there");
    assert!(state.up_ms.is_some_and(|ms| ms < 600_000) && state.up_wraps_ms == Some(42_949_672_960), "{state:?}");
    assert_eq!((state.boot_id, state.interrupts, state.cpus.len()), (None, None, 0));
}

#[test]
fn a_single_request_is_not_repeated() {
    let asked = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&asked);
    let agent = start(move || {
        count.fetch_add(1, Ordering::Relaxed);
        Behaviour::Silent
    });
    let once = Agent::asking_once(&target(&agent, "narrows"), HASTY).expect("nothing is asked yet");
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    let error = once.up_time().expect_err("silence");
    assert!(matches!(error, SnmpError::NoAnswer { asked: 1, .. }), "{error}");
    drop(agent);
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[test]
fn a_long_list_is_walked_to_its_end() {
    let many: Vec<Port> =
        (1..=300).map(|at| Port::new(at, &format!("p{at}"), Counts::default(), Counts::default())).collect();
    let agent = start(move || Behaviour::Answer(many.clone()));
    assert_eq!(open(&agent).interfaces().expect("a list").len(), 300);
}

#[test]
fn an_agent_without_64_bits_is_not_trusted() {
    let agent = start(|| Behaviour::Answer(ports(7).into_iter().map(|port| Port { wide: false, ..port }).collect()));
    let agent = open(&agent);
    let interface = agent.interface("Gi0/5").expect("an interface");
    let counters = agent.counters(&interface).expect("counters");
    assert_eq!(counters.input.unicast, Counter::Read { object: "ifInUcastPkts", value: 7, width: Width::Bits32 });
    assert_eq!((counters.width(), counters.discontinuity), (Some(Width::Bits32), None));
    let growth = Growth::between(&counters, &agent.counters(&interface).expect("again"));
    let hop = hop_count("switch", agent.address(), &growth, &growth);
    let silent = hop.silent.expect("not used for accounting");
    assert!(silent.contains("ifInOctets is a 32-bit counter that wraps at 4,294,967,296"), "{silent}");
}

/// The counters of a hop whose agent miscounts a load, and what is wrong with its octets.
fn miscounted(miscount: Miscount, passed: u64) -> (HopCount, Option<String>) {
    let count = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&count);
    let shown = move || ports(seen.load(Ordering::SeqCst)).into_iter().map(|port| port.miscounting(miscount)).collect();
    let agent = start(move || Behaviour::Answer(shown()));
    let agent = open(&agent);
    let both = ["Gi0/5", "Gi0/6"].map(|name| agent.interface(name).expect("an interface"));
    let read = || both.each_ref().map(|one| agent.counters(one).expect("counters"));
    let before = read();
    count.store(passed, Ordering::SeqCst);
    let after = read();
    let [input, output] = [0, 1].map(|at| Growth::between(&before[at], &after[at]));
    let hop = hop_count("switch", agent.address(), &input, &output);
    (hop, sizes::unfit(&input.input, [64, 64]))
}

#[test]
fn octets_and_frames_divided_alike_are_consistent() {
    // Only the hops beside it show the error.
    let (hop, inconsistent) = miscounted(Miscount::Divided, 564_842_000);
    assert_eq!((hop.input, hop.output, inconsistent), (Some(551_603), Some(551_603), None));
}

#[test]
fn octets_that_wrapped_do_not_fit_the_frames() {
    let octets = "705032704 frames of 64 bytes do not match 2172420096 octets, 3.1 per frame: the octet counter has \
        32 bits and wraps at 4,294,967,296";
    let (hop, inconsistent) = miscounted(Miscount::Wrapped, 5_000_000_000);
    assert_eq!((hop.input, inconsistent.as_deref()), (Some(705_032_704), Some(octets)));
}

#[test]
fn a_caching_agent_is_awaited() {
    let asked = AtomicU64::new(0);
    // The cache is refreshed at the sixth request; the load of 1000 frames ended long before.
    let shown = move || if asked.fetch_add(1, Ordering::SeqCst) < 6 { 0 } else { 1000 };
    let agent = start(move || Behaviour::Answer(ports(shown())));
    let agent = open(&agent);
    let interface = agent.interface("#5").expect("an interface");
    let before = agent.counters(&interface).expect("counters");
    let settling =
        Settling { before, min_in: 1000, min_out: 0, every: Duration::from_millis(2), wait: Duration::from_secs(60) };
    let settled = agent.settle(&interface, &settling).expect("counters");
    assert_eq!(settled.input.unicast.value(), Some(1000));
}

#[test]
fn a_wrong_community_is_suggested_as_the_cause() {
    let agent = start(|| Behaviour::Answer(ports(1)));
    let error = Agent::open(&target(&agent, "public"), HASTY).expect_err("no answer");
    assert!(matches!(error, SnmpError::NoAnswer { .. }), "{error}");
    let told = error.to_string().replace(&agent.address().to_string(), "ADDRESS");
    assert_eq!(
        told,
        "cannot read sysUpTime from SNMP agent ADDRESS: no answer within 60 ms (3 requests); check the community, \
        address and port, that the agent runs and admits this host, and firewalls"
    );
}

#[test]
fn an_unreadable_answer_is_an_error() {
    let agent = start(|| Behaviour::Changed(ports(1), Box::new(|_| b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec())));
    let error = Agent::open(&target(&agent, "narrows"), Duration::from_millis(1500)).expect_err("rubbish");
    assert!(matches!(error, SnmpError::Unreadable { .. }), "{error}");
}

#[test]
fn a_renumbered_interface_is_detected() {
    let asked = AtomicU64::new(0);
    let renumbered = move || {
        let mut ports = ports(1);
        if asked.fetch_add(1, Ordering::SeqCst) >= 2 {
            ports[0].name = "Gi0/24".into();
        }
        ports
    };
    let agent = start(move || Behaviour::Answer(renumbered()));
    let agent = open(&agent);
    let interface = agent.interface("#5").expect("an interface");
    let error = agent.counters(&interface).expect_err("another one").to_string();
    assert!(error.contains("was `Gi0/5` and is now `Gi0/24`"), "{error}");
}

#[test]
fn an_agent_works_in_async_code() {
    fn of_any_thread<T: Send + Sync>(_: &T) {}
    let agent = start(|| Behaviour::Answer(ports(9)));
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let name = runtime.block_on(async {
        let agent = open(&agent);
        of_any_thread(&agent);
        agent.interface("#5").expect("an interface").name
    });
    assert_eq!(name, "Gi0/5");
}

/// Requests everything; no answer may do more than fail.
fn ask(agent: &TestAgent) -> Result<(), SnmpError> {
    let agent = Agent::open(&target(agent, "narrows"), HASTY)?;
    let interface = agent.interface("Gi0/5")?;
    agent.counters(&interface)?;
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let agent = start(move || { let bytes = bytes.clone(); Behaviour::Changed(ports(1), Box::new(move |_| bytes)) });
        prop_assert!(ask(&agent).is_err());
    }

    #[test]
    fn no_damaged_answer_panics(at in 0_usize..4000, with in any::<u8>(), question in 0_u64..5, cut in any::<bool>()) {
        let asked = AtomicU64::new(0);
        let agent = start(move || {
            let change = move |mut bytes: Vec<u8>| {
                let at = at % bytes.len();
                if cut { bytes.truncate(at) } else { bytes[at] ^= with }
                bytes
            };
            if asked.fetch_add(1, Ordering::SeqCst) == question {
                Behaviour::Changed(ports(1), Box::new(change))
            } else {
                Behaviour::Answer(ports(1))
            }
        });
        // The request is repeated after a damaged answer: mostly it succeeds.
        let _ = ask(&agent);
    }
}
