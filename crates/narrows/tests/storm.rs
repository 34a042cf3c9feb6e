//! All that strangers can do to a server, at once, while it measures: idle connections, garbage, TLS without a token, HTTP/2 with a
//! window of zero, single bytes, inventories in a loop. `NARROWS_STORM_S=60` (`make server-check`) for so long, and for the comparison with a
//! calm server.

use narrows_model::lab::Impairment;
use narrows_runner::demo::Stage;
use narrows_runner::emulated::LabSpec;
use narrows_sys::{clock, files, net, process};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme, StreamOwned};
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const PORT: u16 = 5220;
/// Connections that one source may have before it has shown a token.
const OF_ONE_SOURCE: usize = 256;

/// Takes every key, as `curl -k` does.
#[derive(Debug)]
struct Any;

impl ServerCertVerifier for Any {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }
    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }
    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ECDSA_NISTP256_SHA256]
    }
}

/// A connection to the server from inside its host.
fn raw() -> Option<TcpStream> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, PORT));
    let stream = net::connect(address, Duration::from_secs(1), |_| Ok::<_, narrows_sys::Error>(())).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(1))).ok()?;
    stream.set_write_timeout(Some(Duration::from_secs(1))).ok()?;
    Some(stream)
}

fn tls(config: &Arc<ClientConfig>) -> Option<StreamOwned<ClientConnection, TcpStream>> {
    let mut tcp = raw()?;
    let mut connection = ClientConnection::new(config.clone(), ServerName::try_from("narrows").ok()?).ok()?;
    connection.complete_io(&mut tcp).ok()?;
    Some(StreamOwned::new(connection, tcp))
}

fn config(protocol: &[u8]) -> Arc<ClientConfig> {
    let mut config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Any))
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    config.resumption = rustls::client::Resumption::disabled();
    Arc::new(config)
}

/// A request to open a session, by HTTP/2 with a window of zero: the answer can never be sent (RFC 9113, sections 4.1, 6.5.2; RFC 7541,
/// section 6.2.2: literals without an index).
fn windowless() -> Vec<u8> {
    let frame = |kind: u8, flags: u8, stream: u8, body: &[u8]| {
        let length = u8::try_from(body.len()).expect("short");
        [&[0, 0, length, kind, flags, 0, 0, 0, stream], body].concat()
    };
    let literal = |name: &str, value: &str| {
        let word = |text: &str| [&[u8::try_from(text.len()).expect("short")], text.as_bytes()].concat();
        [vec![0], word(name), word(value)].concat()
    };
    let head = [(":method", "POST"), (":scheme", "https"), (":authority", "x"), (":path", "/v1/sessions")];
    let head = head.map(|(name, value)| literal(name, value)).concat();
    let settings = frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]);
    [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), settings, frame(1, 4, 1, &head), frame(0, 1, 1, b"\n")].concat()
}

/// What is done to the server, how often, and how often it was done.
struct Attack {
    name: &'static str,
    per_second: f64,
    done: AtomicU64,
    /// Connections that it keeps open.
    keeps: usize,
    go: Box<dyn Fn() -> Option<Held> + Sync + Send>,
}

/// What an attack keeps.
enum Held {
    Nothing,
    Plain(#[allow(dead_code)] TcpStream),
    Tls(#[allow(dead_code)] Box<StreamOwned<ClientConnection, TcpStream>>),
}

fn attacks() -> Vec<Attack> {
    let attack = |name, per_second, keeps, go| Attack { name, per_second, done: AtomicU64::new(0), keeps, go };
    let (h1, h2) = (config(b"http/1.1"), config(b"h2"));
    let asking = |config: Arc<ClientConfig>, request: &'static [u8]| {
        Box::new(move || {
            let mut stream = tls(&config)?;
            stream.write_all(request).ok()?;
            // Whatever it answers is an answer.
            (stream.read(&mut [0; 512]).ok()? <= 512).then_some(Held::Nothing)
        })
    };
    vec![
        attack("idle connections", 400.0, 1_000, Box::new(|| raw().map(Held::Plain))),
        attack(
            "garbage",
            200.0,
            0,
            Box::new(|| {
                let noise: [u8; 2048] = narrows_sys::random::bytes().ok()?;
                raw()?.write_all(&noise).ok()?;
                Some(Held::Nothing)
            }),
        ),
        attack(
            "TLS without a token",
            200.0,
            0,
            asking(h1.clone(), b"GET /v1/hello HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"),
        ),
        attack(
            "inventories without a session",
            50.0,
            0,
            asking(
                h1,
                b"POST /v1/sessions/0/inventory HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}",
            ),
        ),
        attack(
            "HTTP/2 windows of zero",
            20.0,
            100,
            Box::new(move || {
                let mut stream = tls(&h2)?;
                stream.write_all(&windowless()).ok()?;
                Some(Held::Tls(Box::new(stream)))
            }),
        ),
        attack(
            "single bytes",
            20.0,
            100,
            Box::new(|| {
                let mut stream = raw()?;
                stream.write_all(&[0x16]).ok()?;
                Some(Held::Plain(stream))
            }),
        ),
    ]
}

/// Attacks until told to stop, at its rate if the server lets it.
fn run(attack: &Attack, stop: &AtomicBool) {
    let mut held = std::collections::VecDeque::new();
    let begin = clock::now();
    let mut turn = 0_u32;
    while !stop.load(Ordering::Relaxed) {
        if let Some(kept) = (attack.go)() {
            attack.done.fetch_add(1, Ordering::Relaxed);
            if attack.keeps > 0 {
                held.push_back(kept);
            }
            if held.len() > attack.keeps {
                held.pop_front();
            }
        }
        turn += 1;
        let due = Duration::from_secs_f64(f64::from(turn) / attack.per_second);
        clock::sleep(due.saturating_sub(begin.elapsed()).min(Duration::from_millis(100)));
    }
}

/// The server's processes: itself and its helpers.
fn processes(server: u32) -> Vec<u32> {
    let children = format!("/proc/{server}/task/{server}/children");
    let list = files::read_text(Path::new(&children)).unwrap_or_default();
    [server].into_iter().chain(list.split_whitespace().filter_map(|id| id.parse().ok())).collect()
}

/// Resident memory in kilobytes, and open descriptors, of all of them.
fn size(server: u32) -> (u64, usize) {
    let memory = |pid: &u32| {
        let text = files::read_text(Path::new(&format!("/proc/{pid}/status"))).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
        line.split_whitespace().next().and_then(|kilobytes| kilobytes.parse().ok()).unwrap_or(0)
    };
    let open = |pid: &u32| files::list(Path::new(&format!("/proc/{pid}/fd"))).map_or(0, |names| names.len());
    let all = processes(server);
    (all.iter().map(memory).sum::<u64>(), all.iter().map(open).sum())
}

/// Goodput of a TCP load of so long, bit/s.
fn goodput(stage: &Stage, seconds: u64, more: &[&str]) -> f64 {
    let time = format!("{seconds}s");
    let words = [&["measure", "tcp", "server", "-t", &time, "--format", "json", "--no-save", "-q"], more].concat();
    let output = stage.client(&words).expect("a client").output().expect("a process");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    report["summary"]["flows"][0]["total"]["goodput_bps"].as_f64().expect("a goodput")
}

#[test]
fn a_storm_of_strangers_neither_stops_a_test_nor_fills_the_server() {
    let asked: Option<u64> = std::env::var("NARROWS_STORM_S").ok().and_then(|seconds| seconds.parse().ok());
    let seconds = asked.unwrap_or(4);
    if process::raise_open_files().expect("a limit") < 4096 {
        println!("NOT CHECKED: a storm of connections, since this user may have too few files open");
        return;
    }
    let way = Impairment { rate_bps: 200_000_000, delay_us: 2_000, ..Impairment::default() };
    let spec = LabSpec { name: "storm".to_owned(), up: way.clone(), down: way, ..LabSpec::default() };
    let scratch = tempfile::tempdir().expect("a directory");
    let log = scratch.path().join("audit").to_string_lossy().into_owned();
    let flags = ["--parallel", "4", "--audit-log", &log];
    let stage = Stage::with_program(&spec, &flags, env!("CARGO_BIN_EXE_narrows").into()).expect("a lab");
    let server = stage.server_id().expect("a server");
    let calm = asked.map(|seconds| goodput(&stage, seconds.min(20), &[]));
    let attacks = attacks();
    let stop = AtomicBool::new(false);
    let (stormy, starts, largest) = std::thread::scope(|scope| {
        let host = stage.lab.host("server").expect("a host");
        for attack in &attacks {
            scope.spawn(|| host.run(|| run(attack, &stop)));
        }
        clock::sleep(Duration::from_secs(1));
        let load = scope.spawn(|| goodput(&stage, seconds, &[]));
        let (mut starts, mut largest) = (Vec::new(), (0, 0));
        while !load.is_finished() {
            let begin = clock::now();
            // One second of its own, at a rate that takes nothing from the other.
            goodput(&stage, 1, &["--pacing-rate", "1M"]);
            starts.push(begin.elapsed().as_secs_f64() - 1.0);
            let now = size(server);
            largest = (largest.0.max(now.0), largest.1.max(now.1));
            clock::sleep(Duration::from_millis(500));
        }
        stop.store(true, Ordering::Relaxed);
        (load.join().expect("no panic"), starts, largest)
    });
    for attack in &attacks {
        let done = attack.done.load(Ordering::Relaxed);
        println!("{done:>7} {} in {} s", attack.name, seconds + 1);
        assert!(done > 0, "no {}", attack.name);
    }
    let (memory, open) = largest;
    let logged = files::read_text(Path::new(&log)).map_or(0, |text| text.len() as u64);
    println!("memory {} MB (wanted 100), descriptors {open}, log {} B/s", memory / 1000, logged / (seconds + 1));
    let worst = starts.iter().copied().fold(0.0, f64::max);
    println!("a new test took {worst:.2} s more than its second at most, of {} (wanted 2)", starts.len());
    if let Some(calm) = calm {
        let (stormy, calm) = (stormy / 1e6, calm / 1e6);
        println!("{stormy:.1} of {calm:.1} Mbit/s: {:+.2} % (wanted -3)", (stormy / calm - 1.0) * 100.0);
    }
    assert!(memory < 100_000, "{memory} kB");
    // Both places of a source, what the sessions use, and what each process has.
    assert!(open < 2 * OF_ONE_SOURCE + 200, "{open} descriptors");
    assert!(logged <= 10_000 * (seconds + 3), "{logged} bytes of log");
    assert_eq!(stage.server_id(), Some(server), "the server lives");
}
