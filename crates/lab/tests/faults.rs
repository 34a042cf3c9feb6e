//! Each fault takes effect, shows, and leaves no trace when it is removed. Needs root, of a user namespace at least, and
//! fails without.

use narrows_lab::{Error, Host, Lab, LabSpec, Site, faults};
use narrows_model::lab::Impairment;
use narrows_model::{Direction, Flow, Place};
use narrows_sys::ethtool::Device;
use narrows_sys::netlink::{Family, Socket};
use narrows_sys::rtnl::Links;
use narrows_sys::{files, nftables, sysctl};
use std::path::Path;

const GIGABIT: Impairment = Impairment {
    rate_bps: 1_000_000_000,
    overhead_bytes: 38,
    burst_bytes: 0,
    delay_us: 500,
    jitter_us: 0,
    loss: 0.0,
    burst_loss_enter: 0.0,
    burst_loss_leave: 0.0,
    burst_loss: 0.0,
    reorder: 0.0,
    duplicate: 0.0,
    queue_bytes: 0,
    queue_packets: 0,
    police_bps: 0,
    police_burst_bytes: 0,
    mtu: 0,
    mtu_icmp: true,
    corrupt: 0.0,
    gather_us: 0,
    codel: false,
    outage_us: 0,
    outage_each_us: 0,
    single_packets: false,
};

fn lab() -> Lab {
    let spec = LabSpec { name: "faults".to_owned(), up: GIGABIT, down: GIGABIT, ..LabSpec::default() };
    Lab::up(&spec).expect("this test builds networks: it needs root and /dev/net/tun")
}

/// All that a fault may change on a host, as text.
fn portrait(host: &Host) -> Vec<String> {
    host.run(|| {
        let mut lines = Vec::new();
        for key in
            ["tcp_rmem", "tcp_wmem", "tcp_window_scaling", "tcp_sack", "tcp_moderate_rcvbuf", "tcp_congestion_control"]
        {
            lines.push(sysctl::read(&format!("net.ipv4.{key}")).expect("a parameter"));
        }
        for key in
            ["ipv4.ipfrag_low_thresh", "ipv4.ipfrag_high_thresh", "ipv6.ip6frag_low_thresh", "ipv6.ip6frag_high_thresh"]
        {
            lines.push(sysctl::read(&format!("net.{key}")).expect("a parameter"));
        }
        for table in ["narrows-lab-input", "narrows-lab-output"] {
            lines.push(format!("{table} {:?}", nftables::counted(table).expect("nf_tables").is_some()));
        }
        let device = Device::open("path0").expect("a device");
        lines.push(format!("{:?}", device.link().expect("its link").speed_mbps));
        for feature in ["tso", "gso", "gro", "tx-udp-segmentation"] {
            lines.push(format!("{feature} {:?}", device.feature(feature).expect("its features")));
        }
        let mut links = Links::open().expect("links");
        lines.push(format!("mtu {}", links.get("path0").expect("the device").mtu));
        lines.push(qdiscs());
        lines.push(files::read_text(Path::new("/sys/class/net/path0/queues/rx-0/rps_cpus")).expect("its queue"));
        lines.push(format!(
            "{} taps",
            files::read_text(Path::new("/proc/thread-self/net/packet")).expect("proc").lines().count()
        ));
        lines
    })
    .expect("entered")
}

/// The kinds and options of all queueing disciplines of the calling thread's network.
fn qdiscs() -> String {
    const RTM_GETQDISC: u16 = 38;
    const DUMP: u16 = 0x300;
    let mut socket = Socket::open(Family::Route).expect("netlink");
    let replies = socket.request(RTM_GETQDISC, DUMP, &[0; 20]).expect("a dump");
    let mut words = Vec::new();
    for reply in replies {
        for kind in [1, 2] {
            let attribute = narrows_sys::netlink::find(reply.payload.get(20..).unwrap_or_default(), kind);
            words.push(format!("{:?}", attribute.map(|attribute| attribute.payload.to_vec())));
        }
    }
    words.join(" ")
}

#[test]
fn every_fault_takes_effect_and_leaves_no_trace() {
    let lab = lab();
    let host = |place: Place| lab.host(place.word()).expect("it is there");
    let all = || {
        let hosts = [Place::Client, Place::Server].map(|place| portrait(host(place)));
        (hosts, lab.impairment(Flow::Up), lab.impairment(Flow::Down))
    };
    let before = all();
    let mut beyond = Vec::new();
    for fault in faults::ALL {
        for place in fault.places.iter().filter(|place| **place != Site::Router) {
            let brought = match lab.fault(fault.id, *place, None, Direction::Both) {
                Err(error @ Error::NeedsRoot { .. }) => {
                    println!("NOT CHECKED: {} at {place}, since {error}", fault.id);
                    assert_eq!(all(), before, "{} at {place} left something", fault.id);
                    beyond.push((fault.id, *place));
                    continue;
                }
                brought => brought.expect(fault.id),
            };
            assert_eq!((brought.id.as_str(), brought.at), (fault.id, *place));
            assert_ne!(all(), before, "{} at {place} does something", fault.id);
            assert_eq!(lab.faults(), std::slice::from_ref(&brought));
            let twice = lab.fault(fault.id, *place, None, Direction::Both);
            assert!(matches!(twice, Err(Error::AlreadyActive { .. })), "{twice:?}");
            assert_eq!(lab.unfault(fault.id, Some(*place)).expect(fault.id), [brought]);
            assert_eq!(all(), before, "{} at {place} left something", fault.id);
        }
    }
    // All at once, and all removed at once.
    for fault in faults::ALL {
        // Faults that own the root qdisc as well cannot be distinguished when they are removed.
        let apart = |place: &&Site| **place != Site::Router && !["qdisc-drop", "udp-send-queue"].contains(&fault.id);
        let apart = |place: &&Site| apart(place) && !beyond.contains(&(fault.id, **place));
        for place in fault.places.iter().filter(apart) {
            lab.fault(fault.id, *place, None, Direction::Up).expect(fault.id);
        }
    }
    assert_eq!(lab.impairment(Flow::Down).loss, 0.0, "a fault of the path has a direction");
    assert!(lab.impairment(Flow::Up).loss > 0.0);
    lab.unfault("all", None).expect("all go");
    assert_eq!(all(), before);
    assert!(matches!(lab.unfault("sack-off", None), Err(Error::NotActive { .. })));
}

#[test]
fn a_fault_of_the_path_stays_on_top_of_a_change() {
    let lab = lab();
    lab.fault("random-loss", Place::Path, Some("2%"), Direction::Up).expect("a fault");
    lab.set(Flow::Up, Impairment { delay_us: 7000, ..GIGABIT }).expect("a path");
    let path = lab.impairment(Flow::Up);
    assert_eq!((path.delay_us, path.loss), (7000, 0.02));
    lab.unfault("random-loss", None).expect("it goes");
    assert_eq!(lab.impairment(Flow::Up).loss, 0.0);
}

#[test]
fn a_host_is_isolated() {
    let lab = lab();
    let client = lab.host("client").expect("it is there");
    let seen = client.run(|| {
        let name = files::read_text(Path::new("/proc/sys/kernel/hostname")).expect("proc");
        let devices = files::list(Path::new("/sys/class/net")).expect("sys");
        let hosts = files::read_text(Path::new("/etc/hosts")).expect("etc");
        let metrics = sysctl::read("net.ipv4.tcp_no_metrics_save").expect("proc");
        (name, devices, hosts, metrics)
    });
    let (name, devices, hosts, metrics) = seen.expect("entered");
    assert_eq!(name.trim(), "client");
    assert_eq!(devices, ["lo", "path0"]);
    assert!(hosts.contains("10.77.1.1 server"), "{hosts}");
    assert_eq!(metrics, "1");
    assert_eq!(client.cautions(), [""; 0]);
    let output = client.command("/bin/cat").arg("/proc/sys/kernel/hostname").output().expect("it runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "client");
    let error = lab.host("gateway").expect_err("no such host").to_string();
    assert!(error.contains("gateway") && error.contains("client, server"), "{error}");
}
