//! Whole files: what they become, and every problem of bad ones, word for word.

mod families;
mod hosts;
mod modifiers;
mod tables;

use super::{MAX_BYTES, PlanFile, Problems, keys, parse, reference};
use crate::data::ab::SwitchStep;
use crate::data::{CounterSource, TrialConditions};
use narrows_model::Family;
use narrows_model::host::snmp::{Secret, SnmpAccess, SnmpAgent};
use narrows_model::load::frame_traffic::Traffic;
use narrows_model::load::frames::{Transport, Walk};
use narrows_model::run::search::Goal;
use proptest::prelude::*;

/// The least that is a plan, with something before its tables and something behind.
fn file(top: &str, rest: &str) -> String {
    format!(
        r#"name = "router a"
link = "10G"
{top}
[generator]
device = "gen0"
address = "198.18.0.2"
gateway = "198.18.0.1"
[receiver]
device = "rcv0"
address = "198.19.0.2"
gateway = "198.19.0.1"
{rest}"#
    )
}

fn good(top: &str, rest: &str) -> PlanFile {
    parse(&file(top, rest)).unwrap_or_else(|problems| panic!("{problems}"))
}

fn bad(text: &str) -> Problems {
    parse(text).expect_err("a bad plan")
}

/// The sentences of a bad plan, without their places.
fn says(top: &str, rest: &str) -> Vec<String> {
    let problems = bad(&file(top, rest));
    problems.problems.into_iter().map(|problem| format!("{}: {}", problem.key, problem.says)).collect()
}

#[test]
fn the_least_is_a_whole_plan_for_a_small_lab() {
    let plan = good("", "").plan;
    assert_eq!((plan.name.as_str(), plan.link_bps, plan.max_load_pps), ("router a", 10_000_000_000, None));
    assert_eq!(plan.traffic[0].sizes, [64, 512, 1518]);
    assert_eq!((plan.traffic[0].flows, plan.traffic[0].mix.len()), (2_000, 0));
    let tests = &plan.tests;
    assert_eq!(tests.throughput.as_ref().map(|test| test.goals.clone()), Some(vec![Goal::ndr(), Goal::pdr()]));
    assert!(tests.latency.is_some() && tests.loss.is_some() && tests.back_to_back.is_some());
    assert!(tests.recovery.is_none() && tests.reset.is_none() && tests.frmol.is_none());
    // Two seconds of 14,880,952 frames.
    assert_eq!(tests.back_to_back.as_ref().map(|test| test.most_frames), Some(29_761_904));
}

#[test]
fn the_preset_of_the_rfc_has_its_sizes_durations_and_repetitions() {
    let plan = good("preset = \"rfc2544\"", "").plan;
    assert_eq!(plan.traffic[0].sizes, [64, 128, 256, 512, 1024, 1280, 1518]);
    assert_eq!(
        (plan.conditions.residue_ms, plan.conditions.rest_ms, plan.conditions.learning_frames),
        (2_000, 5_000, 1_000)
    );
    let latency = plan.tests.latency.expect("measured");
    assert_eq!((latency.duration_ms, latency.repetitions), (120_000, 20));
    assert_eq!(plan.tests.back_to_back.expect("measured").repetitions, 50);
    assert_eq!(plan.tests.recovery.expect("measured").overload_ms, 60_000);
    assert_eq!(plan.tests.throughput.expect("measured").goals, [Goal::rfc2544()]);
}

#[test]
fn a_file_with_everything() {
    let file = good(
        "max-load = \"2Mpps\"\nresidue = \"1s\"\nrest = \"50ms\"\nwait-for-lost-device = \"2m\"\nlearning-frames = 7",
        r#"
[[traffic]]
family = "ipv4"
transport = "tcp-syn"
sizes = [128, 1518]
mix = "imix"
flows = 4000
networks = 256
walk = "random"
seed = 9
bidirectional = true
[[hop]]
name = "switch"
input = "Gi1"
output = "Gi2"
source = { kind = "snmp", agent = "192.0.2.1:1161", version = "3", user = "lab", password = "secret-word" }
[[hop]]
name = "router"
under-test = true
input = "in0"
output = "out0"
source = { kind = "namespace", name = "pid:1234" }
[throughput]
goals = ["pdr", { name = "half", loss-ratio = 0.5, final-trial = "2s", duration-sum = "10s" }]
confirm = 3
max-search = "90s"
[latency]
duration = "1.5s"
[loss]
step = "5%"
[back-to-back]
most-frames = 1000
[recovery]
repetitions = 2
[reset]
command = ["/usr/bin/reset-it", "--now"]
[worst-case]
[ab]
runs = 4
[ab.a]
name = "forwarding alone"
[ab.b]
name = "10,000 rules"
commands = [["nft", "-f", "rules.nft"]]
undo = [["nft", "flush", "ruleset"]]
faults = ["filter-drop=1000"]
"#,
    );
    let plan = &file.plan;
    assert_eq!(plan.max_load_pps, Some(2e6));
    assert_eq!(
        (plan.conditions.clone(), plan.lost_dut_wait_ms),
        (TrialConditions { learning_frames: 7, residue_ms: 1_000, rest_ms: 50 }, 120_000)
    );
    let traffic = &plan.traffic[0];
    assert_eq!((traffic.transport, traffic.walk), (Transport::TcpSyn, Walk::Random { seed: 9 }));
    // A SYN with its signature takes 74 bytes: the mix is raised to what it can have.
    assert_eq!(traffic.mix.iter().filter(|size| **size == 74).count(), 7);
    assert_eq!((traffic.flows, traffic.networks, traffic.bidirectional), (4_000, 256, true));
    let access = SnmpAccess::V3 { user: "lab".to_owned(), password: Some(Secret::new("secret-word")) };
    let agent = SnmpAgent { agent: "192.0.2.1:1161".to_owned(), access };
    assert_eq!(plan.hops[0].source, CounterSource::Snmp(agent));
    assert_eq!(plan.hops[1].source, CounterSource::Namespace { name: "pid:1234".to_owned() });
    assert!(plan.hops[1].under_test && !plan.hops[0].under_test);
    let tests = &plan.tests;
    let throughput = tests.throughput.as_ref().expect("measured");
    assert_eq!((throughput.goals[1].name.as_str(), throughput.goals[1].duration_sum_ms), ("half", 10_000));
    assert_eq!((throughput.confirm, throughput.max_search_ms), (3, 90_000));
    assert_eq!(tests.latency.as_ref().map(|test| (test.duration_ms, test.repetitions)), Some((1_500, 5)));
    assert_eq!(tests.loss.as_ref().map(|test| test.step), Some(0.05));
    assert_eq!(tests.back_to_back.as_ref().map(|test| (test.most_frames, test.repetitions)), Some((1_000, 5)));
    assert_eq!(tests.reset.as_ref().map(|test| (test.command.len(), test.within_ms)), Some((2, 120_000)));
    assert!(tests.frmol.is_some());
    let ab = file.ab.as_ref().expect("two configurations");
    assert_eq!((ab.runs, ab.settle_ms, ab.a.steps.len()), (4, 2_000, 0));
    let fault = SwitchStep::Fault { id: "filter-drop".to_owned(), value: "1000".to_owned() };
    assert_eq!(ab.b.steps[1], fault);
    assert_eq!(ab.b.undo, [["nft", "flush", "ruleset"]]);
    assert_eq!(&ab.plan, plan);
}

#[test]
fn only_tests_that_have_a_table_are_made() {
    let tests = good("", "[throughput]").plan.tests;
    assert!(tests.throughput.is_some() && tests.latency.is_none() && tests.loss.is_none());
    let worst = good("", "[worst-case]").plan.tests;
    assert!(worst.frmol.is_some() && worst.throughput.is_none());
}

#[test]
fn ipv6_has_its_own_smallest_frame() {
    let six = |text: &str| text.replace("198.18.0.", "2001:2::").replace("198.19.0.", "2001:2:0:1::");
    let plan = parse(&six(&file("", "[[traffic]]\nsizes = \"rfc2544\"\nmix = \"genome:aag\""))).expect("a plan").plan;
    assert_eq!(plan.traffic[0].family, Family::Ipv6);
    assert_eq!((plan.traffic[0].sizes[0], plan.traffic[0].mix.clone()), (82, vec![82, 82, 1518]));
    let problems = bad(&six(&file("", "[[traffic]]\nsizes = [64, 128, 70]")));
    let keys: Vec<&str> = problems.problems.iter().map(|problem| problem.key.as_str()).collect();
    assert_eq!(keys, ["traffic[0].sizes[0]", "traffic[0].sizes[2]"]);
    let says = &problems.problems[0].says;
    assert_eq!(says, "it is 64, but the minimum for IPv6, UDP with signature is 82 bytes with FCS");
}

#[test]
fn every_problem_is_told_at_once_with_its_place() {
    let text = r#"nmae = "x"
link = "fast"
max-load = "5G"
[generator]
device = "a device with a name that is too long"
address = "10.0.0.1"
gateway = "198.18.0.1"
[receiver]
device = "rcv0"
address = "198.19.0.2"
[[traffic]]
sizes = [20, 10000]
flows = 0
colour = "blue"
[latency]
repetitions = "many"
[loss]
step = 0.2
"#;
    insta_like(
        &bad(text).to_string(),
        r#"line 1, column 1: name: it is missing: name of the DUT and its configuration, for the report
line 1, column 1: nmae: unknown key; did you mean `name`?
line 2, column 8: link: it is `fast`, but must be a rate in bit/s like "10G", from 1M to 1T
line 3, column 12: max-load: it is `5G`, but must be frames per second like "2Mpps", from 1pps to 1Gpps
line 5, column 10: generator.device: it is `a device with a name that is too long`, but must be the name of a device, 1 to 15 bytes without spaces, slashes and colons
line 6, column 11: generator.address: it is `10.0.0.1`, but must be of the benchmarking ranges 198.18.0.0/15 and 2001:2::/48, or allow-any-address = true at the top of the file
line 8, column 1: receiver.gateway: it is missing: address of the DUT on this side
line 12, column 10: traffic[0].sizes[0]: it is 20, but the minimum for IPv4, UDP with signature is 64 bytes with FCS
line 12, column 14: traffic[0].sizes[1]: it is 10000, but must be a whole number from 64 to 9216
line 13, column 9: traffic[0].flows: it is 0, but must be a whole number from 1 to 63536
line 14, column 1: traffic[0].colour: unknown key; known keys: family, transport, sizes, mix, flows, networks, walk, seed, bidirectional, routes, rules, neighbours, modifiers
line 15, column 1: latency: latency needs the throughput; add [throughput]
line 16, column 15: latency.repetitions: it is `many`, but must be a whole number from 1 to 1000
line 18, column 8: loss.step: it is 0.2, but must be from 0.001 to 0.1: RFC 2544, section 26.3 allows no steps above a tenth"#,
    );
}

/// Line by line, so that a difference is seen.
fn insta_like(is: &str, must: &str) {
    let (is, must): (Vec<&str>, Vec<&str>) = (is.lines().collect(), must.lines().collect());
    for (nth, line) in must.iter().enumerate() {
        assert_eq!(is.get(nth), Some(line), "line {nth} of\n{}", is.join("\n"));
    }
    assert_eq!(is.len(), must.len(), "{}", is.join("\n"));
}

#[test]
fn a_value_that_is_no_toml_does_not_hide_the_rest() {
    let problems = bad(&file("max-load = 2Mpps", "[[traffic]]\nflows = 0"));
    let told: Vec<(usize, &str)> = problems.problems.iter().map(|one| (one.line, one.key.as_str())).collect();
    assert!(told.contains(&(3, "")) && told.contains(&(13, "traffic[0].flows")), "{problems}");
    assert!(problems.problems.iter().all(|one| one.line == 3 || one.line == 13), "{problems}");
    let open = bad(&file("", "[[traffic\nflows = 0"));
    assert!(open.problems.iter().all(|one| one.key.is_empty()), "{open}");
}

#[test]
fn addresses_outside_of_the_ranges_need_to_be_asked_for() {
    let private = |text: String| text.replace("198.18.0.", "10.1.0.").replace("198.19.0.", "10.2.0.");
    assert_eq!(bad(&private(file("", ""))).problems.len(), 4);
    assert!(parse(&private(file("allow-any-address = true", ""))).is_ok());
    let nobody = file("allow-any-address = true", "").replace("198.18.0.2", "224.0.0.1");
    assert!(bad(&nobody).to_string().contains("not loopback"));
}

#[test]
fn ports_are_judged_together() {
    let same = bad(&file("", "").replace("198.19.0.2", "198.18.0.2"));
    assert_eq!(
        same.problems[0].to_string(),
        "line 10, column 11: receiver.address: it is 198.18.0.2, the same as generator.address"
    );
    let mixed = bad(&file("", "").replace("198.19.0.", "2001:2::"));
    assert!(
        mixed.to_string().contains("receiver.address: it is 2001:2::2, but must have the address family"),
        "{mixed}"
    );
    let own = bad(&file("", "").replace("198.18.0.1", "198.18.0.2"));
    assert!(own.to_string().contains("the tester's own address"), "{own}");
    assert_eq!(
        says("", "[[traffic]]\nfamily = \"ipv6\""),
        [
            "traffic[0].family: it is \"ipv6\", but [generator] has no address of this family; add address6 and \
            gateway6",
            "traffic[0].family: it is \"ipv6\", but [receiver] has no address of this family; add address6 and \
            gateway6",
        ]
    );
}

#[test]
fn what_a_traffic_cannot_be() {
    let of = |rest: &str| says("", &format!("[[traffic]]\n{rest}")).join("\n");
    assert!(of("sizes = \"imix\"").contains("mix = \"imix\""));
    assert!(of("sizes = [64, 64]").contains("64 is in the list twice"));
    assert!(of("sizes = []").contains("it has 0 entries, but must have 1 to 64"));
    assert!(of("mix = \"genome:aax\"").contains("letters of a to g"));
    assert!(of("seed = 3").contains("seed needs walk"));
    assert!(of("networks = 257").contains("from 1 to 256"));
    assert!(of("bidirectional = 1").contains("true or false"));
    assert_eq!(says("traffic = 3", "").len(), 1);
}

#[test]
fn what_a_hop_cannot_be() {
    let hop = |name: &str, more: &str, source: &str| {
        format!("[[hop]]\nname = \"{name}\"\ninput = \"a\"\noutput = \"b\"\n{more}\nsource = {{ {source} }}\n")
    };
    let of = |rest: &str| says("", rest).join("\n");
    let fine = "kind = \"namespace\", name = \"r\"";
    assert!(of(&hop("receiver", "", fine)).contains("hop[0].name: it is `receiver`"));
    assert!(of(&(hop("r", "", fine) + &hop("r", "", fine))).contains("hop[1].name: it is `r`, which another hop"));
    let tested = hop("r", "under-test = true", fine) + &hop("s", "under-test = true", fine);
    assert!(of(&tested).contains("hop[1].under-test: a second hop"));
    assert!(of(&hop("r", "", "kind = \"telnet\"")).contains("\"namespace\" or \"narrows\" or \"snmp\""));
    let namespace = |name: &str| hop("r", "", &format!("kind = \"namespace\", name = \"{name}\""));
    for name in ["pid:x", "pid:0", "lab:f1", "lab:/router", "lab:f1/", "lab:f1/a/b", "a/b"] {
        assert!(of(&namespace(name)).contains("pid:1234, lab:NAME/HOST or a path"), "{name}");
    }
    for name in ["pid:1", "lab:f1/router", "blue", "/proc/1/ns/net"] {
        assert_eq!(good("", &namespace(name)).plan.hops.len(), 1, "{name}");
    }
    assert!(
        of(&hop("r", "", "kind = \"namespace\", name = \"r\", agent = \"x\""))
            .contains("hop[0].source.agent: a source of the kind")
    );
    assert!(
        of(&hop("r", "", "kind = \"snmp\", agent = \"192.0.2\", community = \"c\"")).contains("the agent's address")
    );
    assert!(
        of(&hop("r", "", "kind = \"snmp\", agent = \"192.0.2.1\"")).contains("hop[0].source.community: it is missing")
    );
    assert!(
        of(&hop("r", "", "kind = \"snmp\", agent = \"r\", version = \"3\", community = \"c\""))
            .contains("SNMP 3 has no community")
    );
    let secret =
        of(&hop("r", "", "kind = \"snmp\", agent = \"r\", version = \"3\", user = \"u\", password = \"geheim\""));
    assert!(secret.contains("8 to 255 characters") && !secret.contains("geheim"), "{secret}");
}

#[test]
fn what_a_test_cannot_be() {
    let of = |rest: &str| says("", rest).join("\n");
    for test in ["latency", "back-to-back", "recovery"] {
        assert!(of(&format!("[{test}]")).contains("add [throughput]"), "{test}");
    }
    assert!(of("[throughput]\ngoals = [\"best\"]").contains("throughput.goals[0]: it is `best`"));
    assert!(of("[throughput]\ngoals = [\"ndr\", \"ndr\"]").contains("each needs its own"));
    assert!(of("[throughput]\ngoals = [\"rfc2544\"]\nmax-search = \"30s\"").contains("shorter than the final trial"));
    assert!(of("[throughput]\ngoals = [{ loss-ratio = 2 }]").contains("a number from 0 to 0.99"));
    assert!(of("[throughput]\n[latency]\nduration = \"1 week\"").contains("a duration like 10s"));
    assert!(of("[throughput]\n[reset]").contains("reset.command: it is missing"));
    assert!(of("[throughput]\n[reset]\ncommand = \"reboot\"").contains("words of a command"));
    assert!(of("[throughput]\n[reset]\ncommand = [\"\", 3]").contains("reset.command[1]: it is 3"));
    assert!(of("[worst-case]\n[ab]\n[ab.a]\nname = \"x\"\n[ab.b]\nname = \"y\"").contains("the same steps"));
    assert!(of("[ab]\n[ab.a]\nname = \"x\"").contains("ab.b: it is missing"));
}

#[test]
fn a_file_that_is_too_long_or_too_wrong_has_an_end() {
    let long = bad(&"#".repeat(MAX_BYTES + 1));
    assert!(long.to_string().contains("the maximum for a plan"), "{long}");
    let many: String = (0..500).map(|nth| format!("key{nth} = 1\n")).collect();
    let problems = bad(&many);
    assert_eq!(problems.problems.len(), Problems::MOST);
    assert!(problems.to_string().ends_with(&format!("and {} more", problems.left_out)) && problems.left_out > 400);
    let deep = "a = ".to_owned() + &"[".repeat(10_000);
    assert!(!bad(&deep).problems.is_empty());
}

#[test]
fn the_page_of_the_manual_names_every_key_once() {
    let page = reference();
    for section in keys::SECTIONS.iter() {
        for key in &section.keys {
            assert!(page.contains(&format!("| `{}` | ", key.name)), "{}", key.name);
            assert!(!key.what.is_empty() && !key.default.is_empty(), "{}", key.name);
        }
    }
    // Both configurations are one table of the page.
    assert_eq!(page.matches("### ").count(), keys::SECTIONS.len() - 1);
}

/// Fragments of plans, so that what is thrown at the parser gets past its first line.
fn fragment() -> impl Strategy<Value = String> {
    let key = prop_oneof![
        prop::sample::select(
            keys::SECTIONS.iter().flat_map(|section| &section.keys).map(|key| key.name).collect::<Vec<_>>()
        )
        .prop_map(str::to_owned),
        "[a-z-]{1,8}",
    ];
    let value = prop_oneof![
        "-?[0-9]{1,20}",
        "[0-9]{1,3}\\.[0-9]{1,3}",
        "\"[a-z0-9:.=-]{0,12}\"",
        Just("true".to_owned()),
        Just("nan".to_owned()),
        "\\[[0-9, ]{0,20}\\]",
        "\\{ kind = \"[a-z]{1,6}\" \\}",
        "\\PC{0,12}",
    ];
    let table = prop_oneof!["\\[[a-z.-]{1,12}\\]", "\\[\\[(traffic|hop|ab)\\]\\]", Just("[throughput]".to_owned())];
    prop_oneof![3 => (key, value).prop_map(|(key, value)| format!("{key} = {value}")), 1 => table]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn any_file_is_a_plan_or_has_problems_with_places(fragments in prop::collection::vec(fragment(), 0..30), whole in any::<bool>()) {
        let text = fragments.join("\n");
        let text = if whole { file("", &text) } else { text };
        match parse(&text) {
            Ok(file) => {
                prop_assert!(!file.plan.rows().is_empty());
                prop_assert!(file.plan.traffic.iter().all(|traffic: &Traffic| traffic.sizes.iter().all(|size| *size >= traffic.min_bytes())));
            }
            Err(problems) => {
                prop_assert!(!problems.problems.is_empty() && problems.problems.len() <= Problems::MOST);
                let lines = text.split('\n').count();
                prop_assert!(problems.problems.iter().all(|one| (1..=lines).contains(&one.line) && one.column >= 1), "{}", problems);
            }
        }
    }

    #[test]
    fn any_words_are_read(text in "\\PC{0,400}") {
        prop_assert!(parse(&text).is_err(), "no plan comes from noise");
    }

    #[test]
    fn a_plan_with_one_broken_byte_says_where_or_is_another_plan(at in 0_usize..250, byte in any::<char>()) {
        let mut text: Vec<char> = file("", "[throughput]\n").chars().collect();
        let at = at % text.len();
        text[at] = byte;
        let text: String = text.into_iter().collect();
        if let Err(problems) = parse(&text) {
            prop_assert!(!problems.to_string().is_empty());
        }
    }
}
