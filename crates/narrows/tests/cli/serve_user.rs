//! Who runs what of a server: the network process without privileges, its helpers, and what is left when one of them is killed.

use crate::world::{Running, SIGINT, SIGKILL, SIGTERM, World, on_loopback, soon, word};
use narrows_model::Setting;
use narrows_runner::live::LiveInstruments;
use narrows_runner::remote::{Options, Remote, Session, TargetSpec};
use narrows_runner::trust::read_token;
use narrows_sys::{clock, files, process, sysctl};
use std::path::Path;
use std::time::Duration;

const KEY: &str = "net.ipv4.tcp_rmem";
const VALUE: &str = "4096 131072 262144";

/// A server, its port, and its second line: what runs as whom.
fn serve(world: &World, flags: &[&str]) -> (Running, u16, String) {
    let (mut server, port, _) = world.serve(flags);
    let who = server.line_of_errors();
    (server, port.parse().expect("a port"), who)
}

/// The server at this port itself, not at a free one.
fn serve_at(world: &World, port: &str) -> (Running, String) {
    let mut server = world.start(&["serve", "--port", port]);
    server.await_error(&format!("narrows serves on port {port} "));
    let who = server.line_of_errors();
    (server, who)
}

/// The process of a helper, by the server's second line.
fn helper(who: &str, role: &str) -> u32 {
    let rest = who.split_once(&format!("{role} (process ")).unwrap_or_else(|| panic!("no {role}: {who}")).1;
    rest.split_once(')').expect("a bracket").0.parse().expect("a number")
}

fn status(pid: u32, field: &str) -> String {
    let text = files::read_text(Path::new(&format!("/proc/{pid}/status"))).expect("a process");
    let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')).expect("a field");
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether this is root of the machine; in a user namespace there may be no other user.
fn is_root() -> bool {
    let root = process::is_root_of_machine();
    if !root {
        println!("NOT CHECKED: the user of the network process, since this is a user namespace");
    }
    root
}

fn session(world: &World, port: u16) -> (Remote, Session) {
    let token = Some(read_token(Path::new(&world.token_file())).expect("a token"));
    let spec = TargetSpec { asked: "127.0.0.1".to_owned(), family: None, port, token };
    let remote = Remote::connect(&spec, &Options::new(LiveInstruments::All)).expect("the server");
    let session = remote.open_session(&mut |_, _| true).expect("a session");
    (remote, session)
}

fn rmem() -> String {
    sysctl::normal(&sysctl::read(KEY).expect("readable"))
}

#[test]
fn the_network_process_has_no_privileges() {
    on_loopback(|world| {
        let (server, port, who) = serve(world, &["--allow-tune"]);
        assert!(who.starts_with("the network process runs as "), "{who}");
        assert!(who.contains("without capabilities") && who.contains("system calls limited (seccomp)"), "{who}");
        let pid = server.pid();
        for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            assert_eq!(status(pid, set), "0000000000000000", "{set}");
        }
        assert_eq!((status(pid, "NoNewPrivs").as_str(), status(pid, "Seccomp").as_str()), ("1", "2"));
        if is_root() {
            let ids = status(pid, "Uid");
            assert!(!ids.split(' ').any(|id| id == "0") && !status(pid, "Gid").split(' ').any(|id| id == "0"), "{ids}");
            assert_eq!(status(pid, "Groups"), "");
            assert_eq!(status(pid, "CapBnd"), "0000000000000000");
        }
        let (remote, session) = session(world, port);
        let before = rmem();
        let change = session.apply(&Setting::Sysctl { key: KEY.into(), value: VALUE.into() }).expect("set");
        assert_eq!(rmem(), VALUE);
        session.undo(&change.id).expect("undone");
        assert_eq!(rmem(), before);
        let panic = Setting::Sysctl { key: "kernel.panic".into(), value: "1".into() };
        let refused = session.apply(&panic).expect_err("not in the table").to_string();
        assert!(refused.starts_with("the server says: narrows does not set the kernel parameter"), "{refused}");
        let inventory = session.inventory().expect("an inventory");
        assert!(inventory.facts.len() > 100, "{} facts", inventory.facts.len());
        // They have carried out orders, so they have dropped the rest: CAP_NET_ADMIN and CAP_DAC_OVERRIDE are left.
        assert_eq!(status(helper(&who, "tune"), "CapEff"), "0000000000001002");
        assert_eq!(status(helper(&who, "watch"), "NoNewPrivs"), "1");
        drop((session, remote));
    });
}

#[test]
fn without_the_flag_there_is_no_helper_that_tunes_and_root_may_stay_one_process() {
    on_loopback(|world| {
        let (server, _, who) = serve(world, &[]);
        assert!(who.contains("watch (process ") && !who.contains("tune (process "), "{who}");
        drop(server);
        let (server, _, who) = serve(world, &["--user", "root"]);
        assert_eq!(who, "everything runs as user 0 in one process\n");
        assert_ne!(status(server.pid(), "CapEff"), "0000000000000000");
        drop(server);
        assert_eq!(
            world.sentence(1, &["serve", "--port", "0", "--user", "no-such-user"]),
            "cannot become user no-such-user: /etc/passwd, or this user namespace, does not have it; make it, or name \
             another"
        );
        assert_eq!(
            world.sentence(1, &["helper", "tune"]),
            "cannot take the channel to another process of narrows: Socket operation on non-socket (os error 88)"
        );
    });
}

#[test]
fn whichever_process_is_killed_the_changes_are_undone() {
    on_loopback(|world| {
        let before = rmem();
        for killed in ["network", "tune"] {
            let (server, port, who) = serve(world, &["--allow-tune"]);
            let (remote, session) = session(world, port);
            session.apply(&Setting::Sysctl { key: KEY.into(), value: VALUE.into() }).expect("set");
            assert_eq!(rmem(), VALUE);
            let tune = helper(&who, "tune");
            if killed == "network" {
                server.signal(SIGKILL);
                assert!(soon(Duration::from_millis(25), || rmem() == before), "the helper undoes it");
                assert!(process::wait_gone(tune, Duration::from_secs(10)).expect("a wait"), "the helper ends");
            } else {
                process::signal(tune, SIGKILL).expect("it lives");
                let said = server.end().with_code(1);
                assert!(said.err.contains("the helper `tune` ended; the server stops"), "{said:?}");
                assert_eq!(rmem(), VALUE, "nobody is there to undo it");
                let (mut next, _, _) = serve(world, &[]);
                next.await_error("rolled back a change of a killed server: sysctl");
                assert_eq!(rmem(), before);
            }
            drop((session, remote));
        }
    });
}

#[test]
fn killed_at_any_moment_the_host_is_as_before_at_the_next_start() {
    let rounds = std::env::var("NARROWS_KILLS").map_or(6, |rounds| rounds.parse().expect("a number"));
    on_loopback(|world| {
        let before = rmem();
        for round in 0..rounds {
            let (server, port, who) = serve(world, &["--allow-tune"]);
            let tune = helper(&who, "tune");
            let (remote, session) = session(world, port);
            let setting = Setting::Sysctl { key: KEY.into(), value: VALUE.into() };
            std::thread::scope(|scope| {
                scope.spawn(|| while session.apply(&setting).and_then(|change| session.undo(&change.id)).is_ok() {});
                clock::sleep(Duration::from_micros(round * 7919 % 60_000));
                if round % 3 != 0 {
                    process::signal(tune, SIGKILL).expect("it lives");
                }
                if round % 3 != 1 {
                    server.signal(SIGKILL);
                }
            });
            // What lives undoes what it can, and ends.
            drop((session, remote, server.end()));
            assert!(process::wait_gone(tune, Duration::from_secs(20)).expect("a wait"), "the helper ends");
            drop(serve(world, &[]));
            assert_eq!(rmem(), before, "round {round}");
        }
    });
}

#[test]
fn all_loads_pass_a_separated_server_at_any_port() {
    on_loopback(|world| {
        // The streams of UDP share the server's port; below 1024 a helper gives it to them.
        for port in ["843", "5220"] {
            let (server, who) = serve_at(world, port);
            assert!(who.starts_with("the network process runs as "), "{who}");
            let token = world.token_file();
            for load in [
                &["tcp", "--direction", "both", "--pacing-rate", "50M"][..],
                &["udp", "--direction", "both", "-b", "20M"],
                &["rr"],
                &["rr", "--udp"],
                &["crr"],
            ] {
                let to = ["127.0.0.1", "-p", port, "--token-file", &token, "-t", "300ms", "--no-save"];
                let said = world.run(&[&["measure"], load, &to].concat());
                assert_eq!(said.code, Some(0), "{load:?} at port {port}: {said:?}");
            }
            drop(server);
        }
    });
}

#[test]
fn a_signal_ends_all_processes_after_the_changes_are_undone() {
    on_loopback(|world| {
        let before = rmem();
        for signal in [SIGINT, SIGTERM] {
            let (server, port, who) = serve(world, &["--allow-tune"]);
            let (remote, session) = session(world, port);
            session.apply(&Setting::Sysctl { key: KEY.into(), value: VALUE.into() }).expect("set");
            session.inventory().expect("an inventory");
            let helpers = ["tune", "watch"].map(|role| helper(&who, role));
            // A terminal and systemd signal all of them.
            for helper in helpers {
                process::signal(helper, signal).expect("it lives");
            }
            server.signal(signal);
            let said = server.end().with_code(0);
            assert_eq!((rmem(), &*said.err), (before.clone(), ""));
            for helper in helpers {
                assert!(process::wait_gone(helper, Duration::ZERO).expect("a wait"), "signal {signal} left a helper");
            }
            drop((session, remote));
        }
    });
}

#[test]
fn a_separated_server_sees_named_tokens_come_and_go() {
    on_loopback(|world| {
        let log = word(&world.path("audit.log"));
        let (server, port, _) = serve(world, &["--audit-log", &log]);
        let said = world.run(&["serve", "token", "add", "ci"]);
        let token = world.file("ci.token", &said.out);
        let port = port.to_string();
        let measure = || {
            let to = ["-p", &port, "--token-file", &token, "-t", "200ms", "--pacing-rate", "10M", "--no-save"];
            world.run(&[&["measure", "tcp", "127.0.0.1"], &to[..]].concat())
        };
        measure().with_code(0);
        assert_eq!(world.run(&["serve", "token", "revoke", "ci"]).code, Some(0));
        measure().with_code(1);
        server.signal(SIGTERM);
        assert_eq!(server.end().code, Some(0));
        let text = files::read_text(Path::new(&log)).expect("a log");
        for event in ["start", "session", "measured", "session-end", "refused", "stop"] {
            assert!(text.contains(&format!("\"event\":\"{event}\"")), "no {event}: {text}");
        }
    });
}
