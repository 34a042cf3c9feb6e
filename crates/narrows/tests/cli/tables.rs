//! Tables of the lab's router as a factor of a forwarding benchmark: filled, checked, emptied; also after Ctrl-C and SIGKILL.

use crate::lab::Lab;
use crate::world::{Running, World, alone};
use narrows_forwarding::data::modifiers::TableSeen;
use narrows_forwarding::data::report::{ForwardingReport, ModifierView};
use narrows_sys::process;

fn plan(lab: &Lab<'_>, world: &World, traffic: &str, more: &str) -> String {
    let text = format!(
        r#"name = "the lab's router"
link = "10G"
max-load = "5kpps"
residue = "200ms"
rest = "10ms"
learning-frames = 0
[generator]
device = "gen0"
address = "198.18.0.2"
gateway = "198.18.0.1"
address6 = "2001:2:0:100::2"
gateway6 = "2001:2:0:100::1"
[receiver]
device = "rcv0"
address = "198.19.0.2"
gateway = "198.19.0.1"
address6 = "2001:2:0:200::2"
gateway6 = "2001:2:0:200::1"
{traffic}
[[hop]]
name = "router"
under-test = true
input = "in0"
output = "out0"
source = {{ kind = "namespace", name = "lab:{}/router" }}
[worst-case]
duration = "500ms"
repetitions = 1
{more}"#,
        lab.name()
    );
    world.file("plan.toml", &text)
}

/// The tables of the router, as its kernel shows them; the order of routes does not matter.
fn tables(lab: &Lab<'_>) -> Vec<String> {
    let said = lab.run("exec", &["router", "cat", "/proc/net/route", "/proc/net/ipv6_route", "/proc/net/arp"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    // A neighbour that was asked for in vain is forgotten by the kernel.
    let lines = said.out.lines().filter(|line| !line.contains("00:00:00:00:00:00"));
    let mut lines: Vec<String> = lines.map(str::to_owned).collect();
    // Of IPv6 routes the use counts vary.
    lines.iter_mut().filter(|line| line.len() > 140 && !line.contains('\t')).for_each(|line| line.truncate(100));
    lines.sort();
    lines
}

/// Checks that the tables are as they were.
fn unchanged(lab: &Lab<'_>, before: &[String]) {
    let now = tables(lab);
    let only = |these: &[String], those: &[String]| -> Vec<String> {
        these.iter().filter(|line| !those.contains(line)).take(5).cloned().collect()
    };
    assert_eq!((only(&now, before), only(before, &now)), (Vec::new(), Vec::new()), "added, and gone");
}

/// A benchmark on the tester, and its process.
fn start(world: &World, lab: &Lab<'_>, plan: &str) -> (Running, u32) {
    let program = env!("CARGO_BIN_EXE_narrows");
    let script = format!("echo $$ >&2; exec {program} rfc2544 {plan} --format json");
    let mut running = world.start(&["lab", "exec", lab.name(), "tester", "sh", "-c", &script]);
    let pid = running.line_of_errors().trim().parse().expect("a process");
    (running, pid)
}

#[test]
fn frames_pass_each_table_and_the_router_is_as_before() {
    let world = alone();
    let lab = Lab::up_as(&world, "tables", &["--topology", "dut"]);
    let before = tables(&lab);
    let traffic = "[[traffic]]\nsizes = [64]\nroutes = [300, 5000]\nrules = [50]\nneighbours = [200]\n\
                   [[traffic]]\nfamily = \"ipv6\"\nsizes = [82]\nroutes = [300]\nrules = [50]\nneighbours = [200]\n";
    let said = start(&world, &lab, &plan(&lab, &world, traffic, "")).0.end().with_code(0);
    let report: ForwardingReport = serde_json::from_str(&said.out).expect("a report");
    let mut seen = 0;
    for traffic in &report.traffic {
        let modified = traffic.sizes[0].modified.as_ref();
        assert_eq!(modified.is_some(), traffic.traffic.table().is_some());
        let Some(modified) = modified else { continue };
        let Some(ModifierView::Table(TableSeen { sent, arrived, control_sent, control_arrived, .. })) = modified.seen
        else {
            panic!("{traffic:?}")
        };
        assert!((sent, arrived, control_arrived) == (10_000, 10_000, 0) && control_sent > 0, "{modified:?}");
        assert!(modified.ratio.is_some_and(|ratio| ratio > 0.0), "{modified:?}");
        seen += 1;
    }
    assert_eq!(seen, 7);
    unchanged(&lab, &before);
}

#[test]
fn a_benchmark_that_is_interrupted_empties_the_table_and_one_that_was_killed_is_made_good() {
    let world = alone();
    let lab = Lab::up_as(&world, "killed", &["--topology", "dut"]);
    let before = tables(&lab);
    let traffic = "[[traffic]]\nsizes = [64]\nroutes = [3000]\nneighbours = [40]\n";
    // Long enough for a signal after the table is filled.
    let long = plan(&lab, &world, traffic, "");
    let text = std::fs::read_to_string(&long).expect("a plan").replace("duration = \"500ms\"", "duration = \"3s\"");
    let long = world.file("long.toml", &text);
    let begin = |awaited: &str| {
        let (mut running, pid) = start(&world, &lab, &long);
        running.await_error(awaited);
        (running, pid)
    };
    let (running, pid) = begin("  3,000 routes added");
    assert!(tables(&lab).len() > before.len() + 2_900);
    process::signal(pid, 2).expect("it lives");
    running.end().with_code(1);
    unchanged(&lab, &before);

    let (running, pid) = begin("  3,000 routes added");
    process::signal(pid, 9).expect("it lives");
    running.end();
    assert!(tables(&lab).len() > before.len() + 2_900);
    // Of another network: it stays.
    let elsewhere = world.run(&["tune", "undo", "all"]);
    assert!(elsewhere.code == Some(1) && tables(&lab).len() > before.len(), "{elsewhere:?}");
    let undone = lab.run("exec", &["router", env!("CARGO_BIN_EXE_narrows"), "tune", "undo", "all"]);
    assert!(undone.code == Some(0) && undone.out.contains("3,000 routes"), "{undone:?}");
    unchanged(&lab, &before);

    // The next benchmark does it, too.
    let (running, pid) = begin("  3,000 routes added");
    process::signal(pid, 9).expect("it lives");
    running.end();
    let (mut running, pid) = start(&world, &lab, &long);
    running
        .await_error("  left by a benchmark that was killed: add 3,000 routes through out0 to 198.19.0.2: rolled back");
    running.await_error("  3,000 routes added");
    process::signal(pid, 2).expect("it lives");
    running.end();
    unchanged(&lab, &before);
}

#[test]
fn a_table_that_cannot_be_filled_is_named() {
    let world = alone();
    let lab = Lab::up_as(&world, "commands", &["--topology", "dut"]);
    let traffic = "[[traffic]]\nsizes = [64]\nroutes = [300]\n";
    let [asked, removed] = ["asked", "removed"].map(|name| world.path(name).display().to_string());
    // What runs where the routes should be added only counts them: no frame arrives.
    let commands = |install: &str| {
        let install = install.replace("ASKED", &asked);
        format!(
            "[tables]\ninstall = [\"sh\", \"-c\", \"{install}\", \"{{file}}\", \"{{entries}}\", \"{{gateway}}\"]\n\
             remove = [\"touch\", \"{removed}\"]\nwithin = \"1s\"\n"
        )
    };
    let run = |install: &str| start(&world, &lab, &plan(&lab, &world, traffic, &commands(install))).0.end();
    let said = run("(wc -l < $0; echo $1 $2) > ASKED").with_code(1);
    assert!(said.out.contains("with 300 routes: only 0 of 10000 frames to them arrived after 1 s"), "{said:?}");
    assert_eq!(std::fs::read_to_string(&asked).expect("a file"), "300\n300 198.19.0.2\n");
    std::fs::remove_file(&removed).expect("it was run");
    let said = run("echo no such device >&2; exit 3");
    assert!(said.out.contains("`sh` ended with exit status: 3: no such device"), "{said:?}");
    assert!(std::fs::exists(&removed).expect("a directory"), "also what worked in part is removed");

    // A default route forwards frames to addresses without an entry.
    let more = ["ip", "route", "add", "default", "via", "198.19.0.2", "dev", "out0", "onlink"];
    if lab.run("exec", &[&["router"], &more[..]].concat()).code == Some(0) {
        let said = start(&world, &lab, &plan(&lab, &world, traffic, "")).0.end();
        let why = "100 of 100 control frames to an address that has no route arrived; remove the default route";
        assert!(said.code == Some(1) && said.out.contains(why), "{said:?}");
    }
}
