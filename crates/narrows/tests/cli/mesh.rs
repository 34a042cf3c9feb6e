//! `narrows mesh` with a stand-in for ssh: the other shell is one of this host.

use crate::world::{Ended, World, on_loopback, word};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// What ssh is asked for ends in a host (`-G`) or in a script for its shell.
const SSH: &str = "#!/bin/sh\nfor last; do :; done\ncase \" $* \" in\n*' -G '*) echo \"hostname $last\" ;;\n\
    *192.0.2.9*) echo 'no route to host' >&2; exit 255 ;;\n*) exec sh -c \"$last\" ;;\nesac\n";

/// The command, with addresses for its hosts and the stand-in of this host.
fn mesh(world: &World, words: &[&str]) -> Command {
    for nth in 1..=3 {
        let added = Command::new("ip").args(["addr", "add", &format!("192.0.2.{nth}/32"), "dev", "lo"]).output();
        added.expect("iproute2");
    }
    through(world, SSH, words)
}

/// The command with this stand-in for ssh before all other programs.
fn through(world: &World, ssh: &str, words: &[&str]) -> Command {
    let ssh = world.file("ssh", ssh);
    std::fs::set_permissions(&ssh, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("its mode");
    let folder = Path::new(&ssh).parent().expect("a folder").display().to_string();
    let mut command = world.command(&[&["mesh"], words].concat());
    command.env("PATH", format!("{folder}:{}", std::env::var("PATH").unwrap_or_default()));
    command
}

#[test]
fn all_pairs_are_loaded_in_both_directions_and_a_host_that_is_away_is_named() {
    on_loopback(|world| {
        let own = format!("{} ", env!("CARGO_BIN_EXE_narrows"));
        let hosts = ["ssh://192.0.2.1", "ssh://192.0.2.2", "ssh://192.0.2.3", "ssh://192.0.2.9"];
        let said = World::run_command(mesh(
            world,
            &[
                &hosts[..],
                &["-t", "300ms", "--probe", "1s", "--no-diagnose", "--format", "json", "--remote-command", own.trim()],
            ]
            .concat(),
        ));
        assert!(matches!(said.code, Some(0 | 3)), "{said:?}");
        let report = said.json();
        let loads = report["loads"].as_array().expect("loads");
        let measured = loads.iter().filter(|load| load["state"]["measured"]["goodput_bps"].as_f64() > Some(1e6));
        assert_eq!((loads.len(), measured.count()), (6, 6), "{said:?}");
        assert_eq!(report["members"][3]["absent"], "no route to host");
        // One end of each pair sends probes, and each traces the way.
        let paths = report["paths"].as_array().expect("paths");
        let rtts = paths.iter().filter(|path| path["rtt_us"][1].as_f64() > Some(0.0) && path["packets"][0] == 50);
        assert_eq!((paths.len(), rtts.count()), (6, 3), "{paths:#?}");
        let direct = |path: &serde_json::Value| path["mtu_bytes"] == 65_535 && path["hops"] == serde_json::json!([]);
        assert!(paths.iter().all(direct), "{paths:#?}");
        let listed = world.run(&["history"]);
        assert!(listed.out.contains("mesh") && listed.out.contains("4 hosts"), "{listed:?}");
    });
}

#[test]
fn a_host_without_narrows_gets_the_program_and_keeps_nothing() {
    on_loopback(|world| {
        let kept = || {
            std::fs::read_dir("/dev/shm").map_or(0, |all| {
                let names = all.filter_map(|it| Some(it.ok()?.file_name().to_string_lossy().into_owned()));
                names.filter(|name| name.starts_with("narrows.")).count()
            })
        };
        let before = kept();
        let said = World::run_command(mesh(
            world,
            &["ssh://192.0.2.1", "ssh://192.0.2.2", "-t", "300ms", "--probe", "0", "--no-diagnose", "--no-save"],
        ));
        // A sentence about a busy host may break the line within it.
        let words = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("2 of 2 loads measured"), "{said:?}");
        assert_eq!(kept(), before, "no file is left");
        // Nor where the conductor is killed in the middle.
        let mut killed = mesh(world, &["ssh://192.0.2.1", "ssh://192.0.2.2", "-t", "20s", "--probe", "0", "--no-save"])
            .spawn()
            .expect("it");
        std::thread::sleep(Duration::from_secs(4));
        killed.kill().expect("its end");
        killed.wait().expect("its end");
        std::thread::sleep(Duration::from_secs(1));
        assert_eq!((kept(), members()), (before, 0));
    });
}

#[test]
fn a_mesh_that_ended_early_is_resumed_and_compared() {
    on_loopback(|world| {
        let own = format!("{} ", env!("CARGO_BIN_EXE_narrows"));
        let words = ["ssh://192.0.2.1", "ssh://192.0.2.2", "ssh://192.0.2.3", "-t", "300ms", "--probe", "0"];
        let words = [&words[..], &["--no-diagnose", "--format", "json", "--remote-command", own.trim()]].concat();
        let of = |more: &[&str]| {
            let report = World::run_command(mesh(world, &[&words[..], more].concat())).json();
            let loads = report["loads"].as_array().expect("loads").clone();
            loads.into_iter().filter(|load| load["state"]["measured"].is_object()).collect::<Vec<_>>()
        };
        let newest = || {
            let listed = world.run(&["history", "--format", "json"]).json();
            listed["runs"][0]["id"].as_str().expect("an id").to_owned()
        };
        let first = of(&["--budget-bytes", "1"]);
        assert!((1..6).contains(&first.len()), "a round: {first:#?}");
        let before = newest();
        let all = of(&["--resume", &before]);
        // On a busy machine one of them may be slow beside the others, and was made once more by itself.
        let is_kept = |load: &&serde_json::Value| {
            let is_first = |it: &&serde_json::Value| {
                let same = ["from", "to"].iter().all(|key| it[key] == load[key]);
                same && load["beside_others_bps"] == it["state"]["measured"]["goodput_bps"]
            };
            first.contains(load) || first.iter().any(|it| is_first(&it))
        };
        assert_eq!((all.len(), all.iter().filter(is_kept).count()), (6, first.len()), "{all:#?}");
        let differs = world.run(&["report", &before, "--diff", &newest()]);
        assert_eq!((differs.code, differs.out.as_str()), (Some(0), "nothing changed\n"), "{differs:?}");
        let trend = world.run(&["history", "trend", "--figure", "goodput median"]);
        assert!(trend.code == Some(0) && trend.out.contains("goodput median"), "{trend:?}");
        let said = World::run_command(mesh(world, &["ssh://192.0.2.1", "ssh://192.0.2.2", "--resume", &before]));
        assert!(said.code == Some(2) && said.err.contains("another duration"), "{said:?}");
    });
}

#[test]
fn a_host_with_another_cpu_is_told_apart() {
    on_loopback(|world| {
        let uname = world.file("uname", "#!/bin/sh\necho riscv64\n");
        std::fs::set_permissions(&uname, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("its mode");
        let hosts = ["ssh://192.0.2.1", "ssh://192.0.2.2", "--no-save", "--probe", "0"];
        let said = World::run_command(mesh(world, &hosts));
        assert!(said.out.contains("its CPU is riscv64") && said.out.contains("--program"), "{said:?}");
        let said = World::run_command(mesh(world, &[&hosts[..], &["--program", &uname]].concat()));
        assert!(said.code == Some(2) && said.err.contains("no Linux program for x86_64 or aarch64"), "{said:?}");
    });
}

#[test]
fn hosts_that_serve_are_loaded_with_a_pass_and_connect_to_nobody() {
    on_loopback(|world| {
        let (_server, port, _) = world.serve(&["--audit-log", &word(&world.path("audit"))]);
        let serves = [2, 3].map(|nth| format!("192.0.2.{nth}:{port}"));
        let command = |words: &[&str]| mesh(world, &[words, &["-t", "300ms", "--no-diagnose", "--no-save"]].concat());
        let said = World::run_command(command(&["ssh://192.0.2.1", &serves[0], &serves[1]]));
        assert!(said.code == Some(2) && said.err.contains(&format!("run `narrows trust {}`", serves[0])), "{said:?}");
        for one in &serves {
            assert_eq!(world.run(&["trust", one, "--token-file", &world.token_file()]).code, Some(0));
        }
        let own = format!("{} ", env!("CARGO_BIN_EXE_narrows"));
        let said = World::run_command(command(&[&serves[0], &serves[1]]));
        assert!(said.code == Some(2) && said.err.contains("hosts that only serve"), "{said:?}");
        // Why the only host that could load them takes no part is said.
        let said = World::run_command(command(&["ssh://192.0.2.9", &serves[0]]));
        assert!(said.code == Some(1) && said.out.contains("no route to host"), "{said:?}");
        let words = ["ssh://192.0.2.1", &serves[0], &serves[1], "--probe", "1s", "--format", "json"];
        let report = World::run_command(command(&[&words[..], &["--remote-command", own.trim()]].concat())).json();
        let loads = report["loads"].as_array().expect("loads");
        let [measured, unreachable] = ["measured", "unreachable"].map(|state| {
            let of = loads.iter().filter(|load| load["state"].get(state).is_some());
            of.map(|load| (load["from"].as_u64(), load["to"].as_u64())).collect::<Vec<_>>()
        });
        assert_eq!((measured.len(), unreachable.len()), (4, 0), "{loads:#?}");
        assert!(measured.iter().all(|(from, to)| [*from, *to].contains(&Some(0))), "{measured:?}");
        assert!(report["members"].as_array().expect("members").iter().all(|member| member["absent"].is_null()));
        // What others did there, they did with passes, which are over.
        let audit = std::fs::read_to_string(world.path("audit")).expect("an audit log");
        let of = |who: &str| audit.lines().filter(|line| line.contains(&format!("\"who\":\"{who}\""))).count();
        assert_eq!(audit.matches("\"event\":\"pass\"").count(), 3, "{audit}");
        assert!(of("(pass)") >= 8 && of("default") >= 4, "{audit}");
    });
}

/// A process that holds a network namespace, and ends with this.
struct Net(Ended);

impl Net {
    fn new() -> Self {
        let held = Ended(Command::new("unshare").args(["-n", "sleep", "60"]).spawn().expect("util-linux"));
        let own = std::fs::read_link("/proc/thread-self/ns/net").expect("a namespace");
        let of = || std::fs::read_link(format!("/proc/{}/ns/net", held.0.id()));
        while of().is_ok_and(|it| it == own) {
            std::thread::sleep(Duration::from_millis(5));
        }
        Self(held)
    }

    fn id(&self) -> u32 {
        self.0.0.id()
    }

    fn run(&self, words: &str) {
        let id = self.id().to_string();
        let done = Command::new("nsenter").args(["-t", &id, "-n", "sh", "-ec", words]).output().expect("util-linux");
        assert!(done.status.success(), "{words}: {}", String::from_utf8_lossy(&done.stderr));
    }
}

#[test]
fn a_host_behind_translation_is_loaded_in_both_directions() {
    on_loopback(|world| {
        if Command::new("nft").arg("--version").output().is_err() {
            eprintln!("nft is not installed: not tested");
            return;
        }
        let [plain, gate, inner] = [Net::new(), Net::new(), Net::new()];
        let sh = |words: &str| {
            let done = Command::new("sh").args(["-ec", words]).output().expect("a shell");
            assert!(done.status.success(), "{words}: {}", String::from_utf8_lossy(&done.stderr));
        };
        let [p, g, i] = [&plain, &gate, &inner].map(Net::id);
        sh(&format!(
            "ip link add p0 type veth peer name e0 netns {p}; ip link add g0 type veth peer name e0 netns {g}; \
             ip addr add 198.18.1.1/24 dev p0; ip addr add 198.18.2.1/24 dev g0; ip link set p0 up; ip link set g0 up; \
             sysctl -qw net.ipv4.ip_forward=1"
        ));
        plain.run("ip addr add 198.18.1.2/24 dev e0; ip link set e0 up; ip route add default via 198.18.1.1");
        gate.run(&format!(
            "ip addr add 198.18.2.2/24 dev e0; ip link set e0 up; ip route add default via 198.18.2.1; \
             ip link add i0 type veth peer name e0 netns {i}; ip addr add 192.168.7.1/24 dev i0; ip link set i0 up; \
             sysctl -qw net.ipv4.ip_forward=1; nft add table ip n; \
             nft 'add chain ip n p {{ type nat hook postrouting priority 100; }}'; nft add rule ip n p oifname e0 masquerade"
        ));
        inner.run("ip addr add 192.168.7.2/24 dev e0; ip link set e0 up; ip route add default via 192.168.7.1");
        let ssh = format!(
            "#!/bin/sh\nfor last; do :; done\ncase \" $* \" in\n*' -G '*) echo \"hostname $last\" ;;\n\
             *198.18.1.2*) exec nsenter -t {p} -n sh -c \"$last\" ;;\n*) exec nsenter -t {i} -n sh -c \"$last\" ;;\nesac\n"
        );
        let own = env!("CARGO_BIN_EXE_narrows");
        let words = ["ssh://198.18.1.2", "ssh://198.18.2.2", "-t", "300ms", "--probe", "300ms", "--no-diagnose"];
        let more = ["--format", "json", "--no-save", "--remote-command", own];
        let said = World::run_command(through(world, &ssh, &[&words[..], &more].concat()));
        let report = said.json();
        let loads = report["loads"].as_array().expect("loads");
        let opened: Vec<_> = loads
            .iter()
            .filter(|load| load["state"]["measured"]["goodput_bps"].as_f64() > Some(1e6))
            .map(|load| (load["from"].as_u64(), load["opened_by_receiver"].as_bool()))
            .collect();
        assert!(opened.contains(&(Some(0), Some(true))) && opened.contains(&(Some(1), Some(false))), "{said:?}");
        // Probes from within are answered: the member knows the translated address.
        let probed = report["paths"].as_array().expect("paths").iter().find(|path| path["from"] == 1).expect("a path");
        assert!(probed["packets"][0] == 15 && probed["packets"][1] == 0, "{probed:#?}");
    });
}

/// A member that says what it likes.
const HOSTILE: &str = r#"#!/bin/sh
e='\u001b[31m<script>alert(1)</script>'
n=$(cat /proc/sys/kernel/random/uuid)
echo "Welcome $e"
echo '{"hello":{"version":"'$1'","port":9,"token":"'$2'","stamp":9,"process":1,"boot":""}}'
while read -r line; do case "$line" in
*'"beat"'*) ;;
*'"inventory"'*) echo '{"inventory":{"host":"'$e'","taken_unix_us":0,"facts":[{"key":"tcp.'$e'","value":"'$n'","unit":"text","source":"'$e'"}],"absent":[],"collectors":[]}}' ;;
*'"reach"'*) echo '{"reached":[null,null,null,null,null,null]}' ;;
*'"seal"'*) echo '"sealed"' ;;
*'"probe"'*) echo '{"probed":[{"rtt_us":[-5,1e308,-1],"packets":[18446744073709551615,0,0],"mtu_bytes":1,"hops":["'$e'"],"remarks":["'$e'"]}]}' ;;
*192.0.2.1:*) echo '{"loaded":{"goodput_bps":1e300,"retransmits":null,"busy":[null,1e300]}}' ;;
*192.0.2.2:*) echo '{"loaded":{"goodput_bps":-3,"retransmits":18446744073709551615,"busy":[null,null]}}' ;;
*'"load"'*) echo '{"loaded":{"goodput_bps":1e6,"retransmits":1,"busy":[-1e300,null]}}' ;;
*) echo '{"failed":"'$e'"}' ;;
esac; done
"#;

#[test]
fn a_hostile_member_harms_neither_the_client_nor_the_report() {
    on_loopback(|world| {
        let member = world.file("hostile", HOSTILE);
        let token = format!("narrows1.{}.{}", "A".repeat(43), "A".repeat(32));
        let command = format!("sh {member} {} {token}", env!("CARGO_PKG_VERSION"));
        let hosts = ["ssh://192.0.2.1", "ssh://192.0.2.2", "ssh://192.0.2.3"];
        let more = ["-t", "300ms", "--probe", "100ms", "--no-save", "--remote-command", &command];
        for format in ["text", "html", "markdown", "csv", "json"] {
            let said = World::run_command(mesh(world, &[&hosts[..], &more, &["--format", format]].concat()));
            assert_eq!(said.code, Some(3), "{said:?}");
            let all = format!("{}{}", said.out, said.err);
            assert!(!all.contains('\u{1b}') && (format != "html" || !all.contains("<script>alert")), "{said:?}");
            assert!(format != "text" || said.out.contains("2 of 6 loads measured"), "{said:?}");
            assert!(format != "csv" || said.out.lines().count() == 7, "{said:?}");
        }
    });
}

#[test]
fn ctrl_c_keeps_what_was_measured() {
    on_loopback(|world| {
        let own = env!("CARGO_BIN_EXE_narrows");
        let words = [
            "ssh://192.0.2.1", "ssh://192.0.2.2", "ssh://192.0.2.3", "-t", "3s", "--probe", "0", "--remote-command",
            own,
        ];
        let mut cut = mesh(world, &words).spawn().expect("it");
        let mut said = std::io::BufReader::new(cut.stderr.take().expect("its words"));
        let mut line = String::new();
        // The first round is over.
        while !line.starts_with("round 2") {
            line.clear();
            assert!(std::io::BufRead::read_line(&mut said, &mut line).expect("its words") > 0, "it ended before");
        }
        narrows_sys::process::signal(cut.id(), 2).expect("it is there");
        let mut out = String::new();
        std::io::Read::read_to_string(&mut cut.stdout.take().expect("its report"), &mut out).expect("its report");
        assert_eq!(cut.wait().expect("its end").code(), Some(130), "{out}");
        assert!(out.contains("1 of 6 loads measured") && out.contains("interrupted"), "{out}");
    });
}

/// Members in this network namespace.
fn members() -> usize {
    let own = std::fs::read_link("/proc/thread-self/ns/net").expect("a namespace");
    let all = std::fs::read_dir("/proc").expect("processes").filter_map(Result::ok);
    let is_member = |process: &std::fs::DirEntry| {
        let words = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        let here = std::fs::read_link(process.path().join("ns/net")).is_ok_and(|it| it == own);
        here && words.split(|byte| *byte == 0).any(|word| word == b"mesh-member")
    };
    all.filter(is_member).count()
}

#[test]
fn what_cannot_be_a_mesh_is_refused_with_the_reason() {
    let world = crate::world::alone();
    for (words, why) in [
        (&["mesh"][..], "cannot make a mesh of 0 hosts"),
        (&["mesh", "ssh://a"], "cannot make a mesh of 1 host:"),
        (&["mesh", "ssh://a", "ssh://a"], "ssh://a is named twice"),
        (&["mesh", "a", "b"], "cannot use a: no token of its narrows serve is stored"),
        (&["mesh", "ssh://-x", "ssh://b"], "write ssh://user@host"),
        (&["mesh", "ssh://a", "ssh://b", "-t", "1ms"], "--duration is from 200ms to 1h"),
        (&["mesh", "--hosts", "nosuch"], "cannot read the hosts"),
    ] {
        let said = world.run(words);
        assert!(said.code == Some(2) && said.err.contains(why), "{words:?}: {said:?}");
    }
}

/// Members whose loads of 192.0.2.1 are as fast as its receive buffer lets them be, and a server that changes it.
const BUFFERED: &str = r#"#!/bin/sh
[ "$5" = serve ] && { n=$4; shift 4; exec "$n" "$@"; }
echo '{"hello":{"version":"'$1'","port":9,"token":"'$2'","stamp":9,"process":1,"boot":"'$(cat /proc/sys/kernel/random/boot_id)'"}}'
while read -r line; do r=$(od -An -N1 -tu1 /dev/urandom); case "$line" in
*'"beat"'*) ;;
*'"inventory"'*) echo '{"inventory":{"host":"h","taken_unix_us":0,"facts":[],"absent":[],"collectors":[]}}' ;;
*'"reach"'*) echo '{"reached":[null,null]}' ;;
*'"seal"'*) echo '"sealed"' ;;
*'"diagnose"'*) cat "$3" ;;
*192.0.2.1:*) [ "$(cut -f3 /proc/sys/net/ipv4/tcp_rmem)" = 16777216 ] && m=900 || m=100
    echo '{"loaded":{"goodput_bps":'$((m * 1000000 + r * 1000))',"retransmits":0,"busy":[0.1,0.1]}}' ;;
*) echo '{"loaded":{"goodput_bps":'$((900000000 + r * 1000))',"retransmits":0,"busy":[0.1,0.1]}}' ;;
esac; done
"#;

#[test]
fn the_fix_of_a_suspect_is_tried_and_rolled_back() {
    on_loopback(|world| {
        let buffer = || std::fs::read_to_string("/proc/sys/net/ipv4/tcp_rmem").expect("a kernel parameter");
        let before = buffer();
        let demo = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/runs/demo.run.json");
        let run: serde_json::Value = serde_json::from_slice(&std::fs::read(demo).expect("a run")).expect("JSON");
        let run = world.file("run", &format!("{}\n", serde_json::json!({ "diagnosed": run })));
        let member = world.file("member", BUFFERED);
        let token = format!("narrows1.{}.{}", "A".repeat(43), "A".repeat(32));
        let version = env!("CARGO_PKG_VERSION");
        let command = format!("sh {member} {version} {token} {run} {}", env!("CARGO_BIN_EXE_narrows"));
        let hosts = ["ssh://192.0.2.1", "ssh://192.0.2.2", "ssh://192.0.2.3"];
        let more = ["-t", "300ms", "--probe", "0", "--no-save", "--try", "--format", "json"];
        let words = [&hosts[..], &more, &["--remote-command", &command]].concat();
        let report = World::run_command(mesh(world, &words)).json();
        let tried = &report["diagnoses"][0]["tried"];
        let set = "192.0.2.1: sysctl -w net.ipv4.tcp_rmem='4096 65536 16777216'";
        assert_eq!(tried["settings"][0], set, "{report:#}");
        let gain = tried["proof"]["gain"].as_f64().expect("a gain");
        assert!((8.0..9.1).contains(&gain) && tried["proof"]["helped"] == true, "{tried:#}");
        assert!(tried["failed"].is_null() && buffer() == before, "{tried:#}");
    });
}
