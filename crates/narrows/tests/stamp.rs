//! STAMP sessions over an emulated path: every loss in its direction, and the other implementations that there are (`stamp-suite`, scapy),
//! both ways, where they are installed.

#![allow(clippy::disallowed_methods, clippy::panic)] // a test that runs programs and fails loudly

use narrows_model::Flow;
use narrows_model::lab::Impairment;
use narrows_runner::demo::Stage;
use narrows_runner::emulated::LabSpec;
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The lab's client networks.
const CLIENTS: &str = "10.77.0.0/24,fd77::/64";

fn stage(up: Impairment, serve: &[&str]) -> Stage {
    let down = Impairment { delay_us: 3_000, loss: 0.01, duplicate: 0.01, ..Impairment::default() };
    let spec = LabSpec { name: "stamp".to_owned(), up, down, ..LabSpec::default() };
    Stage::with_program(&spec, serve, env!("CARGO_BIN_EXE_narrows").into()).expect("a lab")
}

fn session(stage: &Stage, more: &[&str]) -> (Option<i32>, Value) {
    let words = [&["measure", "stamp"][..], more, &["--format", "json", "--no-save", "-q"]].concat();
    let output = stage.on_client(&words).expect("a client").output().expect("a process");
    let report = serde_json::from_slice(&output.stdout);
    (output.status.code(), report.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr))))
}

fn number(report: &Value, path: &str) -> u64 {
    report.pointer(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("{path} in {report}"))
}

#[test]
fn each_loss_is_of_the_direction_where_it_was() {
    let up = Impairment { delay_us: 7_000, loss: 0.03, ..Impairment::default() };
    let stage = stage(up, &["--stamp", "862", "--stamp-peer", CLIENTS]);
    let dropped = |flow| stage.lab.counters(flow).dropped_loss;
    let copied = || stage.lab.counters(Flow::Down).duplicated;
    let before = (dropped(Flow::Up), dropped(Flow::Down), copied());
    let (code, report) = session(&stage, &["server", "-i", "1ms", "-t", "2s", "--dscp", "46"]);
    let truth = [dropped(Flow::Up) - before.0, dropped(Flow::Down) - before.1, copied() - before.2];
    assert_eq!((code, number(&report, "/sent")), (Some(0), 2_000));
    let seen = [number(&report, "/up/lost"), number(&report, "/down/lost"), number(&report, "/down/copies")];
    let unknown = number(&report, "/lost_unknown");
    // The probe before the session may lose up to three packets; the last packets of a session are of an unknown direction; the copy of
    // a probe's reply is not the session's.
    for (seen, truth) in seen.into_iter().zip(truth) {
        assert!(seen <= truth && truth <= seen + unknown + 3, "{seen} of {truth}, {unknown} unknown: {report}");
    }
    assert_eq!(number(&report, "/lost"), seen[0] + seen[1] + unknown);
    assert_eq!((number(&report, "/up/reordered"), number(&report, "/up/copies")), (0, 0));
    assert_eq!(report.pointer("/up/dscp/0/0"), Some(&46.into()));
    assert_eq!(report.pointer("/down/dscp/0/0"), Some(&46.into()), "a known peer chooses the DSCP of replies");
    // 10 ms are the path's, which delivers some tens of microseconds early each way; a machine that pauses adds to them.
    let rtt_ns = number(&report, "/rtt_ns/min");
    assert!((9_900_000..30_000_000).contains(&rtt_ns), "{rtt_ns}");
}

#[test]
fn strangers_get_no_answer() {
    let stage = stage(Impairment::default(), &["--stamp", "862", "--stamp-peer", "192.0.2.0/24"]);
    let (code, report) = session(&stage, &["server", "-i", "20ms", "-t", "100ms"]);
    assert_eq!((code, number(&report, "/replies")), (Some(1), 0));
    assert!(report["remarks"][0].as_str().expect("a remark").starts_with("nothing came back"), "{report}");
    // Nobody is there: the kernel says so.
    let (code, report) = session(&stage, &["server:863", "-i", "20ms", "-t", "100ms"]);
    assert_eq!(code, Some(1));
    assert!(report["remarks"][0].as_str().expect("a remark").starts_with("the port is closed"), "{report}");
}

/// Ends with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn peer(stage: &Stage, host: &str, program: &str, words: &[&str]) -> Ended {
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let child = stage.lab.host(host).expect("a host").run(|| command.spawn()).expect("in it").expect("a process");
    Ended(child)
}

#[test]
fn sessions_with_stamp_suite_either_way() {
    if Command::new("stamp-suite").arg("--version").output().is_err() {
        return println!(
            "NOT CHECKED: sessions with stamp-suite, since it is not installed (cargo install stamp-suite)"
        );
    }
    let directory = tempfile::tempdir().expect("a directory");
    let key = directory.path().join("key");
    std::fs::write(&key, "000102030405060708090a0b0c0d0e0f").expect("written");
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o400)).expect("set");
    let key = Path::to_str(&key).expect("plain");
    let up = Impairment { delay_us: 2_000, ..Impairment::default() };
    for closed in [false, true] {
        let mut serve = vec!["--stamp", "8700", "--stamp-any"];
        let (theirs, ours): (&[&str], &[&str]) =
            if closed { (&["-A", "A", "--hmac-key-file", key], &["--key", key]) } else { (&[], &[]) };
        if closed {
            serve.extend(["--stamp-key", key]);
        }
        let stage = stage(up.clone(), &serve);
        // Our sender, their reflector, with and without extensions.
        let _reflector = peer(
            &stage,
            "server",
            "stamp-suite",
            &[&["-i", "-o", "8620", "--stateful-reflector"][..], theirs].concat(),
        );
        std::thread::sleep(Duration::from_millis(500));
        for plain in [&[][..], &["--no-extensions"]] {
            let words = [&["server:8620", "-4", "-i", "5ms", "-t", "1s", "--dscp", "10"][..], ours, plain].concat();
            let (code, report) = session(&stage, &words);
            assert_eq!(
                (code, number(&report, "/up/lost"), number(&report, "/up/reordered")),
                (Some(0), 0, 0),
                "{report}"
            );
            assert!(number(&report, "/replies") >= 150);
            assert_eq!(report.pointer("/up/dscp/0/0").and_then(Value::as_u64), plain.is_empty().then_some(10));
        }
        // Their sender, our reflector.
        let server = stage.lab.address_of("server", narrows_model::Family::Ipv4).expect("an address").to_string();
        let words = [&["--remote-addr", &server, "-p", "8700", "-c", "100", "-d", "5", "-L", "1"][..], theirs].concat();
        let mut sender = peer(&stage, "client", "stamp-suite", &words);
        let mut text = String::new();
        let mut out = sender.0.stdout.take().expect("piped");
        std::io::Read::read_to_string(&mut out, &mut text).expect("text");
        let received = text.lines().find_map(|line| line.strip_prefix("Packets received: ")).expect("a count");
        assert!(received.parse::<u32>().expect("a number") >= 80, "{text}");
    }
}

/// Scapy's packets of RFC 8762 and 8972 on plain sockets: `reflector PORT` answers, `sender ADDRESS PORT COUNT` prints each reply's fields.
const SCAPY: &str = r#"
import json, socket, sys, time
from scapy.contrib.stamp import *
def parsed(kind, data):  # scapy 2.5 takes the length from the UDP header
    return kind(data, _parent=UDP(len=8 + len(data)))
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
if sys.argv[1] == "reflector":
    udp.bind(("0.0.0.0", int(sys.argv[2])))
    udp.setsockopt(socket.IPPROTO_IP, 12, 1)  # IP_RECVTTL
    print("ready", flush=True)
    count = 0
    while True:
        data, control, _, peer = udp.recvmsg(2000, 100)
        ttl = [int.from_bytes(it[2], sys.byteorder) for it in control if it[:2] == (0, 2)][0]
        of = parsed(STAMPSessionSenderTestUnauthenticated, data)
        now = time.time() + 2208988800
        udp.sendto(bytes(STAMPSessionReflectorTestUnauthenticated(
            seq=count, ts=now, ts_rx=now, ssid=of.ssid, seq_sender=of.seq, ts_sender=of.ts, ttl_sender=ttl,
            err_estimate=ErrorEstimate(S=1, scale=8, multiplier=1), err_estimate_sender=of.err_estimate,
            tlv_objects=of.tlv_objects)), peer)
        count += 1
udp.settimeout(5)
udp.connect((sys.argv[2], int(sys.argv[3])))
for count in range(int(sys.argv[4])):
    now = time.time() + 2208988800
    udp.send(bytes(STAMPSessionSenderTestUnauthenticated(
        seq=1000 + count, ts=now, ssid=0x4711, err_estimate=ErrorEstimate(S=1, scale=8, multiplier=9),
        tlv_objects=[STAMPTestTLV(type=1, len=20, value=b"\x07" * 20)])))
    data = udp.recv(2000)
    it = parsed(STAMPSessionReflectorTestUnauthenticated, data)
    print(json.dumps(dict(
        size=len(data), seq=it.seq, ssid=it.ssid, seq_sender=it.seq_sender, ttl_sender=it.ttl_sender,
        scale=it.err_estimate_sender.scale, multiplier=it.err_estimate_sender.multiplier, mbz=it.mbz1 + it.mbz2,
        sent_off=abs(float(it.ts_sender) - now), path=[float(it.ts_rx) - now, float(it.ts) - float(it.ts_rx)],
        tlvs=[[data[44], tlv.type, tlv.value.hex()] for tlv in it.tlv_objects])))
"#;

#[test]
fn packets_of_scapy_either_way() {
    let has = |it: &&str| Command::new(it).args(["-c", "import scapy.contrib.stamp"]).stderr(Stdio::null()).status();
    let Some(python) = ["python3", "/usr/bin/python3"].into_iter().find(|it| has(it).is_ok_and(|it| it.success()))
    else {
        return println!("NOT CHECKED: packets of scapy, since it is missing (Debian: apt-get install python3-scapy)");
    };
    let up = Impairment { delay_us: 20_000, ..Impairment::default() };
    let down = Impairment { delay_us: 3_000, ..Impairment::default() };
    let spec = LabSpec { name: "stamp".to_owned(), up, down, ..LabSpec::default() };
    let serve = ["--stamp", "8700", "--stamp-peer", CLIENTS];
    let stage = Stage::with_program(&spec, &serve, env!("CARGO_BIN_EXE_narrows").into()).expect("a lab");
    // Their sender, our reflector.
    let server = stage.lab.address_of("server", narrows_model::Family::Ipv4).expect("an address").to_string();
    let mut sender = peer(&stage, "client", python, &["-c", SCAPY, "sender", &server, "8700", "5"]);
    let mut text = String::new();
    std::io::Read::read_to_string(&mut sender.0.stdout.take().expect("piped"), &mut text).expect("text");
    let replies: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(replies.len(), 5, "{text}");
    for (count, it) in replies.iter().enumerate() {
        let numbers =
            ["size", "seq", "ssid", "seq_sender", "ttl_sender", "scale", "multiplier", "mbz"].map(|at| &it[at]);
        let wanted = [68, count, 0x4711, 1000 + count, 64, 8, 9, 0].map(Value::from);
        assert_eq!(numbers, wanted.each_ref(), "{it}");
        let seconds = |path: &str| it.pointer(path).and_then(Value::as_f64).expect("a number");
        assert!(seconds("/sent_off") < 1e-5 && seconds("/path/0") >= 0.019 && seconds("/path/1") >= 0.0, "{it}");
        assert_eq!(it["tlvs"], serde_json::json!([[0, 1, "07".repeat(20)]]), "extra padding comes back, known");
    }
    // Our sender, their reflector, which gives extensions back as they are.
    let mut reflector = peer(&stage, "server", python, &["-c", SCAPY, "reflector", "8620"]);
    let mut ready = String::new();
    let mut out = std::io::BufReader::new(reflector.0.stdout.take().expect("piped"));
    std::io::BufRead::read_line(&mut out, &mut ready).expect("a line");
    for plain in [&[][..], &["--no-extensions"]] {
        let (code, report) = session(&stage, &[&["server:8620", "-4", "-i", "20ms", "-t", "1s"][..], plain].concat());
        assert_eq!((code, number(&report, "/sent"), number(&report, "/replies")), (Some(0), 50, 50), "{report}");
        assert!(number(&report, "/rtt_ns/min") >= 22_900_000, "{report}");
    }
}
