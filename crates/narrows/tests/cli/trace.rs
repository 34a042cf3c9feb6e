//! Traces through a chain of six routers: plain, with a smaller MTU, a black hole, a filter, equal-cost paths, an asymmetric reverse path, a
//! router that limits its answers; by each protocol, and as an ordinary user.

use crate::chain::{Chain, ROUTERS, TARGET, TARGET6, ip, run};
use crate::world::{SIGINT, World, alone, on_loopback};
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::IpAddr;

/// Short waits: the chain answers at once.
const QUICK: [&str; 7] = ["-n", "--no-save", "--interval", "20ms", "--wait", "300ms", "--format=json"];

fn trace(world: &World, chain: &Chain, words: &[&str]) -> Value {
    world.run_on(chain.client(), &[&["trace"], &QUICK[..], words].concat()).quiet(0).json()
}

/// The addresses of each hop.
fn hops(report: &Value) -> Vec<Vec<String>> {
    let text = |node: &Value| node["address"].as_str().expect("an address").to_owned();
    let nodes = |hop: &Value| hop["nodes"].as_array().expect("nodes").iter().map(text).collect();
    report["hops"].as_array().expect("hops").iter().map(nodes).collect()
}

fn chain_of(prefix: &str) -> Vec<Vec<String>> {
    (1..=ROUTERS + 1)
        .map(|hop| vec![format!("{prefix}{hop}{}2", if prefix.contains(':') { "::" } else { "." })])
        .collect()
}

fn finding<'a>(report: &'a Value, id: &str) -> Option<&'a str> {
    let found = report["findings"].as_array().expect("findings").iter().find(|it| it["id"] == id);
    found.and_then(|it| it["says"].as_str())
}

fn pmtus(report: &Value) -> Vec<u64> {
    report["hops"].as_array().expect("hops").iter().filter_map(|hop| hop["pmtu_bytes"].as_u64()).collect()
}

#[test]
fn every_protocol_and_family_sees_the_same_hops() {
    let (world, chain) = (alone(), Chain::new());
    chain.await_ipv6();
    for (words, prefix, path_mtu) in [
        (&[TARGET][..], "10.0.", Some(1500)),
        (&[TARGET, "--protocol", "icmp"], "10.0.", Some(1500)),
        (&[TARGET, "--protocol", "tcp"], "10.0.", None),
        (&[TARGET6], "fd00:", Some(1500)),
        (&[TARGET6, "--protocol", "icmp"], "fd00:", Some(1500)),
        (&[TARGET6, "--protocol", "tcp"], "fd00:", None),
    ] {
        let report = trace(&world, &chain, words);
        assert_eq!(hops(&report), chain_of(prefix), "{words:?}");
        // No service listens there: whether the target or a filter refuses is not known.
        let refused = words.contains(&"tcp");
        assert_eq!(report["end"][if refused { "refused" } else { "reached" }]["ttl"], ROUTERS + 1, "{words:?}");
        assert_eq!(report["mtu"]["path_bytes"].as_u64(), path_mtu, "{words:?}: {report}");
        let findings = report["findings"].as_array().map(Vec::as_slice).unwrap_or_default();
        assert_eq!(findings.len(), usize::from(refused), "{words:?}: {report}");
        assert!(findings.iter().all(|it| it["id"] == "refused"), "{words:?}: {report}");
        assert_eq!(report["paths"].as_array().map(Vec::len), Some(1), "{words:?}: {report}");
    }
}

#[test]
fn a_smaller_mtu_and_a_black_hole_are_found_and_located() {
    let (world, chain) = (alone(), Chain::new());
    chain.await_ipv6();
    chain.set_mtu(3, "right", 1400);
    chain.set_mtu(4, "left", 1400);
    for (target, hop) in [(TARGET, "10.0.3.2"), (TARGET6, "fd00:3::2")] {
        let report = trace(&world, &chain, &[target]);
        assert_eq!(pmtus(&report), [1500, 1500, 1500, 1400, 1400, 1400, 1400], "{report}");
        let step = &report["mtu"]["steps"][0];
        assert_eq!((&step["after_hop"], &step["before_hop"], &step["reported"]), (&3.into(), &4.into(), &true.into()));
        assert_eq!(step["address"], hop);
    }
    // The far end of a link takes less than the near end believes: what is larger vanishes without a word.
    // A veth takes four bytes more than its MTU, for a VLAN tag (`is_skb_forwardable`).
    chain.set_mtu(5, "left", 1296);
    for target in [TARGET, TARGET6] {
        let report = trace(&world, &chain, &[target]);
        assert_eq!(pmtus(&report), [1500, 1500, 1500, 1400, 1300, 1300, 1300], "{report}");
        let said = finding(&report, "black-hole").expect("a black hole");
        assert!(said.starts_with("between hop 4 (") && said.contains("packets above 1300 bytes vanish"), "{said}");
    }
}

/// The addresses in lines that begin with a hop's number, as mtr, tracepath and scamper print them.
fn printed(text: &str) -> Vec<Vec<String>> {
    let mut all = vec![Vec::new()];
    for line in text.lines() {
        let hop: String = line.trim_start().chars().take_while(char::is_ascii_digit).collect();
        let words = || line.split_whitespace().filter(|word| word.parse::<IpAddr>().is_ok());
        if let (Ok(hop), Some(address)) = (hop.parse::<usize>(), words().next()) {
            all.resize(all.len().max(hop + 1), Vec::new());
            all[hop] = vec![address.to_owned()];
        }
    }
    all.split_off(1)
}

#[test]
fn the_hops_are_those_of_mtr_tracepath_and_scamper() {
    let (world, chain) = (alone(), Chain::new());
    chain.await_ipv6();
    let peers = |target: &'static str| {
        let udp = ["-c", "trace -P udp-paris -w 1 -q 1", "-p", "1000", "-i", target];
        [
            ("mtr", vec!["-n", "-r", "-c", "1", "-G", "1", "-u", target]),
            ("tracepath", vec!["-n", target]),
            ("scamper", udp.to_vec()),
        ]
    };
    let same = |what: &str, target: &'static str| {
        let own = hops(&trace(&world, &chain, &[target]));
        std::thread::scope(|scope| {
            for (peer, words) in peers(target) {
                let (chain, own) = (&chain, &own);
                scope.spawn(move || match run(chain.client(), peer, &words) {
                    Ok(text) if printed(&text).is_empty() => println!("NOT CHECKED: {what}: {peer} sees no hop"),
                    Ok(text) => assert_eq!(printed(&text), *own, "{what}: {peer} prints\n{text}"),
                    Err(why) => println!("NOT CHECKED: the hops of {peer}, since {why}"),
                });
            }
        });
    };
    same("plain", TARGET);
    same("plain", TARGET6);
    let chain_of_rules = "add table inet t; add chain inet t f { type filter hook forward priority 0; }";
    let reject = "add rule inet t f meta l4proto udp reject with icmpx type admin-prohibited";
    match run(chain.host(4), "nft", &[&format!("{chain_of_rules}; {reject}")]) {
        Ok(_) => same("a filter", TARGET),
        Err(why) => println!("NOT CHECKED: the hops in front of a filter, since {why}"),
    }
}

#[test]
fn filters_have_their_mark_and_their_place() {
    let (world, chain) = (alone(), Chain::new());
    for (kind, mark) in [("prohibit", "!A"), ("unreachable", "!H"), ("blackhole", "")] {
        let route = ["route", "replace", kind, "10.0.7.0/24"];
        if let Err(why) = ip(chain.host(4), &route) {
            println!("NOT CHECKED: marks of filters, since {why}");
            return;
        }
        let report = trace(&world, &chain, &[TARGET, "--gap", "2", "--count", "2", "--no-mtu"]);
        if mark.is_empty() {
            assert_eq!(report["end"]["silent"]["after_hop"], 3, "{report}");
            continue;
        }
        let end = &report["end"]["rejected"];
        assert_eq!((&end["mark"], &end["address"]), (&mark.into(), &"10.0.4.2".into()), "{report}");
        assert!(finding(&report, "filtered").is_some_and(|said| said.contains(mark)), "{report}");
    }
}

#[test]
fn equal_cost_paths_are_counted_and_flows_stay_on_theirs() {
    let (world, chain) = (alone(), Chain::with_paths(3));
    let Some(chain) = chain else { return };
    // The stopping rule misses a node in one of twenty traces.
    let all_seen = (0..4).any(|_| {
        let report = trace(&world, &chain, &[TARGET, "--count", "12"]);
        let all = hops(&report);
        assert_eq!((all[1].len(), all[3].len()), (1, 1), "{report}");
        assert_eq!(report["hops"][2]["complete"], true, "{report}");
        // Each flow has one node at the hop: none changes its path.
        let nodes = report["hops"][2]["nodes"].as_array().expect("nodes");
        let flows = nodes.iter().flat_map(|node| node["flows"].as_array().expect("flows")).filter_map(Value::as_u64);
        let (count, distinct) = (flows.clone().count(), flows.collect::<BTreeSet<_>>().len());
        assert!(distinct == count && count >= 6, "{report}");
        let said = finding(&report, "ecmp").unwrap_or_default();
        all[2].len() == 3 && count >= 16 && said.contains("3 routers") && said.contains("95 %")
    });
    assert!(all_seen, "three paths in none of four traces");
}

#[test]
fn a_longer_way_back_and_a_limit_of_answers_are_named() {
    let (world, chain) = (alone(), Chain::new());
    chain.limit_answers(3);
    let report = trace(&world, &chain, &[TARGET, "--count", "30", "--no-mtu"]);
    assert!(finding(&report, "icmp-rate-limit").is_some_and(|said| said.starts_with("hop 3: ")), "{report}");
    assert_eq!(finding(&report, "loss"), None, "{report}");
    chain.default_ttl(7, 60);
    let report = trace(&world, &chain, &[TARGET, "--no-mtu"]);
    let said = finding(&report, "asymmetry").expect("an asymmetry");
    assert!(said.contains("7 hops to hop 7 (10.0.7.2), about 11 on the reverse path"), "{said}");
}

#[test]
fn an_ordinary_user_gets_the_same() {
    let chain = Chain::new();
    chain.await_ipv6();
    for words in [&[TARGET][..], &[TARGET, "--protocol", "tcp"], &[TARGET6], &[TARGET, "--protocol", "icmp"]] {
        match chain.as_nobody(&[&["trace"], &QUICK[..], words].concat()) {
            Ok(said) => {
                let report: Value = serde_json::from_str(&said).expect("JSON");
                let prefix = if words[0] == TARGET { "10.0." } else { "fd00:" };
                assert_eq!(hops(&report), chain_of(prefix), "{words:?}");
            }
            Err(why) => return println!("NOT CHECKED: a trace of an ordinary user, since {why}"),
        }
    }
}

#[test]
fn ctrl_c_keeps_what_was_measured() {
    let (world, chain) = (alone(), Chain::new());
    let words = ["trace", TARGET, "-n", "--count", "1000", "--interval", "20ms", "--format=json", "-q"];
    let running = world.start_on(chain.client(), &words);
    narrows_sys::clock::sleep(std::time::Duration::from_millis(700));
    running.signal(SIGINT);
    let report = running.end().quiet(130).json();
    assert_eq!((hops(&report), &report["ending"]), (chain_of("10.0."), &"interrupted".into()));
    // It is in the store, and shown from there.
    let listed = world.run(&["history", "--format", "json"]).json();
    let run = &listed["runs"][0];
    assert_eq!(
        (&run["command"], &run["verdict"], &run["server"]),
        (&"trace".into(), &"ended early".into(), &TARGET.into())
    );
    let shown = world.run(&["history", "show", run["id"].as_str().expect("an id")]).out;
    assert!(shown.contains("10.0.6.2") && shown.contains("interrupted"), "{shown}");
}

#[test]
fn the_server_traces_the_path_back() {
    let (world, chain) = (alone(), Chain::new());
    let _server = world.serve_on(chain.host(usize::from(ROUTERS) + 1), &[]);
    let token = world.token_file();
    let report = trace(&world, &chain, &[TARGET, "--back", "--token-file", &token]);
    assert_eq!(hops(&report), chain_of("10.0."));
    let mut back: Vec<Vec<String>> = (1..=ROUTERS + 1).map(|net| vec![format!("10.0.{net}.1")]).collect();
    back.reverse();
    assert_eq!((hops(&report["back"]), &report["back"]["target"]), (back, &Value::from("10.0.1.1")));
    assert_eq!(finding(&report, "asymmetry"), None, "{report}");

    // The near end of a link sends 1400 bytes at most; a veth receives four more than its MTU, for a VLAN tag (`is_skb_forwardable`).
    chain.set_mtu(3, "right", 1400);
    let report = trace(&world, &chain, &[TARGET, "--back", "--token-file", &token]);
    assert_eq!((&report["mtu"]["path_bytes"], &report["back"]["mtu"]["path_bytes"]), (&1400.into(), &1404.into()));
    assert_eq!(finding(&report, "asymmetry"), Some("path MTU 1400 bytes there, 1404 bytes back (both traced)"));
    let said =
        world.run_on(chain.client(), &["trace", TARGET, "-n", "--no-save", "-i20ms", "--back", "--token-file", &token]);
    assert!(said.out.contains("\nback from 10.0.7.2 (10.0.1.1)  UDP port 33434, reached in 7 hops"), "{}", said.out);

    // An audit knows the hops.
    let audited = world.run_on(chain.client(), &["audit", TARGET, "--trace", "--token-file", &token, "--format=json"]);
    assert_eq!((audited.code, audited.err.as_str()), (Some(0), ""), "{audited:?}");
    let audit = audited.json();
    let hazards = audit["hazards"].as_array().expect("hazards").iter();
    let said: Vec<&str> = hazards
        .filter(|it| it["key"] == "path.mtu" && it["at"] == "path")
        .filter_map(|it| it["says"].as_str())
        .collect();
    assert!(said.iter().any(|it| it.starts_with("the MTU shrinks to 1400 bytes between hop 3")), "{said:?}");
    assert!(said.iter().any(|it| it.starts_with("way back: between hop")), "{said:?}");
    assert!(said.contains(&"path MTU 1400 bytes there, 1404 bytes back (both traced)"), "{said:?}");

    // A client without the token, and a host without a server.
    let open =
        world.run_on(chain.client(), &["trace", "10.0.1.2", "-n", "--no-save", "--back", "--token-file", &token]);
    assert_eq!(open.code, Some(1), "{open:?}");
    assert!(open.err.contains("cannot connect to 10.0.1.2:5220: connection refused"), "{open:?}");
}

#[test]
fn a_trace_that_goes_on_prints_each_interval_until_it_is_ended() {
    let (world, chain) = (alone(), Chain::new());
    let words = ["trace", TARGET, "-n", "--watch", "--count", "2", "--interval", "100ms", "--format", "ndjson", "-q"];
    let mut running = world.start_on(chain.client(), &words);
    (0..12).for_each(|_| running.await_line("{\"asked\":\"10.0.7.2\""));
    running.signal(SIGINT);
    let said = running.end().quiet(0);
    let last: Value = serde_json::from_str(said.out.lines().last().expect("lines")).expect("JSON");
    assert_eq!(hops(&last), chain_of("10.0."));
    assert!(last["hops"][3]["sent"].as_u64() > Some(4), "rounds go on after the path MTU: {last}");
    assert_eq!(last["mtu"]["path_bytes"], 1500);
}

#[test]
fn a_live_table_takes_keys_and_sizes_and_quits() {
    let (world, chain) = (alone(), Chain::new());
    let socket = world.path("tmux");
    let socket = socket.to_str().expect("text");
    let tmux = |words: &[&str]| run(chain.client(), "tmux", &[&["-f", "/dev/null", "-S", socket], words].concat());
    let narrows = format!("{} trace {TARGET} -n --watch -i 200ms --no-save; sleep 60", env!("CARGO_BIN_EXE_narrows"));
    if let Err(why) = tmux(&["new-session", "-d", "-x", "80", "-y", "24", "-s", "t", &narrows]) {
        return println!("NOT CHECKED: a live trace in a terminal, since {why}");
    }
    let shows = |words: &str| {
        for _ in 0..100 {
            let screen = tmux(&["capture-pane", "-p", "-t", "t"]).expect("a screen");
            if screen.contains(words) {
                return screen;
            }
            narrows_sys::clock::sleep(std::time::Duration::from_millis(100));
        }
        panic!("no `{words}`: {}", tmux(&["capture-pane", "-p", "-t", "t"]).expect("a screen"));
    };
    let screen = shows("path MTU  1500 bytes");
    assert!(screen.contains("10.0.7.2") && screen.contains("q quit  ? help"), "{screen}");
    tmux(&["send-keys", "-t", "t", "?"]).expect("a key");
    shows("asymm N: the answer");
    tmux(&["resize-window", "-t", "t", "-x", "120", "-y", "30"]).expect("a size");
    tmux(&["send-keys", "-t", "t", "?"]).expect("a key");
    shows("path MTU  1500 bytes");
    // As large as before: a tmux that grew in between fills the screen below with lines of the frame when that is left.
    tmux(&["resize-window", "-t", "t", "-x", "80", "-y", "24"]).expect("a size");
    tmux(&["send-keys", "-t", "t", "q"]).expect("a key");
    let screen = shows("interrupted");
    assert_eq!(screen.matches("path MTU").count(), 1, "the frame is replaced by the result: {screen}");
    tmux(&["kill-server"]).expect("an end");
}

#[test]
fn what_cannot_be_traced_is_explained() {
    on_loopback(|world| {
        let said = world.sentence(2, &["trace", "127.0.0.1", "--interval", "1ms"]);
        assert_eq!(said, "interval is 1 ms, but must be from 10 ms to 60 s");
        let said = world.sentence(2, &["trace", "127.0.0.1", "--first-hop", "9", "--max-hops", "3"]);
        assert_eq!(said, "first hop is 9, but must not be above the last, 3");
        assert_eq!(world.sentence(2, &["trace", "::1", "-4"]), "cannot trace `::1`: it has no IPv4 address");
        assert!(world.sentence(1, &["trace", "192.0.2.1"]).starts_with("cannot find a route to 192.0.2.1: "));
        // No group may: a raw socket does it for root.
        let said = world.run(&["trace", "127.0.0.1", "--protocol", "icmp", "--format", "json"]);
        let report = said.json();
        assert_eq!(
            (said.code, &report["protocol"], &report["hops"][0]["loss"]),
            (Some(0), &"icmp".into(), &0.0.into())
        );
    });
}
