//! Tests of responsiveness over an emulated path whose queue is in one direction, and what strangers do to the server meanwhile.

#![allow(clippy::disallowed_methods, clippy::panic)] // a test that runs programs and fails loudly

use narrows_model::Family;
use narrows_model::lab::Impairment;
use narrows_runner::demo::Stage;
use narrows_runner::emulated::LabSpec;
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

fn stage(down_queue_bytes: u64) -> Stage {
    let way = |queue_bytes| Impairment { rate_bps: 20_000_000, delay_us: 5_000, queue_bytes, ..Impairment::default() };
    let spec = LabSpec { name: "nq".to_owned(), up: way(25_000), down: way(down_queue_bytes), ..LabSpec::default() };
    Stage::with_program(&spec, &["--responsiveness"], env!("CARGO_BIN_EXE_narrows").into()).expect("a lab")
}

fn test(stage: &Stage, more: &[&str]) -> (Option<i32>, Value, String) {
    let words = [&["measure", "responsiveness", "server"][..], more, &["--format", "json", "--no-save", "-q"]].concat();
    let output = stage.on_client(&words).expect("a client").output().expect("a process");
    let report = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (output.status.code(), report, String::from_utf8_lossy(&output.stderr).into_owned())
}

fn number(report: &Value, path: &str) -> f64 {
    report.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("{path} in {report}"))
}

#[test]
fn a_queue_is_seen_in_its_direction() {
    // 100 ms down, 10 ms up.
    let stage = stage(250_000);
    let token = stage.scratch.join("token");
    let token = token.to_str().expect("plain");
    let (code, report, said) = test(&stage, &["-i", "500ms", "-t", "6s", "--token-file", token]);
    assert_eq!((code, said.as_str()), (Some(0), ""), "{report}");
    assert_eq!((&report["directions"][0]["flow"], &report["directions"][1]["flow"]), (&"down".into(), &"up".into()));
    let [down, up] = [0, 1].map(|nth| number(&report, &format!("/directions/{nth}/increase_ns")));
    assert!(down > 2.0 * up && down > 50e6, "{down} {up}: {report}");
    for nth in [0, 1] {
        assert!(number(&report, &format!("/directions/{nth}/goodput_bps")) > 1e6, "{report}");
        assert!(number(&report, &format!("/directions/{nth}/responsiveness/rpm")) > 0.0, "{report}");
        assert!(number(&report, &format!("/directions/{nth}/self_ns/count")) > 0.0, "{report}");
    }
    let remarks = report["remarks"].to_string();
    assert!(remarks.contains("key is that of its token") && remarks.contains("bufferbloat down"), "{remarks}");
    // Without a token, or with another server's.
    let (code, _, said) = test(&stage, &[]);
    assert!(code == Some(2) && said.contains("no token of it is known"), "{said}");
    let other = tempfile::tempdir().expect("a directory");
    let foreign = narrows_runner::trust::Identity::load_or_make(other.path(), None).expect("made").token_file;
    let (code, _, said) = test(&stage, &["--token-file", foreign.to_str().expect("plain")]);
    assert!(code == Some(1) && said.starts_with("narrows: cannot test against server:4043: "), "{said}");
}

/// What the server sends until it closes the connection.
fn rest(stream: &TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("an option");
    match stream.take(1 << 20).read_to_end(&mut bytes) {
        Ok(_) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => bytes,
        Err(error) => panic!("not closed: {error}"),
    }
}

#[test]
fn garbage_and_idle_connections_harm_nobody() {
    let stage = stage(250_000);
    let address = stage.lab.address_of("server", Family::Ipv4).expect("an address");
    let to = SocketAddr::new(address, 4043);
    let open =
        || stage.lab.host("client").expect("a host").run(|| TcpStream::connect(to)).expect("in it").expect("open");
    let garbage: Vec<TcpStream> = (0..20_u8)
        .map(|nth| {
            let mut stream = open();
            let bytes: &[u8] = match nth % 4 {
                0 => b"GET / HTTP/1.1\r\n\r\n",
                1 => b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                2 => &[0x16, 3, 1, 0xff, 0xff],
                _ => &[nth; 5_000],
            };
            // It may be closed before all is sent.
            let _ = stream.write_all(bytes);
            stream
        })
        .collect();
    let idle: Vec<TcpStream> = (0..300).map(|_| open()).collect();
    // Each is closed by the server, those beyond the limit at once.
    assert!(garbage.iter().all(|stream| rest(stream).len() < 1_000));
    assert!(idle.iter().all(|stream| rest(stream).is_empty()));
    let (code, report, said) = test(&stage, &["-d", "down", "-i", "200ms", "-t", "1s", "--insecure"]);
    assert_eq!((code, said.as_str()), (Some(0), ""), "{report}");
    assert!(report["remarks"].to_string().contains("was not checked"), "{report}");
}
