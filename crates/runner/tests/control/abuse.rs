//! What else may come in through the port.

use crate::world::{short_plan, with_session, world};
use narrows_model::{Direction, Flow, UdpPlan};
use narrows_runner::Stop;
use narrows_runner::server::ServerHandle;
use narrows_sys::udp::socket::connect_from;
use narrows_sys::{clock, net};
use narrows_wire::api::{TrialReady, TrialRequest, key_from_hex};
use narrows_wire::probe::{Hello, Reply, go};
use narrows_wire::{DataHello, Key, Wanted};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

/// Where the server is, from its own host.
fn here(server: &ServerHandle) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, server.port()))
}

fn raw(server: &ServerHandle) -> TcpStream {
    raw_to(here(server))
}

fn raw_to(address: SocketAddr) -> TcpStream {
    let stream = net::connect(address, Duration::from_secs(5), |_| Ok::<_, narrows_sys::Error>(())).expect("the port");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a limit");
    stream
}

/// All that the server says until it closes; a reset is a close.
fn last_words(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    if let Err(error) = stream.read_to_end(&mut bytes) {
        assert_ne!(error.kind(), std::io::ErrorKind::WouldBlock, "it does not close");
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Bytes that look like nothing, the same in every run.
fn noise(count: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_be_bytes()[0]
    };
    (0..count).map(|_| next()).collect()
}

/// The server still does its work.
fn check_alive(world: &crate::world::World, server: &ServerHandle) {
    let (_remote, mut session) = with_session(world, server.port());
    session.trial(&short_plan().into(), &Stop::new(), &mut |_, _| {}).expect("a trial");
}

#[test]
fn plain_http_is_told_what_to_do() {
    world(|world| {
        let server = world.serve(|_| {});
        let mut stream = raw(&server);
        stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").expect("sent");
        let words = last_words(stream);
        assert!(words.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{words}");
        assert!(words.contains("This port speaks TLS. Use narrows, or: curl -k https://"), "{words}");
        check_alive(world, &server);
    });
}

#[test]
fn garbage_is_closed_without_noise() {
    world(|world| {
        let server = world.serve(|_| {});
        // As TLS begins, and goes on as nothing.
        let mut stream = raw(&server);
        let mut tls = vec![0x16, 3, 1, 0x02, 0];
        tls.extend(noise(2_000));
        stream.write_all(&tls).expect("sent");
        let words = last_words(stream);
        assert!(words.len() < 16, "at most a TLS alert: {words:?}");
        // A megabyte of nothing; the server may close before all of it was sent.
        let mut stream = raw(&server);
        let _ = stream.write_all(&noise(1 << 20));
        assert_eq!(last_words(stream), "");
        // A hello that is one, for a trial that is none.
        let mut stream = raw(&server);
        let hello = DataHello { key: Key([7; 32]), wanted: Wanted::Stream { id: 0, flow: Flow::Up } };
        stream.write_all(&hello.encode()).expect("sent");
        assert_eq!(last_words(stream), "no: no trial with this key expects this stream\n");
        check_alive(world, &server);
    });
}

#[test]
fn a_newer_client_is_told_which_end_to_upgrade() {
    world(|world| {
        let server = world.serve(|_| {});
        let mut hello = DataHello::probe().encode().to_vec();
        hello[5] = 9;
        hello.extend(noise(500)); // a newer one may be longer
        let mut stream = raw(&server);
        stream.write_all(&hello).expect("sent");
        let words = last_words(stream);
        assert!(words.starts_with("no: incompatible versions:"), "{words}");
        assert!(words.trim_end().ends_with("upgrade the server"), "{words}");

        let answer = https::get(here(&server), "narrows-protocol: 9 7.0.0\r\n");
        assert!(answer.starts_with("HTTP/1.1 426 Upgrade Required"), "{answer}");
        assert!(
            answer.contains("client narrows 7.0.0 (protocol 9)") && answer.contains("upgrade the server"),
            "{answer}"
        );
        check_alive(world, &server);
    });
}

#[test]
fn curl_works() {
    world(|world| {
        let server = world.serve(|_| {});
        let secret = server.token().expect("one").secret.reveal();
        let answer = https::get(here(&server), &format!("authorization: Bearer {secret}\r\n"));
        assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.contains("\"data_port\":"), "{answer}");
        let answer = https::get(here(&server), "");
        assert!(
            answer.starts_with("HTTP/1.1 401 Unauthorized") && answer.contains("\"reason\":\"no-token\""),
            "{answer}"
        );
    });
}

#[test]
fn a_thousand_idle_connections_keep_nobody_out() {
    world(|world| {
        let server = world.serve(|_| {});
        // Both ends are in this process, beside all that other tests have open.
        let files = narrows_sys::process::raise_open_files().expect("a limit");
        if files < 4096 {
            println!("NOT CHECKED: a thousand idle connections, since this user may have {files} files open");
            return;
        }
        let idle: Vec<_> = (0..1000).map(|_| raw(&server)).collect();
        check_alive(world, &server);
        // The oldest were closed to make room.
        let mut oldest = idle.into_iter().next().expect("one");
        let closed = oldest.read(&mut [0; 1]);
        assert!(matches!(closed, Ok(0)) || closed.is_err_and(|e| e.kind() == std::io::ErrorKind::ConnectionReset));
    });
}

#[test]
fn a_byte_a_second_is_cut() {
    world(|world| {
        let server = world.serve(|_| {});
        let slow = |bytes: &[u8]| {
            let mut stream = raw(&server);
            let sent = bytes.iter().take_while(|byte| {
                let sent = stream.write_all(&[**byte]).is_ok();
                clock::sleep(Duration::from_secs(1));
                sent
            });
            // Writing fails some time after the server has closed; it never takes all.
            let sent = sent.count();
            (sent, last_words(stream))
        };
        let (tls, http) = std::thread::scope(|scope| {
            let tls = scope.spawn(|| slow(&[0x16, 3, 1, 1, 0, 1, 0, 0, 0xfc, 3, 3, 0, 0, 0, 0]));
            let hello = scope.spawn(|| slow(&DataHello::probe().encode()[..15]));
            check_alive(world, &server);
            (tls.join().expect("no panic"), hello.join().expect("no panic"))
        });
        assert!(tls.0 < 15 && http.0 < 15, "cut after {} and {} bytes", tls.0, http.0);
        assert_eq!((tls.1.as_str(), http.1.as_str()), ("", ""));
    });
}

#[test]
fn a_tls_client_that_asks_for_nothing_is_cut() {
    world(|world| {
        let server = world.serve(|_| {});
        let mut stream = https::stream(here(&server));
        let mut bytes = Vec::new();
        // The greeting of HTTP may come; then the end, and no time-out.
        if let Err(error) = stream.read_to_end(&mut bytes) {
            assert_ne!(error.kind(), std::io::ErrorKind::WouldBlock, "it does not close");
        }
        check_alive(world, &server);
    });
}

#[test]
fn no_load_goes_to_an_address_that_did_not_ask_for_it() {
    world(|world| {
        let server = world.serve(|_| {});
        let token = format!("authorization: Bearer {}\r\n", server.token().expect("one").secret.reveal());
        let mut events = https::stream(here(&server));
        let open =
            format!("POST /v1/sessions HTTP/1.1\r\nhost: x\r\n{token}transfer-encoding: chunked\r\n\r\n1\r\n\n\r\n");
        events.write_all(open.as_bytes()).expect("sent");
        let session = https::until(&mut events, "\"session\":\"", "\"");
        let ask = |what: &str, body: &str| {
            https::ask(here(&server), &format!("POST /v1/sessions/{session}/{what}"), &token, body)
        };
        let plan = UdpPlan { direction: Direction::Down, duration_ms: 2_000, ..UdpPlan::default() };
        let plan = serde_json::to_string(&TrialRequest { plan: plan.into(), light: false, machine: String::new() })
            .expect("JSON");
        // A socket of this address says hello for a new trial; what the server answers.
        let hello = |from: [u8; 4]| {
            let ready = ask("trials", &plan);
            let ready: TrialReady = serde_json::from_str(&ready[ready.find('{').expect("JSON")..]).expect("a trial");
            let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, server.port()));
            let own = connect_from(SocketAddr::from((from, 0)), peer).expect("an address of this host");
            own.set_read_timeout(Some(Duration::from_secs(5))).expect("a limit");
            let key = key_from_hex(&ready.key).expect("a key");
            let hello = Hello { key, stream: 0, flow: Flow::Down, attempt: 1, time_ns: 0 };
            own.send(&hello.encode(256)).expect("sent");
            let mut buffer = [0; 2048];
            let length = own.recv(&mut buffer).expect("an answer");
            assert!(length <= 256);
            (own, Reply::decode(&buffer[..length], 0).expect("a reply"))
        };
        let load = |own: &UdpSocket, patience| {
            own.set_read_timeout(Some(patience)).expect("a limit");
            own.send(&go(0, 200)).expect("sent");
            own.recv(&mut [0; 2048]).is_ok()
        };
        let (third, reply) = hello([127, 0, 0, 2]);
        assert!(
            matches!(&reply, Reply::No(why) if why.contains("from 127.0.0.2, but the session is of 127.0.0.1")),
            "{reply:?}"
        );
        assert!(!load(&third, Duration::from_millis(300)));
        ask("trials/stop", "{}");
        https::until(&mut events, "\"event\":\"failed\"", "}");
        let (own, reply) = hello([127, 0, 0, 1]);
        let Reply::Ok { cookie, .. } = reply else { panic!("{reply:?}") };
        // Who did not see the answer cannot know it.
        ask("trials/begin", &format!("{{\"cookies\": {{\"0\": {}}}}}", cookie ^ 1));
        assert!(!load(&own, Duration::from_millis(300)));
        let why = https::until(&mut events, "\"event\":\"failed\"", "}");
        assert!(why.contains("did not prove that it receives UDP at 127.0.0.1"), "{why}");
        let (own, reply) = hello([127, 0, 0, 1]);
        let Reply::Ok { cookie, .. } = reply else { panic!("{reply:?}") };
        ask("trials/begin", &format!("{{\"cookies\": {{\"0\": {cookie}}}}}"));
        assert!(load(&own, Duration::from_secs(5)), "the load of a client that has proved its address");
        ask("trials/stop", "{}");
    });
}

/// A plain client of HTTP/1.1 over TLS that takes every key, as `curl -k` does.
pub(crate) mod https {
    use super::raw_to;
    use narrows_runner::remote::any_key;
    use rustls::pki_types::ServerName;
    use rustls::{ClientConnection, StreamOwned};
    use std::io::{Read as _, Write as _};
    use std::net::{SocketAddr, TcpStream};
    use std::sync::Arc;

    pub(crate) fn stream(server: SocketAddr) -> StreamOwned<ClientConnection, TcpStream> {
        let config = any_key(&[]).expect("TLS");
        let name = ServerName::try_from("narrows").expect("a name");
        let mut tcp = raw_to(server);
        let mut connection = ClientConnection::new(Arc::new(config), name).expect("a client");
        connection.complete_io(&mut tcp).expect("a handshake");
        StreamOwned::new(connection, tcp)
    }

    /// Reads until `begin` and then `end` came; what is between them.
    pub(crate) fn until(stream: &mut impl std::io::Read, begin: &str, end: &str) -> String {
        let mut text = String::new();
        let mut buffer = [0; 4096];
        loop {
            if let Some((_, rest)) = text.split_once(begin)
                && let Some((found, _)) = rest.split_once(end)
            {
                return found.to_owned();
            }
            let length = stream.read(&mut buffer).expect("more events");
            assert!(length > 0, "{begin} did not come: {text}");
            text.push_str(&String::from_utf8_lossy(&buffer[..length]));
        }
    }

    /// One request with a body; the answer with its head.
    pub(crate) fn ask(server: SocketAddr, request: &str, headers: &str, body: &str) -> String {
        let mut stream = stream(server);
        let length = body.len();
        let head =
            format!("{request} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n");
        stream.write_all(format!("{head}{body}").as_bytes()).expect("sent");
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("an answer");
        let answer = String::from_utf8(bytes).expect("text");
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{request}: {answer}");
        answer
    }

    pub(crate) fn get(server: SocketAddr, headers: &str) -> String {
        let mut stream = stream(server);
        let request = format!("GET /v1/hello HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("an answer");
        String::from_utf8(bytes).expect("text")
    }
}
