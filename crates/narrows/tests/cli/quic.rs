//! Loads over QUIC: with the program's own server, and with what is none. `.ci/foreign` measures with other implementations.

use crate::world::{SIGINT, Said, World, on_loopback};
use narrows_sys::clock;
use serde_json::Value;
use std::net::UdpSocket;
use std::time::Duration;

fn measure(world: &World, server: &str, more: &str) -> Said {
    let words = format!("measure quic {server} {more} --no-save --format json");
    world.run(&words.split_whitespace().collect::<Vec<_>>())
}

/// Bytes of data of each flow of a summary.
fn bytes(report: &Value) -> Vec<u64> {
    let flows = report["summary"]["flows"].as_array().expect("flows");
    flows.iter().map(|flow| flow["total"]["bytes"].as_u64().expect("bytes")).collect()
}

#[test]
fn quic_is_measured_in_all_directions_by_time_and_by_bytes() {
    on_loopback(|world| {
        let (_server, _, token) = world.serve(&["--quic", "--quic-rate", "10G"]);
        let measure = |more: &str| measure(world, "127.0.0.1", &format!("--token-file {token} {more}")).quiet(0).json();
        for (way, flows) in [("-t 1", 1), ("-t 1 -R", 1), ("-t 1 --bidir -P 2 -C bbr", 2)] {
            let report = measure(way);
            let bytes = bytes(&report);
            assert!(bytes.len() == flows && bytes.iter().all(|bytes| *bytes > 1 << 20), "{way}: {report}");
            let stream = &report["streams"][0];
            let control = if way.contains("-R") { None } else { Some(if flows == 2 { "bbr" } else { "cubic" }) };
            assert_eq!(stream["congestion_control"].as_str(), control, "{stream}");
            assert_eq!(stream["server"], "127.0.0.1:4433", "{stream}");
        }
        for way in ["-n 3M", "-n 3M -R -P 2"] {
            let report = measure(way);
            let each = if way.contains("-P 2") { 2 } else { 1 };
            assert_eq!(bytes(&report), [each * (3 << 20)], "{way}: {report}");
        }
        let said =
            world.run(&["measure", "quic", "127.0.0.1", "--token-file", &token, "-t", "1", "--no-save"]).quiet(0);
        assert!(said.out.starts_with("QUIC to 127.0.0.1"), "{}", said.out);
        // Its key is not that of an authority.
        let why = measure_fails(world, "127.0.0.1", "-t 1");
        assert!(why.contains("cannot connect to 127.0.0.1 by QUIC: "), "{why}");
        // An interruption keeps what was measured.
        let words = ["measure", "quic", "127.0.0.1", "--token-file", &token, "-t", "30", "--format", "json"];
        let running = world.start(&words);
        clock::sleep(Duration::from_secs(2));
        running.signal(SIGINT);
        let said = running.end();
        assert_eq!(said.code, Some(130), "{said:?}");
        assert!(bytes(&said.json())[0] > 1 << 20, "{said:?}");
    });
}

#[track_caller]
fn measure_fails(world: &World, server: &str, more: &str) -> String {
    let said = measure(world, server, more);
    assert_eq!(said.code, Some(1), "{said:?}");
    said.err
}

#[test]
fn what_is_no_server_of_quic_is_said() {
    on_loopback(|world| {
        // One that answers with noise.
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let port = socket.local_addr().expect("an address").port();
        std::thread::spawn(move || {
            let mut buffer = [0; 2048];
            while let Ok((bytes, peer)) = socket.recv_from(&mut buffer) {
                buffer[..bytes].reverse();
                let _ = socket.send_to(&buffer[..bytes], peer);
            }
        });
        let began = clock::now();
        let why = measure_fails(world, &format!("127.0.0.1:{port}"), "-t 1 --insecure");
        assert!(why.contains(&format!("no answer from UDP port {port} within 4 s")), "{why}");
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
        for (words, why) in [
            ("-C dctcp", "QUIC has no congestion control dctcp; it has cubic, reno, bbr"),
            ("-P 0", "streams"),
            ("-t 1 -n 1M", "cannot be used with"),
        ] {
            let said = measure(world, "127.0.0.1", &format!("--insecure {words}"));
            assert!(said.code == Some(2) && said.err.contains(why), "{words}: {said:?}");
        }
    });
}
