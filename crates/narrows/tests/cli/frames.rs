//! Raw frames that cannot be sent or counted, and ends that are killed: one sentence each, and nothing left on a device.

use crate::usage::refusal;
use crate::world::{SIGINT, SIGKILL, Said, World, alone, on_loopback, word};
use narrows_sys::rtnl::Links;
use narrows_sys::{netns, sysctl};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;

const MAC: &str = "02:00:00:00:00:02";

/// Runs a test in a network with `gen0` wired to `rcv0`, of which these are up.
fn on_wire(up: &[&str], test: impl FnOnce(&World) + Send) {
    on_loopback(|world| {
        let here = netns::network_of_this_thread().expect("a network");
        let mut links = Links::open().expect("netlink");
        links.add_veth("gen0", "rcv0", here.as_fd()).expect("a virtual pair");
        for device in ["gen0", "rcv0"] {
            // So that nothing but the test's frames moves.
            let _ = sysctl::write(&format!("net.ipv6.conf.{device}.disable_ipv6"), "1");
        }
        up.iter().for_each(|device| links.set_up(device, true).expect("a device that is up"));
        test(world);
    });
}

/// `narrows generate gen0` of ten frames to a known address, with more words.
fn generate<'a>(words: &[&'a str]) -> Vec<&'a str> {
    [&["generate", "gen0", "--destination-mac", MAC, "-n", "10", "-r", "1kpps", "-q"], words].concat()
}

fn count(said: &Said, line: &str) -> String {
    let found = said.out.lines().find_map(|it| it.trim_start().strip_prefix(line));
    found.unwrap_or_else(|| panic!("no {line}: {said:?}")).trim_start().to_owned()
}

#[test]
fn a_device_that_cannot_send_is_named() {
    let nosuch = "cannot use device nosuch: cannot find link nosuch: the kernel refuses netlink route message 18: No such device (os \
                  error 19)";
    on_wire(&[], |world| {
        assert_eq!(
            world.sentence(1, &["generate", "nosuch", "--destination-mac", MAC]),
            format!("{nosuch}; see `ip link`")
        );
        assert_eq!(
            world.sentence(1, &generate(&[])),
            "cannot use device gen0: it is down; set it up with `ip link set DEV up`"
        );
        assert_eq!(world.sentence(1, &["receive", "nosuch"]), nosuch);
        assert_eq!(world.sentence(1, &["receive", "rcv0"]), "cannot use device rcv0: it is down; set it up first");
    });
    on_wire(&["gen0"], |world| {
        let no_link = "cannot use device gen0: no link; check the cable and the peer, or wait with --wait";
        assert_eq!(world.sentence(1, &generate(&[])), no_link);
        assert_eq!(world.sentence(1, &generate(&["--wait", "100ms"])), no_link);
    });
}

#[test]
fn a_next_hop_that_nobody_knows_is_named() {
    on_wire(&["gen0", "rcv0"], |world| {
        let said = world.sentence(1, &["generate", "gen0", "-n", "10"]);
        assert!(said.starts_with("cannot find the Ethernet address of 198.19.0.2: "), "{said}");
        assert!(said.ends_with("; name the next hop with --gateway ADDRESS or --destination-mac MAC"), "{said}");
        let said = world.sentence(1, &["generate", "gen0", "-n", "10", "--gateway", "198.18.0.1"]);
        assert!(said.starts_with("cannot find the Ethernet address of 198.18.0.1: "), "{said}");
    });
}

#[test]
fn what_could_harm_others_is_refused() {
    on_wire(&["gen0", "rcv0"], |world| {
        for (words, address) in [
            (["-S", "192.0.2.1"], "192.0.2.1"),
            (["-D", "198.19.255.1-198.20.0.1"], "198.20.0.1"),
            (["-D", "2001:2:1::1"], "2001:2:1::1"),
        ] {
            assert_eq!(
                world.sentence(2, &generate(&words)),
                format!(
                    "{address} is outside the benchmarking ranges 198.18.0.0/15 and 2001:2::/48 (RFC 2544, RFC 5180); \
                    use an address in them, or give --allow-any-address"
                )
            );
        }
        let mut links = Links::open().expect("netlink");
        links.add_address("gen0", [198, 18, 0, 2].into(), 24).expect("an address");
        links.add_route("gen0", [0; 4].into(), 0, Some([198, 18, 0, 1].into())).expect("a default route");
        for words in [&[][..], &["--use-default-route-device"]] {
            assert_eq!(
                world.sentence(1, &generate(words)),
                "cannot use device gen0: it carries the default route: frames at line rate would disconnect this \
                host; use another interface, or give --use-default-route-device twice"
            );
        }
        let tx = || Links::open().and_then(|mut links| links.get("gen0")).expect("gen0").tx_packets;
        let before = tx();
        let said = world.run(&generate(&["--use-default-route-device", "--use-default-route-device"])).with_code(0);
        assert_eq!(count(&said, "sent  ").split(" in ").next(), Some("10 frames"), "{said:?}");
        assert!(tx() >= before + 10, "they left");
    });
}

#[test]
fn words_that_no_frame_is_made_of_are_named() {
    on_wire(&["gen0", "rcv0"], |world| {
        for (words, sentence) in [
            (
                ["--size", "big"],
                "invalid list of frame sizes `big`; write it like 64, 64,128,1518, imix, imix:7x64,4x570,1x1518 or \
                genome:aaaaaaabbg",
            ),
            (["--size", "63"], "`63` has frames of 63 bytes; the allowed range is 64 to 9216 bytes with FCS"),
            (
                ["--rate", "fast"],
                "invalid load `fast`; write it like 1.2Mpps, 9.4G (on the wire), 50% (of the line rate) or max",
            ),
            (["--rate", "101%"], "`101%` is an invalid load: it must be at most 100 % of the line rate, or max"),
            (["--rate", "0"], "`0` is an invalid load: it must be from 0.01 to 10^9 frames a second"),
            (["--workers", "0"], "workers is 0, but must be from 1 to 64"),
            (["--workers", "65"], "workers is 65, but must be from 1 to 64"),
            (["--burst", "0"], "burst in frames is 0, but must be from 1 to 65536"),
            (["--duration", "5h"], "duration is 5 h, but must be from 10 ms to 4 h"),
            (["--interval", "1ms"], "interval is 1 ms, but must be from 10 ms to 1 h"),
            (["-S", "2001:2::1"], "the destination addresses and the family of the frames differ"),
        ] {
            let base = ["generate", "gen0", "--destination-mac", MAC, "-q"];
            assert_eq!(world.sentence(2, &[&base[..], &words[..]].concat()), sentence);
        }
        let six = ["-S", "2001:2::1", "-D", "2001:2::2", "-l", "64"];
        assert_eq!(
            world.sentence(2, &generate(&six)),
            "a frame of 64 bytes is too small: IPv6 with signature needs 82 bytes with FCS"
        );
        assert_eq!(
            world.sentence(1, &generate(&["--size", "9000"])),
            "cannot use device gen0: MTU 1500 allows frames of at most 1518 bytes, not 9000; raise the MTU of both \
            ends, or send smaller frames"
        );
    });
}

#[test]
fn a_file_that_cannot_be_written_is_refused_before_anything_is_sent() {
    on_wire(&["gen0", "rcv0"], |world| {
        let tx = || Links::open().and_then(|mut links| links.get("gen0")).expect("gen0").tx_packets;
        let before = tx();
        let nowhere = "/nonexistent/result.json";
        let why = "cannot write /nonexistent/result.json: directory /nonexistent does not exist; create it first";
        assert_eq!(world.sentence(1, &generate(&["-o", nowhere])), why);
        assert_eq!(world.sentence(1, &["receive", "rcv0", "-t", "60s", "-o", nowhere]), why);
        let directory = word(&world.path(""));
        let why = world.sentence(1, &generate(&["-o", &directory]));
        assert_eq!(why, format!("cannot write {directory}: it is a directory; name a file in it"));
        assert_eq!(tx(), before, "nothing was sent");
    });
}

/// Both ends together, as a user starts them: the lines, the files, and Ctrl-C.
#[test]
fn both_ends_tell_each_interval_and_keep_their_results() {
    on_wire(&["gen0", "rcv0"], |world| {
        let mac = Links::open().and_then(|mut links| links.get("rcv0")).expect("rcv0").address.expect("an address");
        let mac = mac.map(|byte| format!("{byte:02x}")).join(":");
        let (sent, got) = (word(&world.path("sent.json")), word(&world.path("got.json")));
        let words = ["receive", "rcv0", "-t", "60s", "-i", "100ms", "--per-flow", "-o", &got];
        let mut receiver = world.start(&words);
        receiver.await_error("receive on rcv0");
        let words = ["generate", "gen0", "--destination-mac", &mac, "-S", "198.18.0.1:2000-198.18.0.4:2004"];
        let mut generator =
            world.start(&[&words[..], &["-r", "2kpps", "-t", "60s", "-i", "100ms", "-o", &sent]].concat());
        generator.await_error("      interval         sent        pps   on the wire of line     unsent   behind");
        generator.await_error("     0.0–");
        receiver.await_error("      interval     received        pps   on the wire of line       lost    reord");
        receiver.await_error("     0.");
        generator.signal(SIGINT);
        let said = generator.end().with_code(0);
        assert_eq!(count(&said, "ended early  "), "it was stopped");
        // Frames under way have come when the generator has ended: a virtual pair holds none back.
        receiver.signal(SIGINT);
        let said = receiver.end().with_code(0);
        assert!(count(&said, "all flows ").starts_with("20 flows, "), "{said:?}");
        let read = |file: &str| -> serde_json::Value {
            serde_json::from_str(&std::fs::read_to_string(file).expect("a result")).expect("JSON")
        };
        let (sent, got) = (&read(&sent)["sent"], &read(&got)["received"]);
        assert_eq!((&got["received"], &got["lost"], &got["duplicates"]), (&sent["sent"], &0.into(), &0.into()));
        let sum = |of: &serde_json::Value| -> u64 {
            of["intervals"].as_array().expect("intervals").iter().filter_map(|it| it["frames"].as_u64()).sum()
        };
        assert_eq!(
            (sum(sent), sum(got)),
            (sent["sent"].as_u64().expect("a count"), got["received"].as_u64().expect("a count"))
        );
        let flows = got["flows"].as_array().expect("flows");
        assert!(flows.len() == 20 && flows.iter().all(|flow| flow["lost"] == 0), "{flows:?}");
    });
}

#[test]
fn words_that_are_refused_at_once() {
    let of = |words: &[&str]| refusal(&[&["generate", "gen0"], words].concat());
    let range = "198.18.0.1:2000-198.18.0.20, [2001:2::1]:2000-[2001:2::20]:2100 or 198.19.0.2-198.19.255.2/24";
    assert_eq!(
        of(&["-S", "here"]),
        format!(
            "invalid value 'here' for '--source <RANGE>': invalid range of addresses `here`; write it like {range}"
        )
    );
    assert_eq!(
        of(&["-D", "198.18.0.9-198.18.0.1"]),
        "invalid value '198.18.0.9-198.18.0.1' for '--destination <RANGE>': `198.18.0.9-198.18.0.1` is reversed: its \
        first address is higher than its last"
    );
    assert!(of(&["-D", "198.18.0.9-2001:2::1"]).contains("mixes address families"));
    assert!(
        of(&["--destination-mac", "02:00:00"]).starts_with("invalid value '02:00:00' for '--destination-mac <MAC>': ")
    );
    assert_eq!(of(&["--vlan", "4096"]), "invalid value '4096' for '--vlan <ID>': 4096 is not in 0..=4095");
    assert_eq!(of(&["-n", "0"]), "invalid value '0' for '--count <FRAMES>': 0 is not in 1..18446744073709551615");
    assert!(of(&["--mode", "pigeon"]).starts_with("invalid value 'pigeon' for '--mode <MODE>'"));
    assert!(of(&["--gateway", "198.18.0.1", "--destination-mac", MAC]).contains("cannot be used with"));
    assert!(refusal(&["generate"]).starts_with("the following required arguments were not provided"));
    assert_eq!(
        alone().sentence(2, &["receive", "lo", "--idle", "1ms"]),
        "idle time is 1 ms, but must be from 10 ms to 1 h"
    );
}

#[cfg(feature = "xdp")]
#[test]
fn a_mode_that_a_device_has_not_is_named() {
    on_wire(&["gen0", "rcv0"], |world| {
        assert_eq!(
            world.sentence(1, &generate(&["--mode", "live-frames"])),
            "cannot use interface gen0: no mode works: live-frames: the driver has no XDP transmit (ndo_xdp_xmit); on \
            a veth pair the peer needs GRO or an XDP program, and no more send queues than this end has receive queues"
        );
    });
}

/// Without privilege over the network: as another user, or where only root is known as root of a user namespace of its own.
#[test]
fn without_privilege_every_mode_says_why_not() {
    on_wire(&["gen0", "rcv0"], |world| {
        for words in [&generate(&[])[..], &["receive", "rcv0", "-q"]] {
            let mut command = world.command(words);
            let tried = command.current_dir("/").uid(65_534).gid(65_534).output();
            let output = tried.or_else(|_| {
                let program = [&["--user", env!("CARGO_BIN_EXE_narrows")], words].concat();
                narrows_sys::process::bound_command("unshare").args(program).output()
            });
            let output = output.expect("the program");
            let said = String::from_utf8(output.stderr).expect("text");
            assert_eq!(output.status.code(), Some(1), "{said}");
            assert!(said.starts_with("narrows: cannot use interface ") && said.lines().count() == 1, "{said}");
            if cfg!(feature = "xdp") && words[0] == "receive" {
                assert!(said.contains("xdp-native: it needs root (CAP_BPF and CAP_NET_ADMIN); "), "{said}");
            }
            assert!(said.contains("af-packet: ") && said.contains("Operation not permitted"), "{said}");
        }
    });
}

#[cfg(feature = "xdp")]
#[test]
fn a_killed_receiver_leaves_no_program_on_the_device() {
    on_wire(&["gen0", "rcv0"], |world| {
        let native = ["receive", "rcv0", "--mode", "xdp-native", "-t", "20ms"];
        let first = world.run(&native);
        if first.code == Some(1) {
            // Root of a user namespace alone loads no program into the kernel.
            let needs = "xdp-native: it needs root (CAP_BPF and CAP_NET_ADMIN)";
            assert_eq!(first.err, format!("narrows: cannot use interface rcv0: no mode works: {needs}\n"));
            return;
        }
        let mut receiver = world.start(&["receive", "rcv0", "--mode", "xdp-native", "-t", "60s"]);
        receiver.await_error("receive on rcv0");
        assert_eq!(
            world.sentence(1, &native),
            "cannot use interface rcv0: no mode works: xdp-native: another XDP program is attached"
        );
        receiver.signal(SIGKILL);
        assert_eq!(receiver.end().code, None, "it was killed");
        let said = world.run(&native);
        assert_eq!(said.code, Some(0), "nothing is attached any more: {said:?}");
    });
}

#[test]
fn a_killed_generator_stops_to_send_and_another_can_begin() {
    on_wire(&["gen0", "rcv0"], |world| {
        // The receiver's program makes the device take live frames.
        let mut receiver = world.start(&["receive", "rcv0", "-t", "60s"]);
        receiver.await_error("receive on rcv0");
        let words = ["generate", "gen0", "--destination-mac", MAC, "-r", "10kpps", "-t", "60s", "-i", "50ms"];
        let mut first = world.start(&words);
        first.await_error("     0.");
        first.signal(SIGKILL);
        assert_eq!(first.end().code, None, "it was killed");
        let sent = || Links::open().and_then(|mut links| links.get("gen0")).expect("gen0").tx_packets;
        let then = sent();
        let said = world.run(&generate(&[])).with_code(0);
        assert_eq!(count(&said, "sent  ").split(" in ").next(), Some("10 frames"), "{said:?}");
        assert!(sent() <= then + 10, "the first one sends on: {} after {then}", sent());
        receiver.signal(SIGINT);
        let got = receiver.end().with_code(0);
        assert!(count(&got, "received  ").contains(" frames in "), "{got:?}");
    });
}
