//! Changes on the loopback device and the parameters of a fresh network namespace.

use super::journal::Maker;
use super::*;
use narrows_model::load::frames::Mac;
use narrows_sys::netns::{self, Namespaces};
use narrows_sys::network_id::NetworkId;
use narrows_sys::rtnl::{Links, Qdisc};
use std::os::fd::AsFd as _;

/// Runs inside of a fresh network namespace, with a state directory of its own.
fn isolated<T: Send>(test: impl FnOnce(&Path) -> T + Send) -> T {
    let state = tempfile::tempdir().expect("a directory");
    let (_namespace, value) = Namespaces::create("tune", || Ok::<_, narrows_sys::Error>(test(state.path())))
        .expect("root, as every test here");
    value
}

fn sysctl(key: &str, value: &str) -> Setting {
    Setting::Sysctl { key: key.into(), value: value.into() }
}

fn read(setting: &Setting) -> String {
    knob(setting).current().expect("readable")
}

/// A pair of devices and a bridge.
fn bench() {
    let here = netns::network_of_this_thread().expect("proc");
    let mut links = Links::open().expect("links");
    let made = links.add_veth("port0", "port1", here.as_fd()).and_then(|()| links.add_bridge("br0"));
    made.and_then(|()| links.set_up("port0", true)).expect("devices");
}

fn neighbour(last: u8) -> Setting {
    Setting::Neighbour { device: "port0".into(), address: [198, 18, 0, 1].into(), mac: Mac([2, 0, 0, 0, 0, last]) }
}

fn bridge(option: &str, value: u32) -> Setting {
    Setting::Bridge { bridge: "br0".into(), option: option.into(), value }
}

/// All kinds but those that need a driver of real hardware.
fn all_kinds() -> Vec<Setting> {
    bench();
    let device = || "lo".to_owned();
    vec![
        neighbour(1),
        bridge("ageing_time", 8_640_000),
        bridge("stp_state", 1),
        bridge("mcast_snooping", 1),
        bridge("mcast_querier", 1),
        sysctl("net.ipv4.conf.port0.forwarding", "1"),
        sysctl("net.ipv6.conf.port0.router_solicitations", "0"),
        sysctl("net.ipv4.tcp_rmem", "4096 131072 262144"),
        sysctl("net.ipv4.tcp_sack", "0"),
        Setting::Mtu { device: device(), mtu: 4000 },
        Setting::Offload { device: device(), feature: "tso".into(), on: false },
        Setting::RootQdisc { device: device(), kind: "pfifo".into() },
    ]
}

#[test]
fn every_kind_is_set_and_set_back() {
    isolated(|state| {
        let tuner = Tuner::new(state, "test");
        for setting in all_kinds() {
            let before = read(&setting);
            let change = tuner.apply(&setting, Place::Server).expect("settable");
            assert_eq!(change.before, before, "{setting}");
            assert_ne!(read(&setting), before, "{setting}");
            assert_eq!(tuner.list().expect("list").len(), 1);
            assert_eq!(tuner.undo(&change.id).expect("undoable"), Undone::SetBack, "{setting}");
            assert_eq!(read(&setting), before, "{setting}");
            assert_eq!(tuner.list().expect("list").len(), 0);
        }
    });
}

#[test]
fn the_journal_alone_undoes_after_a_crash() {
    isolated(|state| {
        let settings = all_kinds();
        let before: Vec<_> = settings.iter().map(read).collect();
        for setting in &settings {
            Tuner::new(state, "test").apply(setting, Place::Server).expect("settable");
        }
        // A crash between writing the journal and reading back leaves `obtained` open.
        let journal = Journal::new(&state.join("changes"));
        for mut entry in journal.entries().expect("entries").0 {
            entry.obtained = None;
            journal.write(&entry).expect("written");
        }
        for undoing in Tuner::new(state, "other").undo_all().expect("list") {
            assert_eq!(undoing.outcome.expect("undone"), Undone::SetBack);
        }
        assert_eq!(settings.iter().map(read).collect::<Vec<_>>(), before);
    });
}

#[test]
fn a_qdisc_with_options_comes_back_exactly() {
    isolated(|state| {
        let tuner = Tuner::new(state, "test");
        // 123 packets: `struct tc_fifo_qopt`.
        let qdisc = qdisc::RootQdisc { device: "lo", kind: "pfifo" };
        qdisc.write(&format!("pfifo 120000 {}", "ewAAAA==")).expect("made");
        let before = qdisc.current().expect("readable");
        assert_eq!(before, "pfifo 120000 ewAAAA==");
        change_and_undo(&tuner, &before);
        // And a shaper, whose options are a structure and attributes.
        let shaper = Qdisc::TokenBucket { rate_bps: 4_000_000, burst_bytes: 3_000, limit_bytes: 1_000_000 };
        Links::open().and_then(|mut links| links.replace_qdisc("lo", &shaper)).expect("a shaper");
        let before = qdisc.current().expect("readable");
        assert!(before.starts_with("tbf "), "{before}");
        change_and_undo(&tuner, &before);
    });

    fn change_and_undo(tuner: &Tuner, before: &str) {
        for kind in ["default", "bfifo"] {
            let setting = Setting::RootQdisc { device: "lo".into(), kind: kind.into() };
            let change = tuner.apply(&setting, Place::Client).expect("settable");
            assert_ne!(read(&setting), before);
            assert_eq!(tuner.undo(&change.id).expect("undoable"), Undone::SetBack);
            assert_eq!(read(&setting), before);
        }
    }
}

#[test]
fn classes_are_not_touched() {
    isolated(|state| {
        let classes = Qdisc::HierarchicalTokenBucket { rate_bps: 4_000_000, burst_bytes: 3_000, limit_packets: 100 };
        Links::open().and_then(|mut links| links.replace_qdisc("lo", &classes)).expect("classes");
        let setting = Setting::RootQdisc { device: "lo".into(), kind: "default".into() };
        let error = Tuner::new(state, "test").apply(&setting, Place::Client).expect_err("not restorable").to_string();
        assert!(
            error.starts_with("the root qdisc of lo stays as it is, since it could not be restored exactly"),
            "{error}"
        );
    });
}

#[test]
fn a_neighbour_that_was_set_before_comes_back() {
    isolated(|state| {
        bench();
        let tuner = Tuner::new(state, "test");
        knob(&neighbour(7)).set().expect("settable");
        let before = "permanent 02:00:00:00:00:07";
        assert_eq!(read(&neighbour(1)), before);
        let change = tuner.apply(&neighbour(1), Place::Client).expect("settable");
        assert_eq!(read(&neighbour(1)), "permanent 02:00:00:00:00:01");
        assert_eq!(tuner.undo(&change.id).expect("undoable"), Undone::SetBack);
        assert_eq!(read(&neighbour(1)), before);
    });
}

#[test]
fn what_belongs_together_is_set_whole_or_not_at_all() {
    isolated(|state| {
        bench();
        let tuner = Tuner::new(state, "test");
        let sack = sysctl("net.ipv4.tcp_sack", "0");
        let before = read(&sack);
        // It reads well, so that only the kernel finds out: it is of the whole machine.
        let unknown = sysctl("net.core.rmem_max", "1048577");
        let error = tuner.apply_together(&[sack.clone(), neighbour(1), unknown], Place::Client).expect_err("refused");
        assert_eq!(error.undone.len(), 2);
        let says = error.to_string();
        assert!(says.starts_with("cannot ") && says.contains(" kernel parameter net.core.rmem_max: "), "{says}");
        let end = "; nothing is changed: earlier settings are rolled back (ip neighbour replace 198.18.0.1 lladdr \
            02:00:00:00:00:01 dev port0 nud permanent, sysctl -w net.ipv4.tcp_sack=0)";
        assert!(says.ends_with(end), "{says}");
        assert_eq!((read(&sack), read(&neighbour(1))), (before.clone(), "learned".to_owned()));
        assert!(tuner.list().expect("list").is_empty());

        let bad = sysctl("net.ipv4.tcp_sack", "7");
        let error = tuner.apply_together(&[neighbour(1), bad], Place::Client).expect_err("refused").to_string();
        assert!(error.ends_with("; nothing was changed"), "{error}");

        let made = tuner.apply_together(&[sack.clone(), neighbour(1)], Place::Client).expect("set");
        assert_eq!(made.len(), 2);
        assert!(tuner.list().expect("list").iter().all(|entry| entry.kept));
        assert!(Tuner::new(state, "another").undo_of_role().expect("list").is_empty());
        assert_eq!(tuner.undo_of_role().expect("list").len(), 2);
        assert_eq!((read(&sack), read(&neighbour(1))), (before, "learned".to_owned()));
    });
}

#[test]
fn a_client_sets_what_a_path_needs_and_nothing_else() {
    let sent = [
        sysctl("net.ipv4.tcp_rmem", "4096 131072 262144"),
        Setting::Mtu { device: "eth0".into(), mtu: 1500 },
        Setting::Offload { device: "eth0".into(), feature: "lro".into(), on: false },
    ];
    assert!(sent.iter().all(|setting| check_for_client(setting).is_ok()));
    let own = [
        sysctl("net.ipv4.conf.eth0.forwarding", "1"),
        sysctl("net.ipv4.conf.all.rp_filter", "0"),
        neighbour(1),
        bridge("stp_state", 0),
        Setting::FlowControl { device: "eth0".into(), on: false },
        Setting::Rings { device: "eth0".into(), rx: 64, tx: 64 },
    ];
    for setting in &own {
        let error = check_for_client(setting).expect_err("not for clients").to_string();
        assert!(error.starts_with(&format!("`{setting}` is not set for a client")), "{error}");
    }
}

#[test]
fn what_others_set_meanwhile_stays() {
    isolated(|state| {
        let tuner = Tuner::new(state, "test");
        let setting = sysctl("net.ipv4.tcp_rmem", "4096 131072 262144");
        let change = tuner.apply(&setting, Place::Server).expect("settable");
        let other = sysctl("net.ipv4.tcp_rmem", "4096 131072 524288");
        knob(&other).set().expect("settable");
        let now = "4096 131072 524288".to_owned();
        assert_eq!(tuner.undo(&change.id).expect("no error"), Undone::ChangedByOthers { now: now.clone() });
        assert_eq!(read(&setting), now);
    });
}

#[test]
fn changes_of_one_thing_are_undone_in_any_order() {
    isolated(|state| {
        let tuner = Tuner::new(state, "test");
        let first = tuner.apply(&sysctl("net.ipv4.tcp_rmem", "4096 131072 262144"), Place::Server).expect("set");
        let second = tuner.apply(&sysctl("net.ipv4.tcp_rmem", "4096 131072 524288"), Place::Server).expect("set");
        let third = tuner.apply(&sysctl("net.ipv4.tcp_rmem", "4096 131072 786432"), Place::Server).expect("set");
        assert_eq!(tuner.undo(&first.id).expect("known"), Undone::HandedOver { to: second.id.clone() });
        assert_eq!(read(&first.set), "4096 131072 786432");
        assert_eq!(tuner.undo(&third.id).expect("known"), Undone::SetBack);
        assert_eq!(read(&first.set), "4096 131072 524288");
        assert_eq!(tuner.undo(&second.id).expect("known"), Undone::SetBack);
        assert_eq!(read(&first.set), first.before);
    });
}

#[test]
fn another_namespace_is_never_touched() {
    isolated(|state| {
        let setting = sysctl("net.ipv4.tcp_sack", "0");
        let change = Tuner::new(state, "test").apply(&setting, Place::Server).expect("set");
        let elsewhere = || {
            Namespaces::create("other", || {
                knob(&setting).set().map_err(|error| error.to_string()).expect("set there too");
                let outcome = Tuner::new(state, "test").undo(&change.id);
                Ok::<_, narrows_sys::Error>((outcome, read(&setting)))
            })
        };
        let (_, (outcome, value)) = elsewhere().expect("namespaces");
        assert!(matches!(outcome, Err(TuneError::OtherNamespace { .. })), "{outcome:?}");
        assert_eq!(value, "0", "the other namespace keeps its own");
        assert_eq!(Tuner::new(state, "test").undo(&change.id).expect("here"), Undone::SetBack);
    });
}

#[test]
fn what_is_gone_is_dropped_with_a_word() {
    let state = tempfile::tempdir().expect("a directory");
    let tuner = Tuner::new(state.path(), "test");
    let setting = sysctl("net.ipv4.tcp_sack", "0");
    let (_, change) =
        Namespaces::create("gone", || Ok::<_, narrows_sys::Error>(tuner.apply(&setting, Place::Server).expect("set")))
            .expect("namespaces");
    // A namespace is taken down some time after its last descriptor is closed; /proc does not show it any more at once.
    let undone = tuner.undo(&change.id).expect("dropped");
    assert!(matches!(&undone, Undone::Dropped(why) if why.contains("is gone")), "{undone}");

    let mut entry = Entry::new(change, NetworkId::current().expect("proc"), Maker::this_process("test"));
    entry.boot = Some("an earlier one".into());
    tuner.host.write(&entry).expect("written");
    let undone = tuner.undo(&entry.change.id).expect("dropped");
    assert!(matches!(&undone, Undone::Dropped(why) if why.contains("booted")), "{undone}");
    assert!(tuner.list().expect("list").is_empty());
}

#[test]
fn only_what_dead_processes_left_is_recovered() {
    isolated(|state| {
        let tuner = Tuner::new(state, "serve");
        let ours = tuner.apply(&sysctl("net.ipv4.tcp_sack", "0"), Place::Server).expect("set");
        let left = tuner.apply(&sysctl("net.ipv4.tcp_timestamps", "0"), Place::Server).expect("set");
        let kept = tuner.apply(&sysctl("net.ipv4.tcp_no_metrics_save", "1"), Place::Server).expect("set");
        for id in [&left.id, &kept.id] {
            let mut entry = tuner.host.read(id).expect("entry");
            entry.by.started_ticks = Some(1);
            tuner.host.write(&entry).expect("written");
        }
        tuner.keep(&kept.id).expect("kept");
        let undone = tuner.recover().expect("list");
        assert_eq!(undone.iter().map(|u| u.entry.change.id.as_str()).collect::<Vec<_>>(), [&left.id]);
        assert_eq!((read(&ours.set), read(&left.set), read(&kept.set)), ("0".into(), left.before, "1".into()));
    });
}

#[test]
fn what_cannot_be_set_leaves_nothing_behind() {
    isolated(|state| {
        let tuner = Tuner::new(state, "test");
        for setting in [
            sysctl("net.ipv4.tcp_congestion_control", "no-such-one"),
            sysctl("kernel.panic", "1"),
            // Of the whole machine: below the first namespace it is not there, or cannot be written at all.
            sysctl("net.core.rmem_max", "1048577"),
            Setting::Mtu { device: "no-such-dev".into(), mtu: 1500 },
            Setting::RootQdisc { device: "lo".into(), kind: "htb".into() },
            Setting::Offload { device: "lo".into(), feature: "scatter-gather".into(), on: false },
            Setting::FlowControl { device: "lo".into(), on: false },
            Setting::Rings { device: "lo".into(), rx: 64, tx: 64 },
            Setting::Neighbour { device: "lo".into(), address: [224, 0, 0, 1].into(), mac: Mac([2, 0, 0, 0, 0, 1]) },
            Setting::Neighbour { device: "lo".into(), address: [10, 0, 0, 1].into(), mac: Mac([1, 0, 0, 0, 0, 1]) },
            bridge("stp_state", 0),
            bridge("forward_delay", 0),
        ] {
            let error = tuner.apply(&setting, Place::Server).expect_err("refused").to_string();
            assert!(!error.is_empty() && tuner.list().expect("list").is_empty(), "{setting}: {error}");
        }
    });
}

#[test]
fn a_damaged_entry_is_named_and_stops_no_other() {
    isolated(|state| {
        let tuner = Tuner::new(state, "test");
        let change = tuner.apply(&sysctl("net.ipv4.tcp_sack", "0"), Place::Server).expect("set");
        let damaged = state.join("changes/1-1-0.json");
        narrows_sys::files::write_whole(&damaged, b"{\"change\": ", 0o600).expect("written");
        assert!(
            matches!(tuner.undo_all().expect("list").as_slice(), [one] if matches!(one.outcome, Ok(Undone::SetBack)))
        );
        assert_eq!(read(&change.set), change.before);
        let named: Vec<_> = tuner.unreadable().expect("list").iter().map(ToString::to_string).collect();
        assert!(matches!(named.as_slice(), [why] if why.contains("1-1-0.json")), "{named:?}");
    });
}

#[test]
fn an_id_from_outside_stays_in_the_journal() {
    let state = tempfile::tempdir().expect("a directory");
    for id in ["", "../token", "a/b", "none"] {
        assert!(matches!(Tuner::new(state.path(), "test").undo(id), Err(TuneError::NoSuchChange { .. })));
    }
}

#[test]
fn an_entry_that_was_tampered_with_is_not_undone() {
    isolated(|state| {
        let tuner = Tuner::new(state, "test");
        let setting = sysctl("net.ipv4.tcp_sack", "0");
        let change = tuner.apply(&setting, Place::Client).expect("set");
        let file = state.join("changes").join(format!("{}.json", change.id));
        let entry = narrows_sys::files::read_text(&file).expect("an entry");
        let undo_of = |from: &str, to: &str| {
            assert!(entry.contains(from), "{entry}");
            narrows_sys::files::write_whole(&file, entry.replace(from, to).as_bytes(), 0o600).expect("written");
            tuner.undo(&change.id).expect_err("refused")
        };
        let other = undo_of("net.ipv4.tcp_sack", "net.ipv4.ip_forward");
        assert!(matches!(other, TuneError::NotInTable { .. }), "{other}");
        let lines = undo_of(r#""before": "1""#, r#""before": "1\n0""#);
        assert!(lines.to_string().contains("the old value in the journal"), "{lines}");
        assert_eq!(read(&setting), "0", "nothing was written");
        narrows_sys::files::write_whole(&file, entry.as_bytes(), 0o600).expect("written");
        assert_eq!(tuner.undo(&change.id).expect("undone"), Undone::SetBack);
    });
}

#[test]
fn clients_do_not_fill_the_journal() {
    isolated(|state| {
        let tuner = Tuner::new(state, "test");
        let change = tuner.apply_for_client(&sysctl("net.ipv4.tcp_sack", "0")).expect("there is room");
        for index in 1..MAX_OF_CLIENTS {
            let entry = state.join(format!("changes/{index}.json"));
            narrows_sys::files::write_whole(&entry, b"{}", 0o600).expect("written");
        }
        let full = tuner.apply_for_client(&sysctl("net.ipv4.tcp_window_scaling", "0")).expect_err("full").to_string();
        assert!(full.contains("has too many changes; undo some on this host"), "{full}");
        assert_eq!(tuner.undo(&change.id).expect("as before"), Undone::SetBack);
        tuner.apply_for_client(&sysctl("net.ipv4.tcp_sack", "0")).expect("there is room again");
    });
}
