//! A lab in a process of its own: started, queried, entered, ended, killed. Needs root, and fails without.
//!
//! This program is its own holder, as `narrows` is: it runs itself with one test selected and a variable set.

use narrows_lab::{Error, LabSpec, Labs, Launcher, Registry, Topology};
use narrows_model::lab::Impairment;
use narrows_model::{Direction, Place};
use narrows_sys::network_id::NetworkId;
use narrows_sys::{clock, files, process};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

const HOLD: &str = "NARROWS_TEST_HOLD";
const EXEC: &str = "NARROWS_TEST_EXEC";
const SIGKILL: i32 = 9;

fn myself(test: &str, variable: &str, value: &str) -> Launcher {
    Launcher {
        program: process::own_program().expect("proc"),
        arguments: [test, "--exact", "--nocapture"].map(str::to_owned).to_vec(),
        environment: vec![(variable.to_owned(), value.to_owned())],
    }
}

fn holder() -> Launcher {
    myself("the_holder", HOLD, "1")
}

/// Not a test by itself: runs as a holder, if requested.
#[test]
fn the_holder() {
    if std::env::var_os(HOLD).is_some() {
        narrows_lab::hold().expect("the lab was held");
    }
}

/// Not a test by itself: runs a command inside a host, if requested.
#[test]
fn the_command() {
    if let Ok(directory) = std::env::var(EXEC) {
        let script = "hostname=$(cat /proc/sys/kernel/hostname); echo \"in $hostname: $(ls /sys/class/net | tr '\\n' ' ')\"; pwd";
        let arguments = ["-c".to_owned(), script.to_owned()];
        let never = Labs::at(Registry::at(directory)).exec("alpha", "server", "/bin/sh", &arguments);
        panic!("{never:?}");
    }
}

struct Shelf {
    directory: tempfile::TempDir,
}

impl Shelf {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().expect("a directory") }
    }

    fn labs(&self) -> Labs {
        Labs::at(Registry::at(self.directory.path()))
    }

    fn files(&self) -> Vec<String> {
        files::list(self.directory.path()).expect("a list")
    }
}

impl Drop for Shelf {
    /// A failing test leaves no lab behind either.
    fn drop(&mut self) {
        for name in self.labs().names() {
            let _ = self.labs().down(&name);
        }
    }
}

fn spec(name: &str) -> LabSpec {
    LabSpec { name: name.to_owned(), up: Impairment { delay_us: 1000, ..Impairment::default() }, ..LabSpec::default() }
}

/// The network namespaces that a process holds by descriptors.
fn networks(pid: u32) -> Vec<u64> {
    let directory = format!("/proc/{pid}/fd");
    let names = files::list(Path::new(&directory)).expect("its descriptors");
    let targets = names.iter().map(|name| Path::new(&directory).join(name));
    targets
        .filter(|path| files::read_link(path).is_ok_and(|target| target.to_string_lossy().starts_with("net:")))
        .map(|path| std::fs::metadata(path).expect("open").ino())
        .collect()
}

/// A kernel thread removes namespaces, a little after their last holder ends.
fn wait_gone(networks: &[u64]) {
    let deadline = clock::now() + Duration::from_secs(10);
    while networks.iter().any(|inode| NetworkId::lives(*inode)) {
        assert!(clock::now() < deadline, "{networks:?} live on");
        clock::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_lab_is_started_queried_entered_and_ended() {
    let place = Shelf::new();
    let labs = place.labs();
    let status = labs.up(&spec("alpha"), &holder()).expect("this test builds networks: it needs root");
    assert_eq!((status.name.as_str(), status.topology, status.hosts.len()), ("alpha", Topology::Pair, 2));
    assert_eq!(status.cautions, [""; 0]);
    let networks = networks(status.pid);
    assert_eq!(networks.len(), 2);
    assert_eq!(labs.names(), ["alpha"]);

    let path = Impairment { loss: 0.25, ..Impairment::default() };
    labs.set("alpha", Direction::Down, path.clone()).expect("a path");
    let brought =
        labs.fault("alpha", "tcp-receive-window", Place::Server, Some("300k"), Direction::Both).expect("a fault");
    assert_eq!(brought[0].value, "300 KiB");
    let status = labs.status("alpha").expect("it answers");
    let (up, down) = (status.up.expect("a path"), status.down.expect("a path"));
    assert_eq!((&down.impairment, up.impairment.delay_us), (&path, 1000));
    assert_eq!(status.faults, brought);
    let refused = labs.fault("alpha", "random-loss", Place::Server, None, Direction::Both).expect_err("of the path");
    assert!(refused.to_string().contains("allowed: path"), "{refused}");
    assert_eq!(labs.unfault("alpha", "all", None).expect("undone"), brought);
    assert_eq!(labs.status("alpha").expect("it answers").faults, []);

    let launcher = myself("the_command", EXEC, &place.directory.path().to_string_lossy());
    let mut command = process::bound_command(&launcher.program.to_string_lossy());
    let output = command.args(&launcher.arguments).envs(launcher.environment).current_dir("/usr").output();
    let said = String::from_utf8_lossy(&output.expect("it runs").stdout).into_owned();
    assert!(said.contains("in server: lo path0"), "{said}");
    assert!(said.contains("\n/usr\n"), "the working directory stays: {said}");
    let unknown = labs.exec("alpha", "printer", "/bin/true", &[]).expect_err("no such host");
    assert!(matches!(unknown, Error::UnknownHost { .. }), "{unknown}");

    labs.down("alpha").expect("it ends");
    assert_eq!(place.files(), [""; 0], "nothing is left on disk");
    assert_eq!(process::start_time(status.pid), None);
    wait_gone(&networks);
    let gone = labs.status("alpha").expect_err("it is gone").to_string();
    assert!(gone.contains("no lab `alpha` is up") && gone.contains("narrows lab up alpha"), "{gone}");
}

#[test]
fn a_killed_lab_leaves_nothing_and_its_name_is_free() {
    let place = Shelf::new();
    let labs = place.labs();
    let first = labs.up(&spec("beta"), &holder()).expect("this test builds networks: it needs root");
    let networks = networks(first.pid);
    process::signal(first.pid, SIGKILL).expect("it is ours");
    assert!(process::wait_gone(first.pid, Duration::from_secs(5)).expect("a wait"));
    wait_gone(&networks);
    let killed = labs.status("beta").expect_err("it is gone").to_string();
    assert!(killed.contains("was killed"), "{killed}");

    let second = labs.up(&spec("beta"), &holder()).expect("its name is free");
    let refused = labs.up(&spec("beta"), &holder()).expect_err("a running one is left alone");
    assert!(matches!(refused, Error::AlreadyUp { processes: 0, .. }), "{refused}");
    assert_eq!(labs.status("beta").expect("it still answers").pid, second.pid);
    let third = labs.replace(&spec("beta"), &holder()).expect("the name is taken over");
    assert_ne!(second.pid, third.pid);
    assert_eq!(process::start_time(second.pid), None);
    process::signal(third.pid, SIGKILL).expect("it is ours");
    assert!(process::wait_gone(third.pid, Duration::from_secs(5)).expect("a wait"));
    assert!(matches!(labs.down("beta"), Err(Error::NotUp { .. })));
    assert_eq!(place.files(), [""; 0], "nothing is left on disk");
}

#[test]
fn a_dropped_lab_leaves_nothing() {
    let lab = narrows_lab::Lab::up(&spec("gamma")).expect("this test builds networks: it needs root");
    let inode = |host: &narrows_lab::Host| host.run(NetworkId::current).expect("entered").expect("proc").inode;
    let networks: Vec<_> = lab.hosts().iter().map(inode).collect();
    assert!(networks.iter().all(|inode| NetworkId::lives(*inode)));
    lab.down();
    wait_gone(&networks);
}

#[test]
fn an_invalid_request_is_answered_with_an_error() {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;
    let place = Shelf::new();
    let labs = place.labs();
    labs.up(&spec("delta"), &holder()).expect("this test builds networks: it needs root");
    let socket = place.directory.path().join("delta.sock");
    for words in ["{}\n", "hello\n", "{\"do\":\"fault\",\"id\":\"x\",\"at\":\"moon\"}\n"] {
        let mut stream = UnixStream::connect(&socket).expect("it listens");
        stream.write_all(words.as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        assert!(answer.contains("cannot parse the request"), "{answer}");
    }
    // A silent client blocks the others for 2 s at most.
    let _silent = UnixStream::connect(&socket).expect("it listens");
    labs.status("delta").expect("it answers all the same");
    let error = labs.up(&LabSpec { name: "../delta".to_owned(), ..LabSpec::default() }, &holder());
    assert!(matches!(error, Err(Error::BadName(_))), "{error:?}");
    labs.down("delta").expect("it ends");
}

/// The child processes of all threads of a process, by their ids.
fn children(pid: u32) -> Vec<u32> {
    let tasks = format!("/proc/{pid}/task");
    let of = |task: &String| files::read_text(Path::new(&format!("{tasks}/{task}/children"))).unwrap_or_default();
    let lists: Vec<_> = files::list(Path::new(&tasks)).expect("proc").iter().map(of).collect();
    lists.iter().flat_map(|list| list.split_whitespace()).filter_map(|word| word.parse().ok()).collect()
}

#[test]
fn a_bench_with_agents_leaves_nothing_when_it_is_killed() {
    let place = Shelf::new();
    let labs = place.labs();
    let spec = LabSpec { topology: Topology::DutSwitch, snmpd: true, ..spec_without_path("epsilon") };
    let scratch = tempfile::tempdir().expect("a directory");
    let mut holder = holder();
    holder.environment.push(("TMPDIR".to_owned(), scratch.path().to_string_lossy().into_owned()));
    let status = match labs.up(&spec, &holder) {
        Ok(status) => status,
        Err(error) => {
            assert!(error.to_string().contains("apt install snmpd"), "{error}");
            assert_eq!(place.files(), [""; 0], "nothing is left on disk");
            return;
        }
    };
    let agents: Vec<_> = status.agents.iter().map(|agent| (agent.host.as_str(), agent.address.to_string())).collect();
    assert_eq!(agents, [("switch", "10.77.11.1:161".to_owned()), ("router", "10.77.10.1:161".to_owned())]);
    assert!(status.up.is_none() && status.hosts.len() == 3);
    let (networks, children) = (networks(status.pid), children(status.pid));
    assert_eq!((networks.len(), children.len()), (3, 2));
    let devices = labs.within("epsilon", "router", || files::list(Path::new("/sys/class/net")).expect("sys"));
    assert_eq!(devices.expect("entered"), ["in0", "lo", "mgmt0", "out0"]);

    process::signal(status.pid, SIGKILL).expect("it is ours");
    for pid in [status.pid].iter().chain(&children) {
        assert!(process::wait_gone(*pid, Duration::from_secs(5)).expect("a wait"), "{pid} lives on");
    }
    wait_gone(&networks);
    assert_eq!(files::list(scratch.path()).expect("a list"), [""; 0]);

    let again = labs.up(&spec, &holder).expect("its name is free");
    labs.down("epsilon").expect("it ends");
    assert_eq!(process::start_time(again.pid), None);
    assert_eq!(place.files(), [""; 0], "nothing is left on disk");
}

fn spec_without_path(name: &str) -> LabSpec {
    LabSpec { name: name.to_owned(), ..LabSpec::default() }
}
