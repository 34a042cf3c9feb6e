//! A forwarding benchmark on several hosts: a desk from which it is made, a generator, a router and a receiver, each a host of its
//! own, and a network of management between the desk and the others.

use crate::world::{Running, SIGINT, SIGKILL, World, alone, soon};
use narrows_sys::netns::Namespaces;
use narrows_sys::rtnl::Links;
use narrows_sys::sysctl;
use serde_json::Value;
use std::net::IpAddr;
use std::time::Duration;

/// Four hosts, each with a directory of its own.
struct Bench {
    desk: (World, Namespaces),
    generator: (World, Namespaces),
    router: (World, Namespaces),
    receiver: (World, Namespaces),
}

fn v4(a: u8, b: u8, c: u8, d: u8) -> IpAddr {
    IpAddr::from([a, b, c, d])
}

fn host(name: &str) -> (World, Namespaces) {
    let up = || {
        Links::open().and_then(|mut links| links.set_up("lo", true)).expect("the loopback device");
        Ok::<_, narrows_sys::Error>(())
    };
    (alone(), Namespaces::create(name, up).expect("root, of a user namespace at least").0)
}

/// A cable between two hosts, with an address at each end.
fn cable(near: (&Namespaces, &str, IpAddr), far: (&Namespaces, &str, IpAddr)) {
    let join = || Links::open().and_then(|mut links| links.add_veth(near.1, far.1, far.0.network()));
    near.0.run(join).expect("a host").expect("a virtual pair");
    for (host, device, address) in [near, far] {
        let set = || {
            // So that nothing but the test's packets moves.
            let _ = sysctl::write(&format!("net.ipv6.conf.{device}.disable_ipv6"), "1");
            let mut links = Links::open().expect("netlink");
            links.set_up(device, true).expect("a device that is up");
            links.add_address(device, address, 24).expect("an address");
        };
        host.run(set).expect("a host");
    }
}

impl Bench {
    fn up() -> Self {
        let [desk, generator, router, receiver] = ["desk", "generator", "router", "receiver"].map(host);
        for (number, managed) in (1..).zip([&generator, &router, &receiver]) {
            let near = format!("to{number}");
            cable((&desk.1, &near, v4(10, 9, number, 1)), (&managed.1, "mgmt0", v4(10, 9, number, 2)));
        }
        cable((&generator.1, "mgmt1", v4(10, 9, 4, 1)), (&receiver.1, "mgmt1", v4(10, 9, 4, 2)));
        cable((&generator.1, "gen0", v4(198, 18, 0, 2)), (&router.1, "in0", v4(198, 18, 0, 1)));
        cable((&router.1, "out0", v4(198, 19, 0, 1)), (&receiver.1, "rcv0", v4(198, 19, 0, 2)));
        router.1.run(|| sysctl::write("net.ipv4.ip_forward", "1")).expect("a host").expect("a router");
        Self { desk, generator, router, receiver }
    }

    fn serve(&self) -> [Running; 3] {
        let serve = |(world, host): &(World, Namespaces), flags: &[&str]| world.serve_on(host, flags);
        [
            serve(&self.generator, &["--frames", "gen0"]),
            serve(&self.router, &[]),
            serve(&self.receiver, &["--frames", "rcv0"]),
        ]
    }

    /// A plan file on the desk; its path.
    fn plan(&self, tests: &str) -> String {
        let token = |of: &(World, Namespaces)| of.0.token_file();
        let text = format!(
            r#"name = "a router between two hosts"
link = "1G"
max-load = "5kpps"
learning-frames = 0
residue = "300ms"
rest = "0s"

[generator]
device = "gen0"
address = "198.18.0.2"
gateway = "198.18.0.1"
host = "10.9.1.2"
token-file = "{}"

[receiver]
device = "rcv0"
address = "198.19.0.2"
gateway = "198.19.0.1"
host = "10.9.3.2"
token-file = "{}"

[[traffic]]
sizes = [64]
flows = 10

[[hop]]
name = "router"
under-test = true
input = "in0"
output = "out0"
source = {{ kind = "narrows", host = "10.9.2.2", token-file = "{}" }}

{tests}
"#,
            token(&self.generator),
            token(&self.receiver),
            token(&self.router)
        );
        self.desk.0.file("plan.toml", &text)
    }

    /// Frames that the router took in so far.
    fn taken(&self) -> u64 {
        let read = || Links::open().and_then(|mut links| links.get("in0")).expect("the router's port").rx_packets;
        self.router.1.run(read).expect("a host")
    }

    /// A benchmark that is made from the desk, after so many frames of its first trial.
    fn begun(&self, words: &[&str], frames: u64) -> Running {
        let mut made = self.desk.0.start_on(&self.desk.1, words);
        made.await_error("  calibration");
        let before = self.taken();
        assert!(soon(Duration::from_millis(5), || self.taken() >= before + frames), "no frames");
        made
    }

    fn record(&self, name: &str) -> Value {
        let text = std::fs::read(self.desk.0.path(name)).expect("a record");
        serde_json::from_slice(&text).expect("JSON")
    }
}

fn count(of: &Value) -> u64 {
    of.as_u64().unwrap_or_else(|| panic!("no count: {of}"))
}

fn sum(of: &Value, key: &str) -> u64 {
    of.as_array().expect("a list").iter().map(|it| count(&it[key])).sum()
}

#[test]
fn generator_router_and_receiver_are_three_hosts_and_the_books_balance() {
    let bench = Bench::up();
    let _servers = bench.serve();
    let goal = "{ name = \"short\", initial-trial = \"100ms\", final-trial = \"100ms\", width = 0.05 }";
    let throughput = format!("[throughput]\ngoals = [{goal}]\nconfirm = 1\nmax-search = \"10s\"\n");
    let plan = bench.plan(&format!("{throughput}[latency]\n[worst-case]\nduration = \"500ms\"\nrepetitions = 2\n"));
    let said = bench.desk.0.run_on(&bench.desk.1, &["rfc2544", &plan, "-o", "kept.json"]).with_code(0);
    let record = bench.record("kept.json");
    let trials = record["trials"].as_array().expect("trials");
    // A trial that a pause of the machine disturbed is made again.
    assert!((3..=9).contains(&trials.len()), "{said:?}");
    for trial in trials {
        let (sent, got) = (&trial["directions"][0]["sent"], &trial["directions"][0]["got"]);
        let left = sum(&sent["streams"], "handed") - sent["refused"].as_u64().unwrap_or(0);
        assert_eq!(sum(&got["streams"], "received"), left, "{trial}");
        assert!((1..=2_500).contains(&left), "{trial}");
        assert!(got["latency_ns"].is_null(), "two hosts have no clock in common: {trial}");
        let hop = &trial["hops"][0];
        assert!(hop["silent"].is_null() && trial["invalid"].is_null(), "{trial}");
        for side in ["input", "output"] {
            assert!(count(&hop[side]).abs_diff(left) <= count(&hop["uncertainty"]), "{side}: {trial}");
        }
        assert_eq!(hop["source"], "counters of the kernel of 10.9.2.2, through narrows");
        // The device is watched through its server, which runs on the kernel of the test's desk.
        let device = &trial["devices"][0];
        assert!(device["silent"].is_null() && device["reset"].is_null(), "{device}");
        assert_eq!(
            (&device["source"], &device["shared"]),
            (&"the kernel of 10.9.2.2, through narrows".into(), &true.into())
        );
        assert!(count(&device["interrupts"]) > 0 && count(&device["net_rx"]) > 0, "{device}");
    }
    for secret in ["token_file", "token"] {
        assert!(!record["plan"].to_string().contains(secret), "{}", record["plan"]);
    }
    assert_eq!(record["plan"]["receiver"]["host"], "10.9.3.2");
    for words in ["on gen0 of 10.9.1.2", "generator and receiver are on two hosts, with two clocks"] {
        assert!(said.out.contains(words), "{words}: {said:?}");
    }
}

#[test]
fn a_server_puts_no_frames_on_devices_that_nobody_named() {
    let bench = Bench::up();
    let serve = |(world, host): &(World, Namespaces), flags: &[&str]| world.serve_on(host, flags);
    let _generator = serve(&bench.generator, &["--frames", "gen0"]);
    let receiver = serve(&bench.receiver, &[]);
    let plan = bench.plan("[worst-case]\nduration = \"200ms\"\n");
    let sentence = |bench: &Bench| {
        let said = bench.desk.0.run_on(&bench.desk.1, &["rfc2544", &plan]);
        assert_eq!((said.code, said.out.as_str()), (Some(1), ""), "{said:?}");
        said.err.trim_end().lines().last().unwrap_or_default().to_owned()
    };
    assert_eq!(
        sentence(&bench),
        "narrows: the tester's host 10.9.3.2: this server sends no frames for clients; restart it with `narrows serve \
        --frames rcv0`, in a lab network only"
    );
    drop(receiver);
    let _receiver = serve(&bench.receiver, &["--frames", "mgmt0,other0"]);
    assert_eq!(
        sentence(&bench),
        "narrows: the tester's host 10.9.3.2: this server allows frames on mgmt0, other0 only; for rcv0 \
        restart it with `narrows serve --frames mgmt0,other0,rcv0`"
    );
    let to_itself = std::fs::read_to_string(&plan).expect("the plan").replace("\"rcv0\"", "\"mgmt0\"");
    bench.desk.0.file("plan.toml", &to_itself);
    assert_eq!(
        sentence(&bench),
        "narrows: the tester's host 10.9.3.2: mgmt0 carries the route to the client: frames at line rate would \
        disconnect the session"
    );
}

#[test]
fn a_receiver_that_dies_ends_the_benchmark_and_what_was_measured_is_kept() {
    let bench = Bench::up();
    let [_generator, _router, receiver] = bench.serve();
    let plan = bench.plan("[worst-case]\nduration = \"20s\"\nrepetitions = 2\n");
    let quick = std::fs::read_to_string(&plan).expect("the plan").replace("\"20s\"", "\"200ms\"");
    let quick = bench.desk.0.file("quick.toml", &quick);
    let made = bench.begun(&["rfc2544", &plan, "-o", "kept.json"], 1_000);
    receiver.signal(SIGKILL);
    made.end().with_code(1);
    let record = bench.record("kept.json");
    let ended = record["ended"].as_str().expect("a reason");
    assert!(ended.starts_with("the tester's host 10.9.3.2: lost the server at 10.9.3.2:5220: "), "{ended}");
    assert_eq!(record["tester"].as_array().map(Vec::len), Some(1), "what was measured before is there");
    // Nothing of it is left at the generator: another benchmark has its device at once.
    let _receiver = bench.receiver.0.serve_on(&bench.receiver.1, &["--frames", "rcv0"]);
    bench.desk.0.run_on(&bench.desk.1, &["rfc2544", &quick]).with_code(0);
}

#[test]
fn a_receiver_that_is_started_anew_costs_one_trial_and_the_benchmark_goes_on() {
    let bench = Bench::up();
    let [_generator, _router, receiver] = bench.serve();
    let plan = bench.plan("[worst-case]\nduration = \"3s\"\nrepetitions = 2\n");
    let made = bench.begun(&["rfc2544", &plan, "-o", "kept.json"], 1_000);
    drop(receiver);
    let _receiver = bench.receiver.0.serve_on(&bench.receiver.1, &["--frames", "rcv0"]);
    let said = made.end().with_code(0);
    let record = bench.record("kept.json");
    assert!(record["ended"].is_null(), "{said:?}");
    let trials = record["trials"].as_array().expect("trials");
    assert_eq!(trials.len(), 2, "{said:?}");
    let lost = trials[0]["incomplete"].as_str().expect("a reason");
    assert!(lost.starts_with("the tester's host 10.9.3.2: lost the server at 10.9.3.2:5220: "), "{lost}");
    assert!(trials[1]["incomplete"].is_null() && sum(&trials[1]["directions"][0]["got"]["streams"], "received") > 0);
    let report = bench.desk.0.run(&["rfc2544", "--again", "kept.json", "--format", "json"]).json();
    assert_eq!(report["invalid"][0]["why"], lost);
    assert_eq!(report["traffic"][0]["sizes"][0]["worst_case"]["repetitions"], 1, "{report}");
}

#[test]
fn an_interrupt_at_the_desk_stops_the_frames_of_the_others() {
    let bench = Bench::up();
    let _servers = bench.serve();
    let plan = bench.plan("[worst-case]\nduration = \"20s\"\nrepetitions = 2\n");
    let made = bench.begun(&["rfc2544", &plan, "-o", "kept.json"], 1_000);
    made.signal(SIGINT);
    made.end().with_code(1);
    let record = bench.record("kept.json");
    assert_eq!(record["ended"], "interrupted");
    let trial = &record["trials"][0];
    assert_eq!(trial["directions"][0]["sent"]["ended"], "it was stopped", "{trial}");
    assert!(trial["invalid"].is_null(), "a record is raw: {trial}");
    let report = bench.desk.0.run(&["rfc2544", "--again", "kept.json", "--format", "json"]).json();
    assert_eq!(report["invalid"][0]["why"], "the generator ended early: it was stopped");
}

#[test]
fn frames_end_with_the_client_that_was_killed() {
    let bench = Bench::up();
    let _servers = bench.serve();
    let plan = bench.plan("[worst-case]\nduration = \"20s\"\nrepetitions = 2\n");
    let quick = std::fs::read_to_string(&plan).expect("the plan").replace("\"20s\"", "\"200ms\"");
    let quick = bench.desk.0.file("quick.toml", &quick);
    let made = bench.begun(&["rfc2544", &plan], 1_000);
    made.signal(SIGKILL);
    assert_eq!(made.end().code, None);
    // A device that still sent would be refused to the next one.
    let said = bench.desk.0.run_on(&bench.desk.1, &["rfc2544", &quick, "-o", "kept.json"]).with_code(0);
    assert!(bench.record("kept.json")["trials"][0]["invalid"].is_null(), "{said:?}");
}

#[test]
fn a_hop_that_cannot_be_reached_is_silent_and_the_benchmark_goes_on() {
    let bench = Bench::up();
    let [_generator, router, _receiver] = bench.serve();
    let plan = bench.plan("[worst-case]\nduration = \"200ms\"\nrepetitions = 1\n");
    drop(router);
    bench.desk.0.run_on(&bench.desk.1, &["rfc2544", &plan, "-o", "kept.json"]).with_code(0);
    let record = bench.record("kept.json");
    let hop = &record["trials"][0]["hops"][0];
    assert_eq!(
        hop["silent"],
        "cannot connect to 10.9.2.2:5220: connection refused; start `narrows serve` there, or give its \
            port with --port",
        "{hop}"
    );
    assert!(hop["input"].is_null(), "missing is not zero: {hop}");
}

#[test]
fn one_port_is_here_and_one_is_far_and_both_directions_are_loaded() {
    let bench = Bench::up();
    let [_generator, _router, _receiver] = bench.serve();
    // Made on the generator's host; the router is asked through the port that is measured.
    let plan =
        std::fs::read_to_string(bench.plan("[worst-case]\nduration = \"500ms\"\nrepetitions = 1\n")).expect("a plan");
    let own = format!("host = \"10.9.1.2\"\ntoken-file = \"{}\"\n", bench.generator.0.token_file());
    assert!(plan.contains(&own), "{plan}");
    let plan = plan
        .replace(&own, "")
        .replace("\"10.9.3.2\"", "\"10.9.4.2\"")
        .replace("\"10.9.2.2\"", "\"198.18.0.1\"")
        .replace("flows = 10", "flows = 10\nbidirectional = true");
    let file = bench.desk.0.file("plan.toml", &plan);
    bench.desk.0.run_on(&bench.generator.1, &["rfc2544", &file, "-o", "kept.json"]).with_code(0);
    let record = bench.record("kept.json");
    let trial = &record["trials"][0];
    assert!(trial["invalid"].is_null(), "{trial}");
    for direction in 0..2 {
        let frames = &trial["directions"][direction];
        let left = sum(&frames["sent"]["streams"], "handed") - frames["sent"]["refused"].as_u64().unwrap_or(0);
        assert_eq!(sum(&frames["got"]["streams"], "received"), left, "{direction}: {trial}");
        let hop = &trial["hops"][direction];
        assert!(count(&hop["uncertainty"]) > 8, "the session's own packets pass the port that is read: {hop}");
        assert!(count(&hop["output"]).abs_diff(left) <= count(&hop["uncertainty"]), "{direction}: {trial}");
    }
}

#[test]
fn the_session_with_a_hop_is_renewed_when_its_server_was_started_anew() {
    let bench = Bench::up();
    let [_generator, router, _receiver] = bench.serve();
    let plan = bench.plan("[worst-case]\nduration = \"3s\"\nrepetitions = 1\n");
    let made = bench.begun(&["rfc2544", &plan, "-o", "kept.json"], 100);
    drop(router);
    let _router = bench.router.0.serve_on(&bench.router.1, &[]);
    made.end().with_code(0);
    let trial = &bench.record("kept.json")["trials"][0];
    let hop = &trial["hops"][0];
    assert!(hop["silent"].is_null() && trial["invalid"].is_null(), "{trial}");
    assert!(count(&hop["input"]) > 100, "{trial}");
}

#[test]
fn ssh_starts_a_server_that_may_put_frames_on_the_plans_devices() {
    crate::world::on_loopback(|world| {
        let here = narrows_sys::netns::network_of_this_thread().expect("a network");
        let mut links = Links::open().expect("netlink");
        links.add_veth("gen0", "rcv0", std::os::fd::AsFd::as_fd(&here)).expect("a virtual pair");
        for (device, address) in [("gen0", v4(198, 18, 0, 2)), ("rcv0", v4(198, 19, 0, 2))] {
            let _ = sysctl::write(&format!("net.ipv6.conf.{device}.disable_ipv6"), "1");
            links.set_up(device, true).expect("a device that is up");
            links.add_address(device, address, 24).expect("an address");
        }
        // A cable is the device: its gateway is its other end.
        let other = links.get("rcv0").expect("a device").address.expect("an address");
        links.add_neighbour("gen0", v4(198, 18, 0, 1), other).expect("a neighbour");
        let ssh = world.file("ssh", "#!/bin/sh\nfor last; do :; done\nexec /bin/sh -c \"exec $last\"\n");
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&ssh, executable).expect("an executable");
        let port = |name: &str, device: &str, net: u8| {
            format!(
                "[{name}]\ndevice = \"{device}\"\naddress = \"198.{net}.0.2\"\ngateway = \"198.{net}.0.1\"\nhost = \
                 \"ssh://ops@localhost\"\n\n"
            )
        };
        let plan = format!(
            "name = \"a cable\"\nlink = \"1G\"\nmax-load = \"5kpps\"\nresidue = \"300ms\"\nrest = \"0s\"\n{}{}[[traffic]]\nsizes \
             = [64]\n[worst-case]\nduration = \"300ms\"\nrepetitions = 1\n",
            port("generator", "gen0", 18),
            port("receiver", "rcv0", 19)
        );
        let plan = world.file("plan.toml", &plan);
        let mut command = world.command(&["rfc2544", &plan, "-o", "kept.json"]);
        command.env("PATH", format!("{}:/usr/bin:/bin", world.path("").display()));
        command.env("NARROWS_REMOTE_COMMAND", env!("CARGO_BIN_EXE_narrows"));
        let said = command.output().expect("the program");
        assert_eq!(said.status.code(), Some(0), "{said:?}");
        let text = std::fs::read(world.path("kept.json")).expect("a record");
        let record: Value = serde_json::from_slice(&text).expect("JSON");
        let frames = &record["trials"][0]["directions"][0];
        assert_eq!(sum(&frames["got"]["streams"], "received"), sum(&frames["sent"]["streams"], "handed"), "{frames}");
        assert!(count(&frames["got"]["latency_ns"]["count"]) > 0, "both ports are of one host, and so of one clock");
    });
}
