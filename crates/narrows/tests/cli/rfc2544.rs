//! A forwarding benchmark that cannot be planned or made, and what needs no device.

use crate::world::{alone, on_loopback};

const PLAN: &str = r#"name = "a router"
link = "1G"
max-load = "100kpps"

[generator]
device = "gen0"
address = "198.18.0.2"
gateway = "198.18.0.1"

[receiver]
device = "rcv0"
address = "198.19.0.2"
gateway = "198.19.0.1"

[[traffic]]
sizes = [64, 1518]

[worst-case]
duration = "2s"
repetitions = 3
"#;

/// The lines that a plan's problems are told in, after the one that names the file.
fn problems(text: &str) -> Vec<String> {
    let world = alone();
    let file = world.file("plan.toml", text);
    let said = world.run(&["rfc2544", &file]);
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{said:?}");
    let rest = said.err.strip_prefix(&format!("narrows: {file}:\n"));
    rest.unwrap_or_else(|| panic!("{said:?}")).lines().map(str::to_owned).collect()
}

#[test]
fn a_plan_that_cannot_be_read_is_named() {
    let world = alone();
    assert_eq!(
        world.sentence(1, &["rfc2544", "nothere.toml"]),
        "cannot open nothere.toml: No such file or directory (os error 2)"
    );
    std::fs::write(world.path("binary"), [0xff, 0xfe, 0]).expect("a file");
    assert_eq!(
        world.sentence(1, &["rfc2544", "binary"]),
        "binary is not a forwarding benchmark record: it is not UTF-8 text"
    );
    let long = world.file("long", &"# a comment\n".repeat(40_000));
    assert_eq!(world.sentence(1, &["rfc2544", &long]), format!("cannot read {long}: it is larger than 262145 bytes"));
    let said = world.run(&["rfc2544"]).with_code(2);
    assert!(said.err.starts_with("error: the following required arguments were not provided:\n  <PLAN>\n"), "{said:?}");
}

#[test]
fn everything_that_is_wrong_with_a_plan_is_told_at_once() {
    let plan = PLAN
        .replace("link = \"1G\"", "link = \"fast\"")
        .replace("device = \"gen0\"", "devise = \"gen0\"")
        .replace("gateway = \"198.19.0.1\"", "gateway = \"198.19.0\"")
        .replace("address = \"198.18.0.2\"", "address = \"192.0.2.1\"")
        .replace("sizes = [64, 1518]", "sizes = [63, 1518]")
        .replace("repetitions = 3", "repetitions = 0\ncolour = 7");
    assert_eq!(
        problems(&plan),
        [
            "line 2, column 8: link: it is `fast`, but must be a rate in bit/s like \"10G\", from 1M to 1T",
            "line 5, column 1: generator.device: it is missing: interface of the tester",
            "line 6, column 1: generator.devise: unknown key; did you mean `device`?",
            "line 7, column 11: generator.address: it is `192.0.2.1`, but must be of the benchmarking ranges 198.18.0.0/15 and \
             2001:2::/48, or allow-any-address = true at the top of the file",
            "line 13, column 11: receiver.gateway: it is `198.19.0`, but must be an IP address like 198.18.0.2 or 2001:2::2",
            "line 16, column 10: traffic[0].sizes[0]: it is 63, but the minimum for IPv4, UDP with signature is 64 \
            bytes with FCS",
            "line 20, column 15: worst-case.repetitions: it is 0, but must be a whole number from 1 to 1000",
            "line 21, column 1: worst-case.colour: unknown key; known keys: duration, repetitions",
        ]
    );
}

#[test]
fn what_is_no_toml_is_told_with_its_place() {
    let told = problems("name = \n[generator\n");
    assert!(!told.is_empty() && told.iter().all(|line| line.starts_with("line ")), "{told:?}");
    assert!(told[0].contains("invalid TOML: "), "{told:?}");
}

#[test]
fn a_dry_run_sends_nothing_and_tells_every_trial() {
    let world = alone();
    let file = world.file("plan.toml", PLAN);
    let said = world.run(&["rfc2544", &file, "--dry-run"]).quiet(0);
    assert_eq!(
        said.out,
        "test             size           trials     expected      at most\ncalibration      64 B                1        2.0 s        2.0 s\nFRMOL            64 B                3        9.0 s        9.0 s\ncalibration    1518 B                1        2.0 s        2.0 s\nFRMOL          1518 B                3        9.0 s        9.0 s\n\nTotal: about 22.0 s, at most 22.0 s. Nothing was sent.\n"
    );
}

#[test]
fn a_dry_run_tells_each_modifier_by_its_name() {
    let world = alone();
    let plan = PLAN.replace("sizes = [64, 1518]", "sizes = [64]\nmodifiers = [\"broadcast\", \"routes\"]");
    let said = world.run(&["rfc2544", &world.file("plan.toml", &plan), "--dry-run"]).quiet(0);
    assert_eq!(
        said.out,
        "frames              test             size           trials     expected      at most\nIPv4                \
        calibration      64 B                1        2.0 s        2.0 s\nIPv4                FRMOL            64 B                3        9.0 s        9.0 s\nIPv4, 1 % broadcast calibration      64 B                1        2.0 s        2.0 s\nIPv4, 1 % broadcast FRMOL            64 B                3        9.0 s        9.0 s\nIPv4, RIP updates   calibration      64 B                1        2.0 s        2.0 s\nIPv4, RIP updates   FRMOL            64 B                3        9.0 s        9.0 s\n\nTotal: about 33.0 s, at most 33.0 s. Nothing was sent.\n"
    );
    assert_eq!(
        problems(&PLAN.replace("sizes = [64, 1518]", "modifiers = [\"management\", \"noise\"]")),
        [
            "line 16, column 14: traffic[0].modifiers[0]: the plan has no hop with an SNMP source; name the agent: { \
            kind = \
             \"management\", agent = \"198.18.0.1\", community = \"public\" }",
            "line 16, column 28: traffic[0].modifiers[1]: it is `noise`, but must be \"broadcast\", \"management\", \"routes\" or a \
             table with its kind",
        ]
    );
}

#[test]
fn a_port_that_is_not_there_is_named() {
    on_loopback(|world| {
        let file = world.file("plan.toml", PLAN);
        assert_eq!(
            world.sentence(1, &["rfc2544", &file]),
            "the tester's port gen0 cannot be used: cannot find link gen0: the kernel refuses netlink route message 18: No such \
             device (os error 19)"
        );
    });
}

#[test]
fn a_record_that_is_none_is_named() {
    let world = alone();
    world.file("plan.toml", PLAN);
    assert_eq!(
        world.sentence(1, &["rfc2544", "--again", "plan.toml"]),
        "plan.toml is not a forwarding benchmark record: expected ident at line 1 column 2"
    );
    world.file("other.json", "{\"format\": 1}");
    assert_eq!(
        world.sentence(1, &["rfc2544", "--again", "other.json"]),
        "other.json is not a forwarding benchmark record: missing field `plan` at line 1 column 13"
    );
    assert_eq!(
        world.sentence(1, &["rfc2544", "--again", "nothere.json"]),
        "cannot open nothere.json: No such file or directory (os error 2)"
    );
    let said = world.run(&["rfc2544", "plan.toml", "--again", "other.json"]).with_code(2);
    assert!(said.err.contains("cannot be used with"), "{said:?}");
}

#[test]
fn two_configurations_with_faults_need_a_lab() {
    let world = alone();
    let ab =
        "\n[throughput]\n[ab]\na = { name = \"plain\" }\nb = { name = \"rules\", faults = [\"forward-rules=10\"] }\n";
    world.file("ab.toml", &format!("{PLAN}{ab}"));
    let said = world.run(&["rfc2544", "ab.toml", "-o", "kept.json"]);
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{said:?}");
    assert!(said.err.contains("ab.toml:\na configuration has lab faults, but no lab is named"), "{said:?}");
    assert!(!world.path("kept.json").exists());
}

#[test]
fn advice_and_keys_need_no_device() {
    let world = alone();
    let said = world.run(&["rfc2544", "advise", "freebsd", "--role", "router"]).quiet(0);
    assert!(said.out.starts_with("Before a benchmark: FreeBSD as router"), "{said:?}");
    let all = world.run(&["rfc2544", "advise"]);
    assert!(all.out.starts_with("Before a benchmark: Linux") && all.out.contains("static-neighbours"), "{all:?}");
    let said = world.run(&["rfc2544", "keys"]).quiet(0);
    for key in ["| `link` |", "| `under-test` |", "### `[ab]`"] {
        assert!(said.out.contains(key), "{key}: {said:?}");
    }
}

/// The plan with two configurations of commands.
fn with_commands(a: &str, b: &str) -> String {
    format!(
        "{PLAN}\n[throughput]\nmax-search = \"10s\"\n[ab]\nruns = 3\n[ab.a]\nname = \"plain\"\n{a}\n[ab.b]\nname = \"rules\"\n{b}\n"
    )
}

#[test]
fn a_dry_run_of_two_configurations_tells_each_step() {
    let world = alone();
    let b = "commands = [[\"nft\", \"-f\", \"rules.nft\"]]\nundo = [[\"nft\", \"flush\", \"ruleset\"]]";
    let file = world.file("ab.toml", &with_commands("", b));
    let said = world.run(&["rfc2544", &file, "--dry-run"]).quiet(0);
    let end = said.out.split_once("\nstep ").expect("the steps").1;
    let steps: Vec<&str> = end.lines().skip(1).filter_map(|line| line.split("  ").next()).collect();
    assert!(said.out.starts_with(concat!(
        "A: plain\n   no command\n",
        "B: rules\n   command  nft -f rules.nft\n   undo     nft flush ruleset\n\nEach run:\ntest  "
    )));
    assert_eq!(
        steps,
        [
            "switch to B and to A once, as a check",
            "switch to A, rest",
            "run 1 of 6 with A",
            "switch to B, rest",
            "run 2 of 6 with B",
            "run 3 of 6 with B",
            "switch to A, rest",
            "run 4 of 6 with A",
            "run 5 of 6 with A",
            "switch to B, rest",
            "run 6 of 6 with B",
            "roll back the device",
            "",
            "Total: about 6.3 min, at most 6.5 min, plus the time of the commands. Nothing was sent or changed.",
        ]
    );
}

#[test]
fn a_configuration_that_cannot_be_made_is_told_before_anything_is_measured() {
    let world = alone();
    let marks = world.path("marks");
    let mark = |word: &str| format!("[\"sh\", \"-c\", \"echo {word} >> {}\"]", marks.display());
    let fails = "[\"sh\", \"-c\", \"echo no such table >&2; exit 7\"]";
    let b = format!("commands = [{}, {fails}]\nundo = [{}]", mark("made"), mark("undone"));
    let file = world.file("ab.toml", &with_commands("", &b));
    assert_eq!(
        world.sentence(1, &["rfc2544", &file, "--quiet"]),
        "the device cannot be switched to `rules`: command 2, `sh`: ended with exit status: 7: no such table"
    );
    assert_eq!(std::fs::read_to_string(&marks).expect("marks"), "made\nundone\n", "what was made is taken back");
    let gone = world.file("gone.toml", &with_commands("commands = [[\"/no/such/program\"]]", "undo = [[\"true\"]]"));
    assert_eq!(
        world.sentence(1, &["rfc2544", &gone, "--quiet"]),
        "the device cannot be switched to `plain`: command 1, `/no/such/program`: cannot be started: No such file or \
        directory (os error 2)"
    );
}

#[test]
fn faults_that_cannot_be_are_told_with_the_plan() {
    let world = alone();
    let file = world.file("ab.toml", &with_commands("", "faults = [\"gremlins\", \"forward-rules=many\"]"));
    let said = world.run(&["rfc2544", &file, "--dry-run"]);
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{said:?}");
    for words in ["B, `rules`: unknown fault `gremlins`", "invalid value `many` for `forward-rules`", "no lab is named"]
    {
        assert!(said.err.contains(words), "{words}: {}", said.err);
    }
}
