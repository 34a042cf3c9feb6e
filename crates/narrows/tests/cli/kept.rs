//! What a forwarding benchmark leaves on disk: looked at before it begins, written while it runs, whole in the end.

use crate::bench::{PORTS, with_router};
use crate::world::{World, alone, on_loopback, soon, word};
use narrows_sys::netns::Namespaces;
use narrows_sys::sysctl;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

const LOADS: &str = "
[[traffic]]
sizes = [64, 512]

[worst-case]
duration = \"300ms\"
repetitions = 1
";

fn forward(router: &Namespaces) {
    let set = router.run(|| sysctl::write("net.ipv4.conf.in0.forwarding", "1"));
    set.expect("a network").expect("a parameter");
}

fn plan(world: &World) -> String {
    world.file("plan.toml", &format!("{PORTS}{LOADS}"))
}

#[test]
fn a_place_that_cannot_be_written_is_told_before_anything_is_sent() {
    let world = alone();
    let plan = plan(&world);
    let file = world.file("file", "x");
    let here = word(&world.path("."));
    let why = |flag: &str, place: &str| world.sentence(1, &["rfc2544", &plan, flag, place]);
    for flag in ["-o", "--html"] {
        assert_eq!(why(flag, &here), format!("cannot write {here}: it is a directory; name a file in it"));
        assert_eq!(
            why(flag, "none/report"),
            "cannot write none/report: directory none does not exist; create it \
            first"
        );
        assert_eq!(why(flag, &format!("{file}/a")), format!("cannot write {file}/a: {file} is not a directory"));
        // A device or a pipe is written into; it is the tester's port that is missing then.
        assert!(why(flag, "/dev/null").contains("port gen0 cannot be used"), "{}", why(flag, "/dev/null"));
        assert!(why(flag, "/proc/report").starts_with("cannot write /proc/report: "));
    }
    assert!(why("--svg", &file).starts_with(&format!("cannot make directory {file}: ")), "{}", why("--svg", &file));
    assert!(why("--svg", "/proc/pictures").starts_with("cannot make directory /proc/pictures: "));
    assert_eq!(
        world.sentence(2, &["rfc2544", &plan, "-o", "same", "--html", "same"]),
        "--html and --output name the same file"
    );
    let said = world.run(&["rfc2544", "--again", "old.json", "-o", "new.json"]);
    assert!(said.code == Some(2) && said.err.contains("cannot be used with"), "{said:?}");
    assert_eq!(std::fs::read_to_string(&file).expect("it is there"), "x");
}

#[test]
fn a_record_is_kept_while_it_grows_and_says_that_it_is_a_part() {
    with_router(|world, router| {
        forward(router);
        let plan = plan(world);
        let running = world.start(&["rfc2544", &plan, "-o", "record.json", "--quiet"]);
        let record = world.path("record.json");
        // The first row is over, the second one is not.
        assert!(soon(Duration::from_millis(5), || record.exists()));
        running.signal(9);
        running.end();
        let said = world.run(&["rfc2544", "--again", "record.json"]).with_code(1);
        assert!(said.out.contains("ended early  partial record, saved 0:00:"), "{said:?}");
        assert!(said.out.contains("in row 1 of 2"), "{said:?}");
        let json = world.run(&["rfc2544", "--again", "record.json", "--format", "json"]).out;
        assert!(json.contains("\"ended\": \"partial record, saved"), "{json}");
        let left = narrows_sys::files::list(&world.path(".")).expect("a list");
        assert!(left.iter().filter(|name| name.ends_with(".part")).count() <= 1, "{left:?}");
    });
}

#[test]
fn a_whole_benchmark_is_kept_as_such_and_its_pictures_may_be_read() {
    with_router(|world, router| {
        forward(router);
        let plan = plan(world);
        let words = ["rfc2544", &plan, "-o", "record.json", "--svg", "pictures", "--html", "pictures/report.html"];
        let said = world.run(&words).with_code(0);
        assert!(!said.out.contains("ended early"), "{said:?}");
        let mode = |path: &str| std::fs::metadata(world.path(path)).expect("it is there").permissions().mode() & 0o777;
        std::fs::create_dir(world.path("usual")).expect("a directory");
        assert_eq!(mode("pictures"), mode("usual") & 0o755, "as the umask says");
        assert!(world.path("pictures/report.html").exists());
        let again = world.run(&["rfc2544", "--again", "record.json"]);
        assert_eq!((again.code, again.out), (Some(0), said.out));
    });
}

/// A measurement of which the samples come fast, so that much is written in a short time.
const FAST: [&str; 10] = ["measure", "tcp", "::1", "-i", "10ms", "-P", "16", "-b", "1M", "-q"];

fn listed(world: &World) -> Vec<Value> {
    let mut report = world.run(&["history", "--format", "json"]).json();
    serde_json::from_value(report["runs"].take()).expect("runs")
}

/// Begin and end of the intervals of the first stream, from one time to another, in milliseconds.
fn intervals(world: &World, id: &str, from: &str, to: &str) -> Vec<[i64; 2]> {
    let report = world.run(&["report", id, "--from", from, "--to", to, "--format", "json"]).with_code(0).json();
    let all = report["intervals"].as_array().expect("intervals").iter();
    let ms = |it: &Value| (it.as_f64().expect("seconds") * 1e3).round() as i64;
    all.filter(|it| it["stream"] == 0).map(|it| [ms(&it["from_s"]), ms(&it["to_s"])]).collect()
}

#[test]
fn a_measurement_whose_program_was_killed_is_kept_up_to_then() {
    on_loopback(|world| {
        let (_server, port, token) = world.serve(&[]);
        let mut words = FAST.to_vec();
        words.extend(["-t", "30s", "--port", &port, "--token-file", &token]);
        let running = world.start(&words);
        let samples = world.state().join("samples");
        // What cannot be read is put aside, and keeps nobody from the store.
        std::fs::create_dir_all(&samples).expect("a directory");
        std::fs::write(samples.join("old.part.zst"), [7; 100]).expect("a file");
        assert!(listed(world).is_empty());
        std::fs::remove_file(samples.join("old.damaged.zst")).expect("put aside");
        let written = || {
            let file = std::fs::read_dir(&samples).ok()?.next()?.ok()?;
            Some(file.metadata().ok()?.len())
        };
        let enough = || written().is_some_and(|bytes| bytes >= 100_000);
        assert!(soon(Duration::from_millis(20), enough), "nothing is written");
        // It still runs: nobody else takes it.
        assert!(listed(world).is_empty());
        running.signal(9);
        running.end();
        let runs = listed(world);
        assert_eq!(
            (runs.len(), &runs[0]["command"], &runs[0]["verdict"]),
            (1, &"measure tcp".into(), &"failed".into())
        );
        let id = runs[0]["id"].as_str().expect("an id").to_owned();
        let shown = world.run(&["history", "show", &id]).out;
        assert!(shown.contains("narrows was killed; this is what was measured until then"), "{shown}");
        let part = intervals(world, &id, "100ms", "300ms");
        // Samples come every 10 ms, on a busy machine some later.
        assert!(part.len() > 5 && part.iter().all(|it| it[0] >= 100 && it[0] < 300), "{part:?}");
        // Once: it is the same run afterwards.
        assert_eq!(listed(world).len(), 1);
        assert_eq!(world.run(&["history", "delete", &id, "--yes"]).code, Some(0));
        assert!(listed(world).is_empty());
        assert_eq!(world.run(&["store", "undo"]).code, Some(0));
        assert_eq!(
            intervals(world, &id, "100ms", "300ms"),
            part,
            "its samples are kept as long as it can be brought back"
        );
        assert_eq!(world.run(&["store", "prune", "--keep", "0", "--yes", "--for-good"]).code, Some(0));
        assert!(listed(world).is_empty() && written().is_none());
    });
}

#[test]
fn a_measurement_keeps_the_parameters_of_both_hosts_which_it_reads_after_the_load() {
    on_loopback(|world| {
        let (_server, port, token) = world.serve(&[]);
        let file = world.state().join("run.json");
        for load in ["tcp", "rr", "crr"] {
            let words = ["measure", load, "127.0.0.1", "-t", "300ms", "-q", "--port", &port, "--token-file", &token];
            assert_eq!(world.run(&[&words[..], &["-o", file.to_str().expect("a path")]].concat()).code, Some(0));
            let text = std::fs::read_to_string(&file).expect("a run");
            let run: Value = serde_json::from_str(&text).expect("JSON");
            let after = run["started_unix_us"].as_u64().expect("a time") + 300_000;
            for host in ["client", "server"] {
                assert!(run[host]["facts"].as_array().is_some_and(|facts| facts.len() > 20), "{load} {host}");
                assert!(run[host]["taken_unix_us"].as_u64().is_some_and(|at| at > after), "{load} {host}");
            }
        }
    });
}

#[test]
fn a_long_measurement_is_shown_in_parts_at_its_full_resolution() {
    on_loopback(|world| {
        let (_server, port, token) = world.serve(&[]);
        let mut words = FAST.to_vec();
        words.extend(["-t", "5s", "--port", &port, "--token-file", &token]);
        world.run(&words).with_code(0);
        let id = listed(world)[0]["id"].as_str().expect("an id").to_owned();
        let part = intervals(world, &id, "1s", "1200ms");
        // As finely as it was sampled (the ends sample at times of their own); the record alone has every other sample, or fewer.
        assert!(part.len() >= 10 && part.iter().all(|it| it[0] >= 1_000 && it[1] < 1_210), "{part:?}");
        assert!(part.iter().any(|it| it[1] - it[0] < 15), "{part:?}");
        // All of it in no more intervals than one can look at.
        let all = intervals(world, &id, "0s", "1h");
        assert!((30..=125).contains(&all.len()), "{}", all.len());
        let said = world.run(&["history", "show", &id]);
        assert!(said.err.contains(&format!("intervals are joined; `narrows report {id} --from")), "{said:?}");
        assert_eq!(world.sentence(2, &["report", &id, "--from", "2s", "--to", "1s"]), "--to must be later than --from");
        let why = world.sentence(2, &["report", &id, "--from", "1h"]);
        assert!(
            why.starts_with(&format!("cannot show that part of run {id}: it has no two samples in that time")),
            "{why}"
        );
    });
}
