//! A live host in its own network namespaces: its facts are right, its counters move, collecting changes nothing, and a
//! capture of it gives the same facts again.

use narrows_collect::{Host, Keep, Live, Recorded, counters, inventory, record};
use narrows_model::{Snapshot, Value};
use narrows_sys::ethtool::Device;
use narrows_sys::netns::{Namespaces, become_root_of_user_namespace};
use narrows_sys::rtnl::{Links, Qdisc};
use narrows_sys::{Error, files, process, sysctl};
use std::collections::BTreeMap;
use std::net::{IpAddr, UdpSocket};
use std::path::Path;

const NEAR: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 71, 93, 1));
const FAR: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 71, 93, 2));
const TCP_RMEM: &str = "net.ipv4.tcp_rmem";

fn main() {
    if !process::is_root()
        && let Err(error) = become_root_of_user_namespace()
    {
        println!("NOT CHECKED: collecting from a live host, since {error}");
        return;
    }
    let (near, far) = two_hosts();
    let tests: [(&str, fn()); 7] = [
        ("facts_are_those_of_this_namespace", facts_are_those_of_this_namespace),
        ("a_change_is_seen", a_change_is_seen),
        ("shapers_give_their_rate", shapers_give_their_rate),
        ("counters_count_what_is_sent", counters_count_what_is_sent),
        ("a_tunnel_is_followed_to_its_underlay", a_tunnel_is_followed_to_its_underlay),
        ("collecting_changes_nothing", collecting_changes_nothing),
        ("a_capture_gives_the_same_facts", a_capture_gives_the_same_facts),
    ];
    for (name, test) in tests {
        near.run(test).expect("the namespaces can be entered");
        println!("test {name} ... ok");
    }
    let facts = far.run(|| inventory(&Live::new(), Some(NEAR))).expect("the namespaces can be entered");
    assert_eq!(facts.text("nic.name"), Some("right"), "the other host has its own device");
    assert_eq!(facts.text("host.name"), Some("far"));
    assert_ne!(facts.number("tcp.rmem.max"), Some(262_144.0), "a change on one host is none on the other");
}

/// Two hosts with a veth pair between them: `left` with 10.71.93.1 and an MTU of 1400, `right` with 10.71.93.2.
fn two_hosts() -> (Namespaces, Namespaces) {
    let nothing = || Ok::<_, Error>(());
    let (near, ()) = Namespaces::create("near", nothing).expect("namespaces");
    let (far, ()) = Namespaces::create("far", nothing).expect("namespaces");
    let set_up = |name: &str, address: IpAddr, mtu: u32| {
        let mut links = Links::open().expect("netlink");
        links.add_address(name, address, 24).expect("an address");
        links.set_mtu(name, mtu).expect("an MTU");
        links.set_up(name, true).expect("up");
    };
    near.run(|| {
        Links::open().expect("netlink").add_veth("left", "right", far.network()).expect("a veth pair");
        set_up("left", NEAR, 1400);
    })
    .expect("entered");
    far.run(|| set_up("right", FAR, 1500)).expect("entered");
    (near, far)
}

fn facts() -> Snapshot {
    inventory(&Live::new(), Some(FAR))
}

fn flag(facts: &Snapshot, key: &str) -> Option<bool> {
    match facts.get(key)?.value {
        Value::Flag(on) => Some(on),
        _ => None,
    }
}

fn facts_are_those_of_this_namespace() {
    let facts = facts();
    assert_eq!(facts.host, "near");
    for (key, text) in [
        ("host.name", "near"),
        ("nic.name", "left"),
        ("nic.kind", "veth"),
        ("nic.driver", "veth"),
        ("route.device", "left"),
        ("route.source", "10.71.93.1"),
        ("qdisc.root.kind", "noqueue"),
    ] {
        assert_eq!(facts.text(key), Some(text), "{key}: {:?}", facts.why_absent(key));
    }
    for (key, number) in [("nic.mtu", 1400.0), ("path.mtu", 1400.0), ("taps.count", 0.0)] {
        assert_eq!(facts.number(key), Some(number), "{key}: {:?}", facts.why_absent(key));
    }
    assert_eq!(flag(&facts, "nic.feature.gso"), Some(true));
    assert_eq!(flag(&facts, "nic.up"), Some(true));
    // What a veth does not have is absent with a reason, not zero.
    assert!(facts.why_absent("nic.speed").is_some_and(|why| why.contains("placeholder")));
    assert!(facts.why_absent("pcie.bandwidth").is_some_and(|why| why.contains("left is no hardware")));
    assert!(facts.why_absent("route.gateway").is_some());
    assert!(facts.collectors.iter().all(|run| run.duration_us < 10_000_000));
}

fn a_change_is_seen() {
    let device = Device::open("left").expect("a device");
    let before = device.set_feature("gso", false).expect("veth lets it go");
    let rmem = sysctl::read(TCP_RMEM).expect("it is there");
    sysctl::write(TCP_RMEM, "4096 65536 262144").expect("root");
    let changed = facts();
    assert_eq!(flag(&changed, "nic.feature.gso"), Some(false));
    assert_eq!(changed.number("tcp.rmem.max"), Some(262_144.0));
    assert_eq!(changed.number("tcp.rmem.default"), Some(65_536.0));
    device.set_features(&before).expect("the way back");
    assert_eq!(flag(&facts(), "nic.feature.gso"), Some(true));
    assert_eq!(device.feature("gso").expect("an answer"), Some(true));
    assert_eq!(rmem.split(' ').count(), 3);
}

fn shapers_give_their_rate() {
    let mut links = Links::open().expect("netlink");
    let rate_bps = 10_000_000;
    let shapers = [
        ("tbf", Qdisc::TokenBucket { rate_bps, burst_bytes: 16_000, limit_bytes: 30_000 }),
        ("htb", Qdisc::HierarchicalTokenBucket { rate_bps, burst_bytes: 16_000, limit_packets: 50 }),
    ];
    for (kind, shaper) in shapers {
        if let Err(error) = links.replace_qdisc("left", &shaper) {
            println!("NOT CHECKED: the rate of {kind}, since {error}");
            continue;
        }
        let facts = facts();
        assert_eq!(facts.text("qdisc.root.kind"), Some(kind));
        assert_eq!(facts.number("qdisc.rate"), Some(10e6), "{kind}");
        assert_eq!(facts.text("qdisc.rate.kind"), Some(kind));
        let (key, limit) = if kind == "tbf" { ("qdisc.limit.bytes", 30_000.0) } else { ("qdisc.limit.packets", 50.0) };
        assert_eq!(facts.number(key), Some(limit), "{kind}");
        links.delete_qdisc("left").expect("it is there");
    }
    assert_eq!(facts().text("qdisc.root.kind"), Some("noqueue"));
}

fn counters_count_what_is_sent() {
    // One host for both: sockets that stay open must return fresh answers.
    let host = Live::new();
    let before = counters(&host, Some(FAR));
    #[allow(clippy::disallowed_methods)] // the ban is for the program; a test needs a plain sender
    let socket = UdpSocket::bind((NEAR, 0)).expect("a socket");
    for _ in 0..25 {
        socket.send_to(&[0; 100], (FAR, 9)).expect("sent");
    }
    let after = counters(&host, Some(FAR));
    let grown = after.counts_since(&before);
    assert_eq!(grown.get("snmp.Udp.OutDatagrams"), Some(&25), "of this namespace alone");
    // Includes the neighbour's ARP traffic, but nothing of other hosts.
    let sent = grown.get("nic.counter.tx_packets").copied().unwrap_or(0);
    assert!((25..40).contains(&sent), "{sent} packets");
    assert!(after.facts.len() > 100, "{} facts", after.facts.len());
}

fn a_tunnel_is_followed_to_its_underlay() {
    let mut links = Links::open().expect("netlink");
    let [own, other] = [1, 2].map(|last| IpAddr::from([10, 71, 94, last]));
    let IpAddr::V4(remote) = FAR else { return };
    if let Err(error) = links.add_vxlan("over", 7, remote) {
        println!("NOT CHECKED: a tunnel, since {error}");
        return;
    }
    links.add_address("over", own, 24).expect("an address");
    links.set_mtu("over", 1400).expect("an MTU");
    links.set_up("over", true).expect("up");
    let shaper = Qdisc::TokenBucket { rate_bps: 10_000_000, burst_bytes: 16_000, limit_bytes: 30_000 };
    let shapes = links.replace_qdisc("left", &shaper).is_ok();
    let facts = inventory(&Live::new(), Some(other));
    for (key, text) in [
        ("nic.name", "over"),
        ("nic.kind", "vxlan"),
        ("nic.hardware", "left"),
        ("layers", "over (vxlan, MTU 1400) > left (veth, MTU 1400)"),
        ("layer.name.1", "left"),
        ("qdisc.device", if shapes { "left" } else { "over" }),
    ] {
        assert_eq!(facts.text(key), Some(text), "{key}: {:?}", facts.why_absent(key));
    }
    for (key, number) in [("layer.mtu.1", 1400.0), ("layer.overhead.0", 50.0), ("layer.tx_dropped.1", 0.0)] {
        assert_eq!(facts.number(key), Some(number), "{key}: {:?}", facts.why_absent(key));
    }
    assert_eq!(facts.number("qdisc.rate"), shapes.then_some(10e6));
    drop(links.delete_qdisc("left"));

    // The tunnel as the port of a bridge, which alone knows who is behind it.
    links.add_bridge("br7").expect("a bridge");
    links.add_port("br7", "over").expect("a port");
    let [own, other] = [1, 2].map(|last| IpAddr::from([10, 71, 95, last]));
    let mac = [2, 0, 0, 0, 0, 9];
    links.add_address("br7", own, 24).expect("an address");
    links.set_up("br7", true).expect("up");
    links.add_neighbour("br7", other, mac).expect("a neighbour");
    links.add_port_address("over", mac).expect("an entry");
    let facts = inventory(&Live::new(), Some(other));
    assert_eq!(facts.text("layer.name.1"), Some("over"), "{:?}", facts.why_absent("layer.name.1"));
    assert_eq!(facts.text("layer.name.2"), Some("left"), "{:?}", facts.why_absent("layer.name.2"));
    links.delete("br7").expect("it is there");
    links.delete("over").expect("it is there");
}

/// Everything that a collector could change by mistake.
fn fingerprint() -> BTreeMap<String, String> {
    fn walk(directory: &Path, found: &mut BTreeMap<String, String>) {
        for name in files::list(directory).unwrap_or_default() {
            let path = directory.join(name);
            match files::read_text(&path) {
                Ok(text) => drop(found.insert(path.display().to_string(), text)),
                Err(_) => walk(&path, found),
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(Path::new("/proc/sys/net/ipv4"), &mut found);
    walk(Path::new("/proc/sys/net/ipv6"), &mut found);
    walk(Path::new("/proc/sys/net/core"), &mut found);
    let device = Device::open("left").expect("a device");
    found.insert("features".into(), format!("{:?}", device.features().expect("features")));
    let link = Links::open().expect("netlink").get("left").expect("the device");
    found.insert("link".into(), format!("{link:?}"));
    // Counters and random salts differ by themselves.
    found.retain(|path, _| !["random", "nf_conntrack", "stable_secret", "rss_key"].iter().any(|w| path.contains(w)));
    found
}

fn collecting_changes_nothing() {
    let before = fingerprint();
    assert!(before.len() > 100, "{} things", before.len());
    let host = Live::new();
    let all = inventory(&host, Some(FAR));
    let some = counters(&host, Some(FAR));
    assert!(!all.facts.is_empty() && !some.facts.is_empty());
    assert_eq!(fingerprint(), before);
}

fn a_capture_gives_the_same_facts() {
    let directory = tempfile::tempdir().expect("a directory");
    let full = directory.path().join("full");
    let keep = Keep { addresses: true, host_name: true };
    let recording = record(&Live::new(), Some(FAR), &full, keep).expect("a capture");
    let replayed = Recorded::open(&full).expect("it was just written");
    for (live, again) in
        [(&recording.inventory, inventory(&replayed, None)), (&recording.counters, counters(&replayed, None))]
    {
        // The kernel id is an identifier, which a capture does not keep.
        let live_facts: Vec<_> = live.facts.iter().filter(|fact| fact.key != "host.boot").cloned().collect();
        assert_eq!(again.facts, live_facts);
        let live_absent = live.absent.clone();
        let again_absent: Vec<_> = again.absent.iter().filter(|absent| absent.what != "host.boot").cloned().collect();
        assert_eq!(again_absent, live_absent);
        assert_eq!((&again.host, again.taken_unix_us), (&live.host, live.taken_unix_us));
    }

    let bare = directory.path().join("bare");
    record(&Live::new(), Some(FAR), &bare, Keep::default()).expect("a capture");
    let live: &dyn Host = &Live::new();
    let address = live.link("left").expect("the device").address.expect("an Ethernet device");
    let tail = address.get(8..).expect("six groups");
    let mut texts = Vec::new();
    walk_texts(&bare, &mut texts);
    assert!(texts.len() > 40, "{} files", texts.len());
    for (path, text) in &texts {
        for secret in ["10.71.93.", tail, "near\n", "\"near\""] {
            assert!(!text.contains(secret), "{path} holds {secret:?}");
        }
    }
    let facts = inventory(&Recorded::open(&bare).expect("a capture"), None);
    assert_eq!(facts.text("host.name"), Some("host"));
    assert_eq!(facts.text("route.source").map(|source| source.starts_with("192.0.2.")), Some(true));
    assert_eq!(facts.number("nic.mtu"), Some(1400.0));
}

fn walk_texts(directory: &Path, texts: &mut Vec<(String, String)>) {
    for name in files::list(directory).expect("a directory") {
        let path = directory.join(name);
        match files::read_text(&path) {
            Ok(text) => texts.push((path.display().to_string(), text)),
            Err(_) => walk_texts(&path, texts),
        }
    }
}
