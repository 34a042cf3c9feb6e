//! The report as a whole.

use super::*;
use crate::style::Style;
use narrows_model::run::optimise::{OptimiseTrial, OptimisedSetting, SCHEMA};
use narrows_model::{Direction, Place, Setting};

fn report() -> OptimiseReport {
    let gain = || {
        Some(OptimiseGain {
            before_bps: vec![10e6, 11e6, 10e6, 10.5e6],
            after_bps: vec![90e6, 91e6, 92e6, 91e6],
            ratio: 8.77,
            interval: [8.4, 9.2],
            shift_bps: 80.5e6,
            shift_interval_bps: Some([79e6, 82e6]),
        })
    };
    let sysctl = |key: &str, value: &str| Setting::Sysctl { key: key.to_owned(), value: value.to_owned() };
    let member = |at, set, origin: &str| OptimisedSetting { at, set, before: None, origin: origin.to_owned() };
    let gro = Setting::Offload { device: "eth0".to_owned(), feature: "gro".to_owned(), on: true };
    OptimiseReport {
        schema: SCHEMA.to_owned(),
        server: "server".to_owned(),
        direction: Direction::Up,
        tag: "optimise:20260101-000000-01234567".to_owned(),
        runs: 31,
        elapsed_ms: 123_000,
        gain: gain(),
        settings: vec![
            OptimisedSetting {
                before: Some("4096 131072 65536".to_owned()),
                ..member(Place::Server, sysctl("net.ipv4.tcp_rmem", "4096 131072 33554432"), "tcp-receive-window")
            },
            member(Place::Client, sysctl("net.ipv4.tcp_congestion_control", "bbr"), "congestion-control"),
            member(Place::Server, gro, "tunable"),
        ],
        tried: vec![OptimiseTrial {
            what: vec!["server: sysctl -w net.ipv4.tcp_rmem='4096 131072 33554432'".to_owned()],
            origin: "tcp-receive-window".to_owned(),
            gain: gain(),
            outcome: "kept".to_owned(),
        }],
        advice: vec!["path-capacity: a faster line".to_owned()],
        verdict: Some("The path is at capacity.".to_owned()),
        kept: false,
        stopped: "nothing helps any more".to_owned(),
        ending: Ending::Complete,
    }
}

#[test]
fn the_whole_report() {
    insta::assert_snapshot!("text", doc(&report()).text(Style::default()));
    insta::assert_snapshot!("markdown", doc(&report()).markdown());
}

#[test]
fn what_was_kept_in_a_group_and_dropped_later_is_not_in_the_final_set() {
    let what = ["server: sysctl -w net.ipv4.tcp_rmem='4096 131072 33554432'", "client: ethtool -K c0 gro on"];
    let trial = OptimiseTrial { what: what.map(str::to_owned).to_vec(), ..report().tried[0].clone() };
    let dropped = OptimiseTrial { what: vec![what[1].to_owned()], outcome: "dropped".to_owned(), ..trial.clone() };
    let text =
        doc(&OptimiseReport { tried: vec![trial, dropped], ..report() }).text(Style { width: 160, ..Style::default() });
    let lines: Vec<&str> = text.lines().filter(|line| what.iter().any(|it| line.contains(it))).map(str::trim).collect();
    let not_in_set = format!("{} (not in the final set)", what[1]);
    assert_eq!(lines[lines.len() - 3..], [what[0], &not_in_set, what[1]], "one a line: {text}");
}

#[test]
fn what_was_only_tried_together_is_said_to_be() {
    let text = |report: &OptimiseReport| doc(report).text(Style { width: 160, ..Style::default() });
    let whole = text(&report());
    assert!(whole.contains("with 3 settings (2 of them only tried together: the time ended)"), "{whole}");
    let alone =
        |line: &str| whole.lines().find(|it| it.contains(line)).is_some_and(|it| !it.contains("not known alone"));
    assert!(alone("tcp_rmem=") && !alone("gro on    #") && !alone("tcp_congestion_control="), "{whole}");
    let mut one = report();
    one.settings.truncate(1);
    assert!(!text(&OptimiseReport { tried: vec![], ..one }).contains("together"), "the set is the setting");
}

#[test]
fn without_a_setting() {
    let none =
        OptimiseReport { settings: vec![], gain: None, tried: vec![], advice: vec![], verdict: None, ..report() };
    insta::assert_snapshot!("nothing", doc(&none).text(Style::default()));
    assert!(files(&none).is_empty());
}

#[test]
fn a_file_for_each_use_and_host() {
    let names: Vec<String> = files(&report()).into_iter().map(|it| it.0).collect();
    let all = [
        "client-90-narrows.conf", "client-ansible.yml", "server-90-narrows.conf", "server-ethtool.sh",
        "server-ansible.yml",
    ];
    assert_eq!(names, all);
}

#[test]
fn a_shell_interprets_nothing_of_a_device_name() {
    let set = Setting::Offload { device: "x;reboot\n$(id)".to_owned(), feature: "gro".to_owned(), on: true };
    let settings = vec![OptimisedSetting { at: Place::Server, set, before: None, origin: "tunable".to_owned() }];
    let files = files(&OptimiseReport { settings, ..report() });
    let (name, script) = &files[0];
    assert_eq!(name, "server-ethtool.sh");
    assert!(script.lines().skip(3).all(|line| line.starts_with('#')), "{script}");
}
