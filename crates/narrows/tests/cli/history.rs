//! The store of runs: filled, listed, tagged, exported, damaged.

use crate::world::{World, alone, on_loopback, word};

/// A recorded run with another id, so many hours after the first one.
pub(crate) fn recorded(name: &str, id: &str, hours: u64) -> String {
    let file = format!("{}/../../fixtures/runs/{name}.run.json", env!("CARGO_MANIFEST_DIR"));
    let mut run: serde_json::Value = serde_json::from_slice(&std::fs::read(file).expect("a fixture")).expect("JSON");
    run["id"] = id.into();
    run["started_unix_us"] = (1_735_689_600_000_000 + 3_600_000_000 * hours).into();
    run.to_string()
}

/// A world with three run files of an earlier version.
fn with_runs() -> World {
    let world = alone();
    let runs = world.state().join("runs");
    std::fs::create_dir_all(&runs).expect("a directory");
    for (n, name) in (0..).zip(["long-path-before", "long-path-after", "measure-tcp"]) {
        let id = format!("20250101-00000{n}-0000000{n}");
        std::fs::write(runs.join(format!("{id}.run.json")), recorded(name, &id, n)).expect("written");
    }
    world
}

fn ids(world: &World, flags: &[&str]) -> String {
    let json = world.run(&[&["history", "--format", "json"], flags].concat()).with_code(0).json();
    assert_eq!(json["schema"], "narrows.history/1");
    let runs = json["runs"].as_array().expect("runs").iter();
    runs.map(|run| run["id"].as_str().expect("an id").chars().last().expect("a digit")).collect()
}

#[test]
fn runs_of_earlier_versions_are_imported_filtered_tagged_and_deleted() {
    let world = with_runs();
    let (a, b) = ("20250101-000000-00000000", "20250101-000001-00000001");
    assert_eq!(ids(&world, &[]), "210");
    assert_eq!(ids(&world, &["--command", "diagnose"]), "10");
    assert_eq!(ids(&world, &["--command", "measure"]), "2");
    assert_eq!(ids(&world, &["--since", "7d"]), "");
    assert_eq!(ids(&world, &["--limit", "1", "--offset", "1"]), "1");
    assert_eq!(ids(&world, &["--host", "nosuch"]), "");
    assert_eq!(world.run(&["history", "tag", a, "before", "x-1"]).code, Some(0));
    assert_eq!(ids(&world, &["--tag", "before"]), "0");
    assert_eq!(world.run(&["history", "untag", a, "before"]).code, Some(0));
    assert_eq!(ids(&world, &["--tag", "before"]), "");
    let shown = world.run(&["history", "show", a]);
    for (word, id) in [("last~1", b), ("last~2", a)] {
        let named = world.run(&["history", "show", word]);
        assert!(named.out.contains(id) || named.out == world.run(&["history", "show", id]).out, "{word}: {named:?}");
    }
    let apart = (4..=a.len()).find(|n| !b.starts_with(&a[..*n])).expect("two ids");
    assert_eq!(world.run(&["history", "show", &a[..apart]]).out, shown.out, "the beginning of one id alone");
    assert_eq!(world.run(&["report", &a[..apart]]).code, Some(0));
    if apart > 4 {
        world.sentence(1, &["history", "show", &a[..apart - 1]]);
    }
    for words in ["tags      x-1", "goodput up: ", "retransmits up: "] {
        assert!(shown.out.contains(words), "{words}: {shown:?}");
    }
    assert_eq!(world.run(&["report", a]).code, Some(0));
    let refused = world.sentence(2, &["report", a, "--format", "csv"]);
    assert_eq!(refused, "cannot write a diagnosis as csv: unsupported format; use text, json, markdown or html");
    assert_eq!(world.run(&["report", a, "--diff", b]).code, Some(0));

    assert_eq!(
        world.sentence(1, &["history", "show", "2025"]),
        "`2025` is the beginning of the ids of several runs; give more of it (`narrows history` lists them)"
    );
    assert_eq!(
        world.sentence(2, &["history", "delete", a]),
        "cannot delete 1 run without confirmation: standard input is no terminal; give --yes"
    );
    let gone = "deleted 1 run; for a week `narrows store undo` brings back what was deleted last\n";
    let deleted = world.run(&["history", "delete", a, "--yes"]);
    assert!(deleted.out == gone && deleted.err.contains(a), "what goes is shown: {deleted:?}");
    assert_eq!(ids(&world, &[]), "21", "its file is gone, too, and it is not imported again");
    // Two conditions: a run that is new is kept, whatever its place, and so is one of the newest, however old.
    assert_eq!(
        world.run(&["store", "prune", "--older-than", "36500d", "--keep", "0", "--yes"]).out,
        "no runs to delete\n"
    );
    assert_eq!(
        world.run(&["store", "prune", "--older-than", "1s", "--keep", "99", "--yes"]).out,
        "no runs to delete\n"
    );
    assert_eq!(world.run(&["store", "prune", "--keep", "1", "--yes"]).out, gone);
    assert_eq!(world.run(&["store", "prune", "--older-than", "1d", "--yes"]).out, gone);
    assert_eq!(world.run(&["store", "prune", "--keep", "0"]).out, "no runs to delete\n");
    for _ in 0..3 {
        assert_eq!(world.run(&["store", "undo"]).out, "brought back 1 run\n");
    }
    assert_eq!(
        world.sentence(1, &["store", "undo"]),
        "no deleted runs can be brought back: none were deleted in the last week"
    );
    assert_eq!(world.run(&["history", "tag", a, "old"]).code, Some(0));
    assert_eq!(world.run(&["history", "delete", "--tag", "old", "--yes"]).out, gone);
    assert_eq!(
        world.sentence(1, &["history", "delete", "--tag", "old", "--yes"]),
        "no run has the tag `old`; `narrows history` lists the tags"
    );
    assert_eq!(world.run(&["store", "prune", "--keep", "0", "--yes", "--for-good"]).code, Some(0));
    assert_eq!(world.run(&["store", "undo"]).code, Some(1));
    let missing = world.sentence(1, &["history", "show", "nosuch"]);
    assert!(
        missing.starts_with("cannot find run `nosuch` in ") && missing.ends_with("`narrows history` lists the runs")
    );
    let refused = world.run(&["history", "tag", b, "a b"]);
    assert!(
        refused.code == Some(2) && refused.err.contains("use letters, digits and -_.:/+=@, 100 bytes"),
        "{refused:?}"
    );
}

#[test]
fn an_export_is_an_import() {
    let world = with_runs();
    assert_eq!(world.run(&["store", "export", "all.jsonl"]).out, "wrote 3 runs to all.jsonl\n");
    assert_eq!(world.run(&["store", "export", "some", "--command", "diagnose"]).out, "wrote 2 runs to some\n");
    let other = alone();
    let (lines, directory) = (word(&world.path("all.jsonl")), word(&world.path("some")));
    assert_eq!(other.run(&["store", "import", &directory]).out, "imported 2 runs; 0 known already\n");
    assert_eq!(other.run(&["store", "import", &lines]).out, "imported 1 run; 2 known already\n");
    let id = "20250101-000002-00000002";
    assert_eq!(other.run(&["report", id]).out, world.run(&["report", id]).out);
    let bad = other.file("bad.run.json", "nonsense");
    let said = other.run(&["store", "import", &bad]);
    assert_eq!((said.code, said.out.as_str()), (Some(1), "imported 0 runs; 0 known already\n"));
    assert!(said.err.starts_with(&format!("{bad} is not a narrows run file: ")), "{said:?}");
}

#[test]
fn results_of_other_programs_are_imported_once() {
    let world = alone();
    let report = |seconds: u64, bps: f64| {
        serde_json::json!({
            "start": {"version": "iperf 3.12", "timestamp": {"timesecs": seconds}, "connecting_to": {"host": "s", "port": 5201},
                "system_info": "Linux c 6.1.0 #1 x86_64", "test_start": {"protocol": "TCP", "reverse": 0}},
            "intervals": [],
            "end": {"sum_sent": {"retransmits": 2}, "sum_received": {"bits_per_second": bps},
                "streams": [{"sender": {"min_rtt": 0, "mean_rtt": 150}}, {"sender": {"min_rtt": 90, "mean_rtt": 250}}],
                "cpu_utilization_percent": {"host_total": 50.0, "remote_total": 25.0}},
        })
    };
    let two = world.file("a.txt", &format!("{}\n{:#}", report(1_600_000_000, 1e9), report(1_600_000_060, 2e9)));
    let import = ["store", "import", "--tag", "old", &two];
    assert_eq!(world.run(&import).out, "imported 2 runs; 0 known already\n");
    assert_eq!(world.run(&import).out, "imported 0 runs; 2 known already\n");
    let json = world.run(&["history", "--format", "json", "--tag", "old", "--host", "s"]).json();
    let run = &json["runs"][0];
    assert_eq!(run["started_unix_us"], 1_600_000_060_000_000_u64);
    let name = [&run["client"], &run["command"], &run["made_by"], &run["figures"][0]["name"]];
    assert_eq!(name, ["c", "iperf3", "iperf 3.12", "goodput up"]);
    let figures = run["figures"].as_array().expect("figures").iter();
    let figures: Vec<_> = figures.map(|it| (it["name"].as_str().expect("a name"), it["value"].as_f64())).collect();
    assert_eq!(
        figures,
        [
            ("goodput up", Some(2e9)),
            ("retransmits up", Some(2.0)),
            ("min RTT up", Some(90.0)),
            ("mean RTT up", Some(200.0)),
            ("client busy cores", Some(0.5)),
            ("server busy cores", Some(0.25))
        ]
    );
    let said = world.run(&["compare", "last~1", "last"]);
    assert!(said.out.contains("the parameters of the hosts were not recorded in run iperf3-"), "{said:?}");

    let rates = (0..24_u32).map(|nth| if nth < 12 { 1e9 } else { 5e8 } + f64::from(nth % 4) * 1e6);
    let step: String =
        (0..).zip(rates).map(|(nth, bps)| format!("{}\n", report(1_600_100_000 + 3_600 * nth, bps))).collect();
    let step = world.file("step.txt", &step);
    assert_eq!(world.run(&["store", "import", "--tag", "step", &step]).code, Some(0));
    let said = world.run(&["history", "trend", "--tag", "step"]).with_code(0);
    let words = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("inventory: the parameters of the hosts were not recorded in run iperf3-"), "{words}");
    assert_eq!(world.run(&["history", "delete", "--tag", "step", "--yes"]).code, Some(0));

    for (of, numbers) in [("router-a", "1\n2\n3\n"), ("router-b", "4\n5\n6\n")] {
        std::fs::create_dir_all(world.path("bench").join(of)).expect("a directory");
        std::fs::write(world.path("bench").join(of).join("1.receiver"), numbers).expect("written");
    }
    let bench = word(&world.path("bench"));
    let import = ["store", "import", "--name", "rate", "--unit", "packets", &bench];
    assert_eq!(world.run(&import).out, "imported 6 runs; 0 known already\n");
    assert_eq!(world.run(&import).out, "imported 0 runs; 6 known already\n");
    let said = world.run(&["compare", "--format", "json", "tag:router-a", "tag:router-b"]);
    assert!(said.code == Some(0) && said.out.contains("\"rate\""), "{said:?}");
    let said = world.run(&["store", "check"]);
    assert!(said.code == Some(0) && said.out.ends_with(": 8 runs, all readable\n"), "{said:?}");

    for (text, why) in [
        ("1\nx\n", "line 2 has no number in column 1: `x`"),
        ("{\"start\": 1}", "line 1 column 11; give a file of `iperf3 -J`"),
        ("", "it is empty"),
    ] {
        let bad = world.file("bad", text);
        let said = world.run(&["store", "import", &bad]).with_code(1);
        assert!(said.err.starts_with(&format!("cannot import {bad}: ")) && said.err.contains(why), "{said:?}");
    }
}

#[test]
fn figures_over_time_have_every_format() {
    let world = with_runs();
    let said = world.run(&["history", "trend", "--svg", "trend.svg"]).with_code(0);
    assert!(said.out.contains("goodput up: ") && said.out.contains("1 run: "), "{said:?}");
    assert!(said.out.contains("too few runs to find a change: 6 are needed"), "{said:?}");
    assert!(std::fs::read_to_string(world.path("trend.svg")).expect("a picture").starts_with("<svg "));
    let csv = world.run(&["history", "trend", "--format", "csv", "--figure", "idle RTT"]).out;
    assert_eq!(csv.lines().count(), 3, "{csv}");
    assert_eq!(world.run(&["history", "trend", "--format", "json"]).json()["schema"], "narrows.trend/1");
}

#[test]
fn a_check_names_what_is_damaged() {
    let world = with_runs();
    let file = word(&world.state().join("runs.db"));
    let said = world.run(&["store", "check"]);
    assert_eq!((said.code, said.out), (Some(0), format!("{file}: 3 runs, all readable\n")));
    std::fs::write(&file, "nonsense".repeat(1000)).expect("written");
    let sentence = world.sentence(1, &["history"]);
    assert!(sentence.starts_with(&format!("cannot open the store {file}: ")), "{sentence}");
    assert!(sentence.contains("it is damaged; move it away"), "{sentence}");
}

#[test]
fn a_measurement_is_in_the_store_and_a_broken_store_does_not_lose_its_report() {
    on_loopback(|world| {
        let (_server, port, token) = world.serve(&[]);
        let words =
            ["measure", "tcp", "127.0.0.1", "-p", &port, "--token-file", &token, "-t", "200ms", "--pacing-rate", "10M"];
        let said = world.run(&words).with_code(0);
        let id = said.err.lines().last().and_then(|line| line.strip_prefix("saved as ")).expect("its id");
        assert!(world.run(&["history", "--host", "127.0.0.1"]).out.contains(id));
        assert!(world.run(&["history", "show", id]).out.contains("command   measure tcp, plan "));
        let file = world.state().join("runs.db");
        let before = std::fs::metadata(&file).expect("the store").len();
        assert_eq!(
            world.run(&[&words[..], &["--no-save", "-o", "a.run.json"]].concat()).err.lines().last(),
            Some("saved to a.run.json")
        );
        assert_eq!(std::fs::metadata(&file).expect("the store").len(), before);

        for beside in ["runs.db-wal", "runs.db-shm"] {
            let _ = std::fs::remove_file(world.state().join(beside));
        }
        std::fs::write(&file, "nonsense".repeat(1000)).expect("written");
        let said = world.run(&words).with_code(0);
        assert!(said.out.contains("Mbit/s"), "{said:?}");
        assert!(said.err.contains("cannot save the run: cannot open the store "), "{said:?}");
        let said = world.run(&[&words[..], &["-o", "b.run.json"]].concat());
        assert!(
            said.err.contains("saved to b.run.json\nthe run is in its file only: cannot open the store "),
            "{said:?}"
        );
    });
}
