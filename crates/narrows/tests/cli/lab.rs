//! A lab that is not there, or is asked for what it does not have.

use crate::world::{Said, World, alone, on_loopback};

/// A lab that is taken down with the test.
pub(crate) struct Lab<'a> {
    world: &'a World,
    name: String,
}

impl<'a> Lab<'a> {
    fn up(world: &'a World, word: &str) -> Self {
        Self::up_as(world, word, &[])
    }

    /// The same with these flags.
    pub(crate) fn up_as(world: &'a World, word: &str, flags: &[&str]) -> Self {
        let lab = Self { world, name: format!("cli-{word}-{}", std::process::id()) };
        world.run(&[&["lab", "up", &lab.name], flags].concat()).with_code(0);
        lab
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// `narrows lab COMMAND NAME WORDS…`
    pub(crate) fn run(&self, command: &str, words: &[&str]) -> Said {
        self.world.run(&[&["lab", command, &self.name], words].concat())
    }

    /// The same, which must fail with a sentence.
    fn sentence(&self, command: &str, words: &[&str]) -> String {
        self.world.sentence(1, &[&["lab", command, &self.name], words].concat())
    }
}

impl Drop for Lab<'_> {
    fn drop(&mut self) {
        let _ = self.world.command(&["lab", "down", &self.name]).status();
    }
}

/// The sentence for a lab that is not up; between its parts it may name others that are.
fn check_not_up(sentence: &str, name: &str) {
    let begins = sentence.starts_with(&format!("no lab `{name}` is up"));
    assert!(begins && sentence.ends_with(&format!("; start it with `narrows lab up {name}`")), "{sentence}");
}

#[test]
fn a_lab_that_is_not_up_is_named() {
    let world = alone();
    for words in [
        &["status", "nosuch"][..],
        &["down", "nosuch"],
        &["exec", "nosuch", "client", "true"],
        &["unfault", "nosuch", "all"],
    ] {
        check_not_up(&world.sentence(1, &[&["lab"], words].concat()), "nosuch");
    }
    assert_eq!(
        world.sentence(2, &["lab", "up", "bad name"]),
        "invalid lab name `bad name`: use 1 to 32 lower-case letters, digits and hyphens, with a letter first"
    );
}

#[test]
fn what_a_lab_does_not_have_is_named() {
    let world = alone();
    let lab = Lab::up(&world, "asked");
    assert_eq!(lab.sentence("exec", &["nowhere", "true"]), "the lab has no host `nowhere`; it has client, server");
    assert_eq!(
        lab.sentence("exec", &["client", "no-such-program"]),
        "cannot run no-such-program: No such file or directory (os error 2)"
    );
    assert_eq!(lab.run("exec", &["client", "sh", "-c", "exit 7"]).code, Some(7), "the command's own exit code");
    let unknown = lab.sentence("fault", &["nosuch", "--at", "server"]);
    assert!(unknown.starts_with(&format!("lab `{}`: ", lab.name)) && unknown.contains("nosuch"), "{unknown}");
    let fault = |value| ["tcp-receive-window", "--at", "server", "--value", value];
    let sentence = lab.sentence("fault", &fault("big"));
    assert!(
        sentence.contains("invalid value `big` for `tcp-receive-window`, which takes a size such as 256k"),
        "{sentence}"
    );
    assert_eq!(
        lab.run("fault", &fault("256k")).out,
        "tcp-receive-window at server (256 KiB): a small maximum of the TCP receive buffer\n"
    );
    assert_eq!(
        lab.sentence("fault", &fault("256k")),
        format!("lab `{}`: `tcp-receive-window` is already in force at server; remove it first", lab.name)
    );
    assert_eq!(lab.run("unfault", &["tcp-receive-window"]).out, "removed: tcp-receive-window at server (256 KiB)\n");
    assert_eq!(lab.run("unfault", &["all"]).out, "no fault is in force\n");
    let name = &lab.name;
    assert_eq!(lab.run("down", &[]).out, format!("lab {name} is down\n"));
    check_not_up(&lab.sentence("status", &[]), name);
}

#[test]
fn what_runs_on_a_host_ends_with_its_lab() {
    let world = alone();
    let lab = Lab::up(&world, "guests");
    let name = lab.name.clone();
    let sleep = || {
        let mut sleeper = world.start(&["lab", "exec", &name, "client", "sh", "-c", "echo there; exec sleep 60"]);
        sleeper.await_line("there");
        sleeper
    };
    let sleeper = sleep();
    assert_eq!(lab.run("down", &[]).code, Some(0));
    assert_eq!(sleeper.end().code, None, "ended by a signal");
    // The same where the lab itself was killed: the next of its name tidies up.
    let lab = Lab::up(&world, "guests");
    let sleeper = sleep();
    let status = lab.run("status", &["--json"]).json();
    let holder = status["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).expect("its process");
    narrows_sys::process::signal(holder, 9).expect("it lives");
    let again = Lab::up(&world, "guests");
    assert_eq!(sleeper.end().code, None, "ended by a signal");
    drop((lab, again));
}

#[test]
fn a_lab_that_is_up_is_replaced_on_request_only() {
    let world = alone();
    let lab = Lab::up(&world, "twice");
    let name = lab.name.clone();
    let mut sleeper = world.start(&["lab", "exec", &name, "client", "sh", "-c", "echo there; exec sleep 60"]);
    sleeper.await_line("there");
    assert_eq!(
        lab.sentence("up", &[]),
        format!(
            "cannot bring lab `{name}` up: it is already up, and 1 process runs in it; replace it with --replace, or take it \
             down with `narrows lab down {name}`"
        )
    );
    assert_eq!(lab.run("exec", &["client", "true"]).code, Some(0), "it was left alone");
    assert_eq!(lab.run("up", &["--replace"]).code, Some(0));
    assert_eq!(sleeper.end().code, None, "ended by a signal");
}

#[test]
fn a_lab_without_tun_says_so() {
    on_loopback(|world| {
        narrows_sys::mount::cover(std::path::Path::new("/dev/net")).expect("a mount of our own");
        let said = world.run(&["lab", "demo"]).with_code(1);
        let last = said.err.lines().last().unwrap_or_default();
        assert_eq!(
            last,
            "narrows: cannot start a lab on this machine: /dev/net/tun is missing; load the module with `modprobe \
            tun`, or use a kernel with CONFIG_TUN"
        );
    });
}

#[test]
fn a_bench_is_asked_told_and_taken_down() {
    let world = alone();
    let sentence = |words: &[&str]| world.sentence(2, &[&["lab", "up", "bench"], words].concat());
    assert_eq!(sentence(&["--switch"]), "--switch needs --topology dut");
    assert_eq!(sentence(&["--topology", "dut", "--rtt", "10ms"]), "invalid path: this topology has no emulated path");
    assert_eq!(
        sentence(&["--snmpd"]),
        "cannot start a lab on this machine: --snmpd needs a router or switch; use --topology dut or chain"
    );
    let lab = Lab { world: &world, name: format!("cli-bench-{}", std::process::id()) };
    let said = world.run(&["lab", "up", &lab.name, "--topology", "dut", "--mtu", "9000"]).with_code(0);
    for words in
        ["tester   gen0     198.18.0.2  2001:2:0:100::2", "router   in0      198.18.0.1", "out0     198.19.0.1"]
    {
        assert!(said.out.contains(words), "{words}: {}", said.out);
    }
    assert!(!said.out.contains("\n  up "), "there is no path: {}", said.out);
    let fault = lab.run("fault", &["forward-police", "--at", "router", "--value", "200000x64"]);
    let (value, about) = ("200000 packets/s x 64 packets of burst", "the router polices to a rate in packets/s");
    assert_eq!(fault.out, format!("forward-police at router ({value}): {about}\n"));
    assert_eq!(
        lab.sentence("fault", &["forward-shape", "--at", "router", "--value", "200kx64"]),
        format!(
            "lab `{}`: invalid value `200kx64` for `forward-shape`, which takes a product such as 20000x64x1000 (rate \
            x frame size with FCS x queue): write 3 whole numbers from 1 to 1000000000 with x between them: frames/s \
            x bytes a frame x frames of queue",
            lab.name
        )
    );
    assert_eq!(
        lab.sentence("fault", &["random-loss", "--at", "path"]),
        format!("lab `{0}`: lab `{0}` has no emulated path; start it with --topology pair or chain", lab.name)
    );
    assert_eq!(lab.run("down", &[]).code, Some(0));
}
