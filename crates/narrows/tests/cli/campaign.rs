//! A campaign whose load is another program: no server, no network.

use crate::world::{World, alone, on_loopback, soon};
use std::time::Duration;

const OFTEN: Duration = Duration::from_millis(10);

/// Six runs: the number is the first factor times 100, and a second factor is set by a command.
const LOAD: &str = r#"
name = "script"
hosts = ["here"]
repetitions = 2
[load]
kind = "command"
duration = "100ms"
command = ["sh", "-c", "echo rate $(( {n} * 100 )); test {n} != 3"]
pattern = 'rate (\d+)'
unit = "requests/s"
[[factor]]
flag = "n"
values = [1, 2, 3]
"#;

/// A factor that a command sets in a file of this world, and rolls back.
fn knob(world: &World) -> String {
    let path = world.file("knob", "old\n");
    format!(
        "[[factor]]\nname = \"knob\"\ncommand = [\"sh\", \"-c\", \"echo {{value}} > {path}\"]\n\
         read = [\"cat\", \"{path}\"]\nrestore = [\"sh\", \"-c\", \"echo {{before}} > {path}\"]\nvalues = [\"a\", \"b\"]\n"
    )
}

fn state(world: &World) -> String {
    std::fs::read_to_string(world.path("knob")).expect("a file")
}

#[test]
fn another_program_is_a_load_and_a_run_that_fails_is_named() {
    let world = alone();
    let plan = world.file("plan.toml", &(LOAD.to_owned() + &knob(&world)));
    let dry = world.run(&["campaign", &plan, "--dry-run"]);
    assert!(dry.out.contains("    1  block 1   here  n=") && dry.out.contains("12 runs, 0 done, 2 s left"), "{dry:?}");
    let said = world.run(&["campaign", &plan]).with_code(0);
    assert!(said.err.contains("recorded as failed"), "{said:?}");
    assert!(said.out.starts_with("script: 12 of 12 runs, mean sh (requests/s) 150\n"), "{said:?}");
    assert!(said.out.contains("Does nothing (within 1 %): knob\n"), "{said:?}");
    assert!(said.out.contains("n=3, knob=a) failed: `sh` ended with exit status: 1\n"), "{said:?}");
    assert!(said.out.contains("n: 1 → 2") && said.out.contains("raises"), "{said:?}");
    assert_eq!(state(&world), "old\n");
    // All is done, and is shown again.
    let again = world.run(&["campaign", &plan, "--quiet"]);
    assert_eq!((again.out, again.err.as_str()), (said.out, ""));
    let csv = world.run(&["campaign", &plan, "--quiet", "--format", "csv"]).out;
    assert!(csv.starts_with("step,block,host,n,knob,run,started,figure,unit,value,failed\n1,1,here,"), "{csv}");
    assert_eq!((csv.lines().count(), csv.matches(",`sh` ended with exit status: 1\n").count()), (13, 4), "{csv}");
    let json = world.run(&["campaign", &plan, "--quiet", "--format", "json"]).json();
    assert_eq!((&json["schema"], &json["idle"][0]), (&"narrows.campaign/1".into(), &"knob".into()));
    assert!(world.run(&["campaign", &plan, "-q", "--format", "markdown"]).out.starts_with("# Campaign\n"));
    assert!(world.run(&["campaign", &plan, "-q", "--format", "html"]).out.starts_with("<!DOCTYPE html>"));
    let id = json["runs"][0]["id"].as_str().expect("an id");
    let shown = world.run(&["history", "show", id]).out;
    assert!(shown.contains("command  sh -c echo rate"), "{shown}");
    // Its results are kept once, by the call that made runs, and are none of its runs.
    let listed = world.run(&["history", "--command", "campaign", "--format", "json"]).json();
    let (kept, tag) = (&listed["runs"][0], &json["tag"]);
    let as_listed = [&kept["server"], &kept["verdict"], &kept["figures"][0]["name"], &kept["tags"]];
    let names = ["here", "effect: 1 of 2 factors", "sh (requests/s) mean"].map(serde_json::Value::from);
    assert_eq!(as_listed, [&names[0], &names[1], &names[2], &vec![tag.clone()].into()], "{listed}");
    assert_eq!((&listed["total"], &kept["figures"][0]["value"]), (&1.into(), &json["mean"]));
    let kept = kept["id"].as_str().expect("an id");
    assert!(said.err.ends_with(&format!("saved as {kept}\n")), "{}", said.err);
    assert_eq!(world.run(&["report", kept, "--format", "json"]).json(), json);
    let runs = json["runs"].as_array().expect("runs");
    let id = runs.iter().find(|it| !it["value"].is_null()).and_then(|it| it["id"].as_str()).expect("an id");
    assert_eq!(
        world.sentence(2, &["compare", kept, id]),
        format!(
            "cannot compare run {id}: it has no figure `sh (requests/s) mean`; it has `sh (requests/s)` (--figure)"
        )
    );
    assert_eq!(world.run(&["history", "trend"]).out, "no runs match\n");
    assert_eq!(world.run(&["store", "check"]).code, Some(0));
}

#[test]
fn a_killed_campaign_is_rolled_back_by_the_next_and_runs_once_at_a_time() {
    let world = alone();
    let slow = LOAD.replace("echo rate", "sleep 1; echo rate");
    let plan = world.file("plan.toml", &(slow + &knob(&world)));
    let mut first = world.start(&["campaign", &plan]);
    first.await_error("[1/12]");
    first.await_error("[2/12]");
    let said = world.run(&["campaign", &plan]);
    assert_eq!(
        (said.code, said.err.lines().last()),
        (
            Some(1),
            Some("narrows: cannot start the campaign: it is already running in another process; wait for its end")
        ),
        "{said:?}"
    );
    assert!(soon(OFTEN, || state(&world) != "old\n"), "the knob is never set");
    first.signal(9);
    first.end();
    assert_ne!(state(&world), "old\n");
    let said = world.run(&["campaign", "--undo"]);
    assert_eq!((said.code, said.out.as_str()), (Some(0), "factor knob: rolled back\n"), "{said:?}");
    assert_eq!(state(&world), "old\n");
    assert_eq!(world.run(&["campaign", "--undo"]).out, "no campaign left anything to roll back\n");
}

#[test]
fn ctrl_c_ends_the_program_with_its_children_and_rolls_back() {
    let world = alone();
    // Its number tells this process from others.
    let slow = LOAD.replace("echo rate", "sleep 61.625 & wait; echo rate");
    let plan = world.file("plan.toml", &(slow + &knob(&world)));
    let mut running = world.start(&["campaign", &plan]);
    running.await_error("[1/12]");
    let sleeps = || {
        let all = std::fs::read_dir("/proc").expect("processes").filter_map(Result::ok);
        all.filter_map(|it| std::fs::read(it.path().join("cmdline")).ok()).any(|it| it == b"sleep\x0061.625\0")
    };
    assert!(soon(OFTEN, sleeps), "the load does not start");
    running.signal(2);
    let said = running.end().with_code(130);
    assert!(said.err.ends_with("the same command goes on with the runs that are left\n"), "{said:?}");
    assert!(soon(OFTEN, || !sleeps()), "the load goes on");
    assert_eq!(state(&world), "old\n");
}

#[test]
fn what_cannot_be_measured_is_said_at_once() {
    let world = alone();
    let plan = world
        .file("plan.toml", &(LOAD.to_owned() + "[[factor]]\ncommand = [\"true\", \"{value}\"]\nvalues = [1, 2]\n"));
    let said = world.run(&["campaign", &plan]).with_code(2);
    assert!(said.err.contains("factor.restore: it is missing: the command cannot be rolled back"), "{said:?}");
    let said = world.run(&["campaign", &plan, "--no-undo", "--dry-run"]);
    assert!(said.code == Some(0) && said.out.contains("12 runs"), "{said:?}");
    let plan = world.file("bad.toml", "hosts = [\"a\"]\ncolour = 1\n[load]\nkind = \"command\"\npattern = \"(\"\n");
    let said = world.run(&["campaign", &plan]).with_code(2);
    for line in [
        "line 1, column 1: factor: it is missing",
        "line 2, column 1: colour: unknown key; known keys: name, hosts, design, repetitions, seed, load, factor",
        "line 3, column 1: load.command: it is missing",
        "line 5, column 11: pattern: is not a regular expression: ",
    ] {
        assert!(said.err.contains(line), "{said:?}");
    }
}

#[test]
fn a_run_that_fails_while_its_host_is_there_is_recorded_and_the_others_go_on() {
    on_loopback(|world| {
        let (_server, port, token) = world.serve(&[]);
        let campaign =
            |plan: &str| world.run(&["campaign", plan, "--port", &port, "--token-file", &token, "--format", "json"]);
        let plan = world.file(
            "tcp.toml",
            "hosts = [\"127.0.0.1\"]\nrepetitions = 1\n[load]\nduration = \"100ms\"\n[[factor]]\n\
             flag = \"congestion-control\"\nvalues = [\"reno\", \"nosuch\"]\n",
        );
        let said = campaign(&plan).with_code(0);
        assert!(said.err.contains("recorded as failed") && !said.err.contains("attempt 1"), "{said:?}");
        let json = said.json();
        let runs = json["runs"].as_array().expect("runs");
        let failed: Vec<_> = runs.iter().filter(|it| it["value"].is_null()).collect();
        assert_eq!((runs.len(), failed.len(), &failed[0]["levels"][0]), (2, 1, &"nosuch".into()), "{json}");
        assert!(failed[0]["failed"].as_str().expect("a reason").contains("nosuch"), "{json}");

        for (load, figure, better) in [
            ("kind = \"udp\"\nrate = \"2M\"\nsize = 500", "goodput up", "higher"),
            ("kind = \"rr\"\ntransaction = \"udp\"", "", "lower"),
        ] {
            let plan = world.file(
                "load.toml",
                &format!(
                    "hosts = [\"127.0.0.1\"]\nrepetitions = 1\n[load]\nduration = \"200ms\"\n{load}\n[[factor]]\n\
                     flag = \"streams\"\nvalues = [1, 2]\n"
                ),
            );
            let json = campaign(&plan).with_code(0).json();
            assert!(json["figure"].as_str().expect("a name").starts_with(figure), "{json}");
            assert_eq!((&json["better"], json["runs"].as_array().map(Vec::len)), (&better.into(), Some(2)), "{json}");
            assert!(json["mean"].as_f64().expect("a mean") > 0.0, "{json}");
            let tag = format!("tag:{}", json["tag"].as_str().expect("a tag"));
            let said = world.run(&["compare", &tag, &tag]).with_code(0);
            assert!(said.out.contains(&format!("B  {tag} (2 runs)")), "{said:?}");
        }
    });
}
