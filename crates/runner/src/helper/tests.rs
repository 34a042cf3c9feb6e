//! A corrupt network process: what it sends to a helper changes, reads and sends nothing that is not allowed.

use super::order::{Bounds, MAX_ORDER, Refusal, Role, TuneOrder, WatchOrder, Word};
use super::serving::serve;
use narrows_model::{Change, Setting};
use narrows_sys::channel::Channel;
use narrows_sys::deputy::Wish;
use narrows_sys::netns::Namespaces;
use narrows_sys::rtnl::Links;
use narrows_sys::{files, sysctl};
use narrows_wire::api::frames::{LinksRequest, PortRequest};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRng, TestRunner};
use serde_json::{Value, json};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::time::Duration;

const KEY: &str = "net.ipv4.tcp_rmem";
const VALUE: &str = "4096 131072 262144";
const SECRET: &str = "never-to-be-read";

/// A helper on a thread, in a network of its own, and a line to it; the helper ends with the line.
fn with_helper(role: Role, allow_tune: bool, frames: &[&str], act: impl FnOnce(&Channel, &Path) + Send) {
    let state = tempfile::tempdir().expect("a directory");
    let secret = state.path().join("secret");
    files::write_whole(&secret, SECRET.as_bytes(), 0o600).expect("written");
    let frames = frames.iter().map(|name| (*name).to_owned()).collect();
    let bounds = Bounds { state: state.path().to_owned(), allow_tune, frames, port: 5220, process: std::process::id() };
    let made = Namespaces::create("helper", || {
        let (ours, theirs) = Channel::pair().expect("a pair");
        std::thread::scope(|scope| {
            let helper = scope.spawn(move || serve(&theirs, role, bounds));
            act(&ours, state.path());
            ours.close();
            helper.join().expect("it ends without a panic");
        });
        Ok::<_, narrows_sys::Error>(())
    });
    made.expect("root, of a user namespace at least");
}

/// Opens a channel, sends a message on it, perhaps with a descriptor; the channel.
fn open(line: &Channel, message: &[u8], with: Option<&OwnedFd>) -> Channel {
    let (ours, theirs) = Channel::pair().expect("a pair");
    line.send(&[], Some(OwnedFd::from(theirs).as_fd())).expect("the helper takes it");
    ours.set_limit(Some(Duration::from_secs(30))).expect("an option");
    // The helper may have closed it already.
    let _ = ours.send(message, with.map(|fd| fd.as_fd()));
    ours
}

fn answer(channel: &Channel) -> Option<Result<Value, Refusal>> {
    let (bytes, _) = channel.receive(64 << 20).ok()??;
    assert!(!String::from_utf8_lossy(&bytes).contains(SECRET), "a file was read");
    Some(serde_json::from_slice(&bytes).expect("an answer"))
}

fn order(line: &Channel, order: &impl serde::Serialize) -> Option<Result<Value, Refusal>> {
    answer(&open(line, &serde_json::to_vec(order).expect("an order"), None))
}

fn rmem(value: &str) -> TuneOrder {
    TuneOrder::Apply(Setting::Sysctl { key: KEY.into(), value: value.into() })
}

fn journal(state: &Path) -> Vec<String> {
    let names = files::list(&state.join("changes")).unwrap_or_default();
    names.into_iter().filter(|name| name != "lock").collect()
}

/// Words that orders are made of, good and bad.
fn words() -> impl Strategy<Value = Value> {
    const TEXTS: &[&str] = &[
        "apply", "undo", "keep", "sysctl", "offload", "mtu", "root_qdisc", "neighbour", "bridge", "rings",
        "flow_control", "inventory", "links", "look", "socket", "receive_buffer", "congestion_control", "generate",
        "receive", "drops", "count", "bpf_programs", "qualify", "kernel.panic", "kernel/core_pattern",
        "net.ipv4.ip_forward", "net.core.../../kernel/panic", "net.ipv4.conf.all.rp_filter",
        "net.ipv4.conf.lo.forwarding", "../secret", "secret", "../../../etc/shadow", "lo", "value", "key", "device",
        "address", "mac", "feature", "on", "kind", "input", "output", "state", "gateway", "127.0.0.1",
        "02:00:00:00:00:01", "|/bin/sh", "1",
    ];
    let leaf = prop_oneof![
        proptest::sample::select(TEXTS).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
    ];
    leaf.prop_recursive(4, 24, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((proptest::sample::select(TEXTS), inner), 0..5)
                .prop_map(|pairs| pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Value>()),
        ]
    })
}

/// Many random messages: bytes, words, words of the form of an order; and lengths that lie.
fn flood(line: &Channel, check: impl Fn()) {
    let config = Config { cases: 3_000, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(config.rng_algorithm);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let file = OwnedFd::from(narrows_sys::net::listen(0).expect("a socket"));
    let bytes = proptest::collection::vec(any::<u8>(), 0..300);
    let messages = prop_oneof![bytes, words().prop_map(|words| serde_json::to_vec(&words).expect("JSON"))];
    let flooded = runner.run(&(messages, any::<bool>(), 0..20_u8), |(message, with, end)| {
        let channel = open(line, &message, with.then_some(&file));
        // Some wait for the answer, others are gone at once.
        if end > 0 {
            let answered = answer(&channel);
            prop_assert!(
                !matches!(answered, Some(Ok(Value::Object(ref change))) if change.contains_key("before")),
                "{answered:?}"
            );
        }
        Ok(())
    });
    flooded.expect("nothing gets through");
    // No message at all, a length beyond the limit, one that never comes.
    for message in [vec![0; MAX_ORDER + 1], Vec::new()] {
        assert!(matches!(answer(&open(line, &message, None)), None | Some(Err(_))));
    }
    check();
}

#[test]
fn random_messages_change_nothing() {
    with_helper(Role::Tune, true, &[], |line, state| {
        let before = ["net.ipv4.ip_forward", "net.ipv4.conf.all.rp_filter", KEY].map(|key| sysctl::read(key).ok());
        let panic = files::read_text(Path::new("/proc/sys/kernel/panic")).expect("readable");
        flood(line, || {
            let now = ["net.ipv4.ip_forward", "net.ipv4.conf.all.rp_filter", KEY].map(|key| sysctl::read(key).ok());
            assert_eq!(now, before);
            assert_eq!(files::read_text(Path::new("/proc/sys/kernel/panic")).expect("readable"), panic);
            assert_eq!(journal(state), Vec::<String>::new());
        });
        assert!(matches!(order(line, &rmem(VALUE)), Some(Ok(_))), "it still works");
    });
}

#[test]
fn what_is_forbidden_to_clients_is_forbidden_to_the_network_process() {
    with_helper(Role::Tune, true, &[], |line, state| {
        for (key, value) in [
            ("kernel.panic", "1"),
            ("kernel.core_pattern", "|/bin/sh"),
            ("net.core.../../kernel/panic", "1"),
            ("net.ipv4.ip_forward", "1"),
            ("net.ipv4.conf.lo.forwarding", "1"),
            ("net.ipv4.conf.all.rp_filter", "0"),
            (KEY, "1 2 3"),
            (KEY, "4096 131072 99999999999"),
            ("net.ipv4.tcp_congestion_control", "../evil"),
        ] {
            let refused = order(line, &TuneOrder::Apply(Setting::Sysctl { key: key.into(), value: value.into() }));
            assert!(matches!(refused, Some(Err(Refusal::NotAllowed(_)))), "{key} {value}: {refused:?}");
        }
        for other in [
            json!({"apply": {"kind": "neighbour", "device": "lo", "address": "10.0.0.1", "mac": "02:00:00:00:00:01"}}),
            json!({"apply": {"kind": "rings", "device": "lo", "rx": 64, "tx": 64}}),
        ] {
            assert!(matches!(order(line, &other), Some(Err(Refusal::NotAllowed(_)))), "{other}");
        }
        // Entries of others: of the host's own user, of another process, and no entries.
        files::make_directory(&state.join("changes")).expect("made");
        files::write_whole(&state.join("changes/5-5-5.json"), b"{}", 0o600).expect("written");
        for id in ["5-5-5", "../secret", "", "none"] {
            for theirs in [TuneOrder::Undo(id.into()), TuneOrder::Keep(id.into())] {
                assert_eq!(order(line, &theirs), Some(Err(Refusal::NoSuchChange)), "{theirs:?}");
            }
        }
    });
}

#[test]
fn a_helper_undoes_what_is_left_when_the_line_ends() {
    with_helper(Role::Tune, true, &[], |line, state| {
        let before = sysctl::read(KEY).expect("readable");
        let change = order(line, &rmem(VALUE)).expect("an answer").expect("set");
        let change: Change = serde_json::from_value(change).expect("a change");
        assert_eq!(sysctl::read(KEY).expect("readable"), VALUE);
        assert!(matches!(order(line, &rmem("4096 131072 524288")), Some(Ok(_))));
        line.close();
        for _ in 0..500 {
            if journal(state).is_empty() {
                break;
            }
            narrows_sys::clock::sleep(Duration::from_millis(10));
        }
        assert_eq!((sysctl::read(KEY).expect("readable"), change.before), (before.clone(), before));
    });
}

#[test]
fn without_the_flag_a_helper_changes_nothing() {
    with_helper(Role::Tune, false, &[], |line, _| {
        assert!(matches!(order(line, &rmem(VALUE)), Some(Err(Refusal::NotAllowed(_)))));
        assert_ne!(sysctl::read(KEY).expect("readable"), VALUE);
    });
}

fn plan(device: &str, address: &str) -> Value {
    let side = |address: &str| json!({"addresses": [address, address], "ports": [2000, 2009]});
    json!({
        "device": device, "mode": null, "load": {"frames_per_second": 1000.0}, "burst": 1, "catch_up_us": 0,
        "duration_ms": 200, "count": null, "workers": 1, "workers_note": null, "first_stream": 0, "stamp_every": 1,
        "broadcast_every": 0, "interval_ms": 100,
        "format": {
            "source_mac": "02:00:00:00:00:01", "destination_mac": "02:00:00:00:00:02", "vlan": null, "family": "ipv4",
            "transport": "udp", "source": side("198.18.0.2"), "destination": side(address), "walk": "odometer",
            "sizes": [64], "ttl": 64,
        },
    })
}

fn sent_by(device: &str) -> u64 {
    narrows_collect::link_counters(device).expect("a device").tx_packets
}

/// Two pairs of devices; frames are allowed by the first.
fn two_pairs() {
    let here = narrows_sys::netns::network_of_this_thread().expect("a namespace");
    let mut links = Links::open().expect("netlink");
    for [one, other] in [["good0", "good1"], ["bad0", "bad1"]] {
        links.add_veth(one, other, here.as_fd()).expect("a pair");
        for device in [one, other] {
            sysctl::write(&format!("net.ipv6.conf.{device}.disable_ipv6"), "1").expect("set");
            links.set_up(device, true).expect("up");
        }
    }
}

#[test]
fn frames_leave_by_the_named_devices_alone() {
    with_helper(Role::Watch, false, &["good0"], |line, _| {
        two_pairs();
        let generate = |device: &str, to: &str| order(line, &json!({"generate": [[plan(device, to)], null]}));
        for (device, to) in
            [("bad0", "198.19.0.2"), ("good0", "10.0.0.1"), ("lo", "198.19.0.2"), ("../good0", "198.19.0.2")]
        {
            let refused = generate(device, to);
            assert!(matches!(refused, Some(Err(Refusal::NotAllowed(_)))), "{device} {to}: {refused:?}");
        }
        for device in ["bad0", "lo", ""] {
            let look = WatchOrder::Look(PortRequest { device: device.into(), gateway: None });
            assert!(matches!(order(line, &look), Some(Err(Refusal::NotAllowed(_)))), "{device}");
        }
        assert_eq!(sent_by("bad0"), 0);
        let sent = generate("good0", "198.19.0.2");
        assert!(matches!(sent, Some(Ok(_))), "{sent:?}");
        assert!(sent_by("good0") > 0 && sent_by("bad0") == 0);
    });
}

#[test]
fn a_generator_ends_with_its_channel() {
    with_helper(Role::Watch, false, &["good0"], |line, _| {
        two_pairs();
        let mut long = plan("good0", "198.19.0.2");
        long["duration_ms"] = json!(600_000);
        let channel = open(line, &serde_json::to_vec(&json!({"generate": [[long], null]})).expect("JSON"), None);
        while sent_by("good0") == 0 {
            narrows_sys::clock::sleep(Duration::from_millis(5));
        }
        channel.close();
        // The end of the test waits for the helper, which waits for the generator, and not for ten minutes.
    });
}

#[test]
fn random_messages_read_no_file_and_send_no_frame() {
    with_helper(Role::Watch, false, &["good0"], |line, _| {
        two_pairs();
        flood(line, || assert_eq!((sent_by("good0"), sent_by("bad0")), (0, 0)));
        for device in ["../../../etc/shadow", "secret", ""] {
            let links = LinksRequest { input: device.into(), output: device.into(), state: true };
            let read = order(line, &WatchOrder::Links(links, None)).expect("an answer").expect("an answer");
            assert_eq!(read["is"], "missing", "{read}");
        }
        assert!(matches!(order(line, &WatchOrder::Socket(Wish::SendBuffer(1 << 20))), Some(Err(_))), "no socket");
        assert!(matches!(order(line, &WatchOrder::Socket(Wish::RealTime(1))), Some(Err(_))), "a thread of another");
        let snapshot = order(line, &WatchOrder::Inventory(None)).expect("an answer").expect("an inventory");
        assert!(snapshot["facts"].as_array().is_some_and(|facts| facts.len() > 50));
        for what in ["drops", "bpf_programs"] {
            let count = open(line, &serde_json::to_vec(&json!({ "count": what })).expect("JSON"), None);
            if answer(&count).expect("an answer").is_ok() {
                count.send(&serde_json::to_vec(&Word::Finish).expect("JSON"), None).expect("sent");
                assert!(answer(&count).expect("an answer").expect("facts").is_array());
            } else {
                println!("NOT CHECKED: {what}, since they need root on the machine");
            }
        }
    });
}

#[test]
fn too_many_orders_at_once_are_turned_away() {
    with_helper(Role::Watch, false, &[], |line, _| {
        // Each waits for its order, which does not come.
        let waiting: Vec<Channel> = (0..400)
            .map(|_| {
                let (ours, theirs) = Channel::pair().expect("a pair");
                line.send(&[], Some(OwnedFd::from(theirs).as_fd())).expect("the helper takes it");
                ours
            })
            .collect();
        let closed =
            waiting.iter().filter(|channel| channel.is_readable(Duration::from_millis(20)).expect("a wait")).count();
        assert!(closed >= 400 - super::order::MAX_ORDERS, "{closed} of 400 closed");
        drop(waiting);
    });
}
