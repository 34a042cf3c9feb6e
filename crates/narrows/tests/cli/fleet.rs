//! `narrows fleet`: a controller and agents on the loopback device.

use crate::world::{Running, World, alone, on_loopback, soon, word};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

const FILE: &str = "name = 'site'\nhosts.a = { address = '127.0.0.1' }\nhosts.b = { address = '127.0.0.1' }\n\
    [[mesh]]\nname = 'all'\n[[mesh.test]]\nkind = 'load'\nevery = '1h'\nlasts = '300ms'\n\
    [[mesh.test]]\nkind = 'probe'\nevery = '1h'\nlasts = '500ms'\n";

/// The controller at a port, and the port as a word.
fn controller(world: &World, file: &str, port: &str) -> (Running, String) {
    started(world.start(&["fleet", "controller", file, "--port", port]))
}

/// One with the store of the first and a copy of its key.
fn second_controller(world: &World, file: &str) -> (Running, String) {
    let (first, own) = (world.state(), world.path("second/narrows"));
    assert!(std::process::Command::new("install").args(["-dm700"]).arg(&own).status().expect("install").success());
    let copied = std::process::Command::new("cp").arg("-r").arg(first.join("controller")).arg(&own).status();
    assert!(copied.expect("cp").success());
    let mut command = world.command(&["fleet", "controller", file, "--port", "0"]);
    command.env("XDG_STATE_HOME", world.path("second")).env("NARROWS_STORE", first.join("runs.db"));
    started(Running::of(command))
}

fn started(mut controller: Running) -> (Running, String) {
    let line = controller.line_of_errors();
    let port = line.split_once(" listens on port ").and_then(|(_, rest)| rest.split(';').next());
    let port = port.unwrap_or_else(|| panic!("no controller: {line}")).to_owned();
    (controller, port)
}

/// An agent with a state of its own, which the first of these controllers answers.
fn agent(world: &World, ports: [&str; 2], host: &str, token: &str) -> Running {
    let at = ports.map(|port| format!("127.0.0.1:{port}")).join(",");
    let mut command = world.command(&["fleet", "agent", &at, "--token-file", token, "--port", "0"]);
    command.env("XDG_STATE_HOME", world.path(host));
    let mut agent = Running::of(command);
    agent.await_error("the controller answers");
    agent
}

fn ask(world: &World, port: &str, words: &[&str]) -> crate::world::Said {
    let (way, own) = (format!("127.0.0.1:{port}"), word(&world.state().join("controller/token")));
    world.run(&[&["fleet"], words, &["--controller", &way, "--token-file", &own]].concat())
}

fn status(world: &World, port: &str) -> Value {
    ask(world, port, &["status", "--format", "json"]).json()
}

/// How the tests of a kind ended: done, failed, missed.
fn ended(status: &Value, nth: usize) -> [u64; 3] {
    ["done", "failed", "missed"].map(|it| status["tests"][nth][it].as_u64().expect("a number"))
}

#[test]
fn tests_are_made_by_agents_and_kept_while_the_controller_is_away() {
    on_loopback(|world| {
        let file = world.file("fleet.toml", FILE);
        let refused = world.run(&["fleet", "token", &file, "a"]);
        assert!(refused.err.contains("there is no controller's key"), "{refused:?}");
        let (first, port) = controller(world, &file, "0");
        let refused = world.run(&["fleet", "controller", &file, "--port", "0"]);
        assert!(refused.code == Some(1) && refused.err.contains("another controller works with"), "{refused:?}");
        let (mut second, other) = second_controller(world, &file);
        second.await_error("another controller leads the fleet");
        assert!(ask(world, &other, &["status"]).err.contains("another controller leads the fleet"));
        let token = |host: &str| {
            let printed = world.run(&["fleet", "token", &file, host]);
            world.file(&format!("{host}.token"), &printed.out)
        };
        let _agents = ["a", "b"].map(|host| agent(world, [&other, &port], host, &token(host)));
        let asked = ask(world, &port, &["run"]);
        assert!(asked.out.contains("3 tests are due now"), "{asked:?}");
        assert!(
            soon(Duration::from_millis(500), || {
                let status = status(world, &port);
                [ended(&status, 0), ended(&status, 1)] == [[2, 0, 0], [1, 0, 0]]
            }),
            "{:#}",
            status(world, &port)
        );
        let said = ask(world, &port, &["status"]);
        assert!(said.code == Some(0) && said.out.contains("2 of 2 agents answer"), "{said:?}");
        assert!(said.out.contains("2 of 2 loads measured"), "the grid: {said:?}");
        // Both are loads of a real program, in both directions.
        let loads = status(world, &port)["mesh"]["loads"].clone();
        let carried = |nth: usize| loads[nth]["state"]["measured"]["goodput_bps"].as_f64();
        assert!((0..2).all(|nth| carried(nth) > Some(1e6)), "{loads:#}");
        let over_time = ask(world, &port, &["history", "a", "b"]);
        assert!(
            over_time.code == Some(0) && over_time.out.contains("a to b: 1 load, 1 probe, 0 without a figure"),
            "{over_time:?}"
        );
        assert_eq!(ask(world, &port, &["history", "b", "a", "--format", "csv"]).out.lines().count(), 3);
        assert!(ask(world, &port, &["history", "a", "z"]).err.contains("no host z"));
        // A file of another host takes the place of the controller's; who gets alerts, and the name, do not change so.
        let sent = |text: &str| ask(world, &port, &["apply", &world.file("sent.toml", text)]);
        let none = sent("name = 'x'");
        assert!(none.err.contains("the fleet stays as it was"), "{none:?}");
        let renamed = sent(&FILE.replace("name = 'site'", "name = 'three'"));
        assert!(renamed.err.contains("all tokens follow from the name"), "{renamed:?}");
        let alert = sent(&format!("{FILE}[[alert]]\nwebhook = 'http://192.0.2.1/'\n"));
        assert!(alert.err.contains("alerts and otlp are changed in"), "{alert:?}");
        let longer = FILE.replace("lasts = '300ms'", "lasts = '400ms'");
        let said = sent(&longer);
        assert!(said.out.contains("the file was read again"), "{said:?}");
        assert_eq!(std::fs::read_to_string(&file).expect("the file"), longer);
        assert!(sent(FILE).out.contains("the file was read again"));
        // While no controller is there, what was begun is finished and kept.
        ask(world, &port, &["run"]);
        std::thread::sleep(Duration::from_millis(1_000));
        for controller in [&second, &first] {
            controller.signal(15);
        }
        first.end();
        second.end();
        std::thread::sleep(Duration::from_secs(4));
        let (_third, port) = controller(world, &file, &other);
        assert!(
            soon(Duration::from_millis(500), || {
                let status = status(world, &port);
                // The load of the other direction, which waited for its hosts, is named as missed later.
                [ended(&status, 0), ended(&status, 1)] == [[1, 0, 0]; 2]
            }),
            "{:#}",
            status(world, &port)
        );
    });
}

#[test]
fn who_shows_the_wrong_token_gets_nothing() {
    on_loopback(|world| {
        let file = world.file("fleet.toml", FILE);
        let (_controller, port) = controller(world, &file, "0");
        let printed = world.run(&["fleet", "token", &file, "a"]).out;
        let of_agent = world.file("a.token", &printed);
        let at = format!("127.0.0.1:{port}");
        // An agent's token is no user's, and the other way round.
        let said = world.run(&["fleet", "pause", "1h", "--controller", &at, "--token-file", &of_agent]);
        assert!(said.err.contains("needs the token of the fleet's users"), "{said:?}");
        let of_users = word(&world.state().join("controller/token"));
        let mut agent = world.start(&["fleet", "agent", &at, "--token-file", &of_users, "--port", "0"]);
        agent.await_error("no work from the controller: ");
        agent.signal(15);
        let said = agent.end();
        assert!(said.code == Some(0) && said.err.ends_with("stopped\n"), "{said:?}");
        // What is wrong with an agent speaks of agents.
        std::fs::set_permissions(&of_agent, std::fs::Permissions::from_mode(0o644)).expect("owned");
        let said = world.run(&["fleet", "agent", &at, "--token-file", &of_agent, "--port", &port]);
        let taken = format!(
            "narrows: port {port} is taken: another `narrows fleet agent` may run here; stop it, or choose another with --port; \
             each agent needs a token of its own\n"
        );
        assert!(said.code == Some(1) && said.err.ends_with(&taken), "{said:?}");
        let open = format!(
            "others can read {of_agent}; whoever has it can report in the name of this host: chmod 600 {of_agent}\n"
        );
        assert!(said.err.starts_with(&open), "{said:?}");
        let other = format!("{}{}", &printed[..printed.len() - 5], "AAAA\n");
        let other = world.file("other.token", &other);
        let said = world.run(&["fleet", "status", "--controller", &at, "--token-file", &other]);
        assert!(said.err.contains("does not know this token"), "{said:?}");
        assert!(ask(world, &port, &["drain", "nobody"]).err.contains("no host nobody"));
        assert!(ask(world, &port, &["run", "nothing"]).err.contains("no mesh nothing"));
        let said = ask(world, &port, &["pause", "1h"]);
        assert!(said.code == Some(0), "{said:?}");
        assert!(ask(world, &port, &["status"]).out.contains("no test begins for"), "paused");
    });
}

#[test]
fn an_agent_without_a_token_is_told_how_to_get_one() {
    let world = alone();
    assert_eq!(
        world.sentence(2, &["fleet", "agent", "192.0.2.1"]),
        "cannot show the controller a token: make one on the controller's host: `narrows fleet token FILE HOST > HOST.token`; copy \
         it to this host, and name its file with --token-file, or store it with `narrows trust 192.0.2.1 -p 5223 --token-file FILE`"
    );
    let users = world.sentence(2, &["fleet", "status", "--controller", "192.0.2.1"]);
    assert!(users.contains("/var/lib/narrows-fleet/controller/token"), "{users}");
    assert!(users.ends_with("; name a controller on another host with --controller HOST"), "{users}");
    let token = word(&world.path("token"));
    world.file("token", &world.run(&["serve", "token", "add", "ci"]).out);
    assert_eq!(
        world.sentence(1, &["fleet", "status", "--controller", "127.0.0.1:1", "--token-file", &token]),
        "cannot connect to 127.0.0.1:1: connection refused; does `narrows fleet controller` run there? Name another host or port as \
         --controller HOST:PORT"
    );
    let missing = word(&world.path("missing"));
    assert_eq!(
        world.sentence(1, &["fleet", "agent", "192.0.2.1", "--token-file", &missing]),
        format!(
            "cannot read token file {missing}: not found; copy it from the controller's host (`narrows fleet token` prints it)"
        )
    );
    let empty = world.file("empty", "");
    assert_eq!(
        world.sentence(1, &["fleet", "agent", "192.0.2.1", "--token-file", &empty]),
        format!(
            "{empty}: invalid token: a token is one line that starts with `narrows1.`, as `narrows fleet token` prints it"
        )
    );
}

#[test]
fn a_file_that_makes_no_sense_and_a_template_are_read() {
    let world = alone();
    let file = world.file("fleet.toml", &FILE.replace("127.0.0.1", "nowhere"));
    let refused = world.run(&["fleet", "check", &file]);
    assert!(refused.code == Some(2) && refused.err.contains("`nowhere` is no IP address"), "{refused:?}");
    let template = world.file(
        "psconfig.json",
        "{\"addresses\":{\"a\":{\"address\":\"192.0.2.1\"},\"b\":{\"address\":\"192.0.2.2\"}},\
         \"groups\":{\"g\":{\"type\":\"mesh\",\"addresses\":[{\"name\":\"a\"},{\"name\":\"b\"}]}},\
         \"schedules\":{\"s\":{\"repeat\":\"PT2H\"}},\"tests\":{\"t\":{\"type\":\"throughput\",\"spec\":{\"duration\":\"PT5S\"}}},\
         \"tasks\":{\"k\":{\"group\":\"g\",\"test\":\"t\",\"schedule\":\"s\",\"archives\":[\"x\"]}}}",
    );
    let imported = world.run(&["fleet", "import", &template]);
    assert!(imported.code == Some(0) && imported.err.contains("archive"), "{imported:?}");
    let flags = ["--every", "4h", "--lasts", "1s", "--expect", "10G", "--probe-every", "2m", "--design", "mesh"];
    let refused = world.run(&[&["fleet", "import", &template][..], &flags].concat());
    assert!(refused.err.contains("those flags go with a file of hosts"), "{refused:?}");
    let named = world.file("hosts.txt", "ssh://root@a rack1\n192.0.2.7 rack2\n");
    let asked = world.run(&[&["fleet", "import", &named][..], &flags].concat());
    assert!(
        ["every = \"4h\"", "lasts = \"1s\"", "expect = \"10G\"", "every = \"2m\"", "design = \"mesh\""]
            .iter()
            .all(|key| asked.out.contains(key)),
        "{asked:?}"
    );
    let wrong = world.run(&["fleet", "import", &named, "--every", "often"]);
    assert!(wrong.code == Some(2) && wrong.err.contains("invalid duration"), "{wrong:?}");
    let hosts = world.run(&["fleet", "import", &world.file("hosts.txt", "ssh://root@a rack1\n192.0.2.7 rack2\n")]);
    assert!(hosts.out.contains("192.0.2.7") && hosts.out.contains("rack1") && hosts.code == Some(0), "{hosts:?}");
    let file = world.file("hosts.toml", &hosts.out);
    assert!(world.run(&["fleet", "check", &file]).out.contains("2 hosts"));
    let file = world.file("imported.toml", &imported.out);
    let checked = world.run(&["fleet", "check", &file]);
    assert!(checked.code == Some(0) && checked.out.contains("POSSIBLE"), "{checked:?}");
}
