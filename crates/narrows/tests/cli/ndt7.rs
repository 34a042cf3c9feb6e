//! A server of ndt7 as the other end: one of the test's own, which behaves well or not. `.ci/foreign` measures with the tool's own one.

use crate::world::{Said, World, on_loopback};
use narrows_sys::clock;
use serde_json::Value;
use std::net::{TcpListener, TcpStream};
use std::time::Duration;
use tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tungstenite::{Message, WebSocket, accept_hdr};

/// What a server does after the handshake; whether of an upload.
type Serve = fn(&mut WebSocket<TcpStream>, bool);

/// Serves one connection after the other, with this subprotocol; its address as narrows takes it.
fn server(protocol: &'static str, serve: Serve) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut is_upload = false;
            #[allow(clippy::result_large_err)] // tungstenite's
            let greet = |request: &Request, mut response: Response| -> Result<Response, ErrorResponse> {
                is_upload = request.uri().path() == "/ndt/v7/upload";
                if !protocol.is_empty() {
                    let value = protocol.parse().expect("a value");
                    response.headers_mut().insert("Sec-WebSocket-Protocol", value);
                }
                Ok(response)
            };
            if let Ok(mut socket) = accept_hdr(stream, greet) {
                serve(&mut socket, is_upload);
            }
        }
    });
    format!("ndt7+ws://127.0.0.1:{port}")
}

const NDT7: &str = "net.measurementlab.ndt.v7";

/// Sends or receives as long as it goes, and says so.
fn well(socket: &mut WebSocket<TcpStream>, is_upload: bool) {
    let (began, mut told, mut bytes) = (clock::now(), clock::now(), 0);
    let data = vec![7; 1 << 16];
    loop {
        if is_upload {
            match socket.read() {
                Ok(Message::Binary(data)) => bytes += data.len(),
                Ok(Message::Close(_)) | Err(_) => return,
                Ok(_) => {}
            }
        } else if socket.send(Message::Binary(data.clone().into())).is_ok() {
            bytes += data.len();
        } else {
            return;
        }
        if told.elapsed() > Duration::from_millis(100) {
            told = clock::now();
            let us = clock::micros_since(began);
            let text = format!(
                r#"{{"AppInfo":{{"NumBytes":{bytes},"ElapsedTime":{us}}},"TCPInfo":{{"RTT":90,"MinRTT":20,"RWndLimited":{us},"ElapsedTime":{us}}}}}"#
            );
            if socket.send(Message::text(text)).is_err() || socket.send(Message::Ping(vec![1].into())).is_err() {
                return;
            }
        }
    }
}

fn measure(world: &World, server: &str, more: &str) -> Said {
    let words = format!("measure tcp {server} {more} --no-save --format json");
    world.run(&words.split_whitespace().collect::<Vec<_>>())
}

#[test]
fn a_server_of_ndt7_is_measured_and_diagnosed() {
    on_loopback(|world| {
        let server = server(NDT7, well);
        for way in ["-t 1", "-t 1 -R"] {
            let said = measure(world, &server, way);
            assert_eq!(said.code, Some(0), "{said:?}");
            let report: Value = serde_json::from_str(&said.out).expect("JSON");
            let flows = report["summary"]["flows"].as_array().expect("flows");
            assert!(
                flows.len() == 1 && flows[0]["total"]["bytes"].as_u64().is_some_and(|bytes| bytes > 1 << 20),
                "{report}"
            );
        }
        let words = ["diagnose", &server, "-t", "2", "--budget", "10s", "--no-save", "--exit-zero", "--format", "json"];
        let said = world.run(&words);
        assert_eq!(said.code, Some(0), "{said:?}");
        let report: Value = serde_json::from_str(&said.out).expect("JSON");
        assert!(report["verdict"]["goodput_bps"].as_f64().is_some_and(|bps| bps > 1e6), "{report}");
    });
}

#[test]
fn what_a_server_of_ndt7_does_wrong_is_said() {
    on_loopback(|world| {
        let says = |server: &str, words: &str| {
            let said = measure(world, server, words);
            assert_eq!(said.code, Some(1), "{said:?}");
            said.err
        };
        // Another protocol, and none.
        assert!(says(&server("chat", well), "-t 1").contains("SubProtocol"));
        assert!(says(&server("", well), "-t 1").contains("SubProtocol"));
        // It ends at once.
        let ended = says(&server(NDT7, |_, _| {}), "-t 2");
        assert!(ended.contains("lost the ndt7 server"), "{ended}");
        // A message beyond all limits.
        let large = server(NDT7, |socket, _| _ = socket.send(Message::Binary(vec![0; (1 << 24) + 1].into())));
        assert!(says(&large, "-t 2 -R").contains("too long"));
        // What cannot be.
        let good = server(NDT7, well);
        for (words, why) in
            [("-t 11", "10 s"), ("-P 2", "one stream"), ("--bidir", "one direction"), ("-n 1M", "by time")]
        {
            let said = measure(world, &good, words);
            assert!(said.code == Some(2) && said.err.contains(why), "{words}: {said:?}");
        }
        let why = world.sentence(2, &["measure", "tcp", "127.0.0.1", "--insecure"]);
        assert!(why.contains("ndt7://"), "{why}");
        // Words without end, and no data: the test has no figure, and ends.
        let chatty =
            server(NDT7, |socket, _| while socket.send(Message::text("{\"TCPInfo\":{\"ElapsedTime\":1}}")).is_ok() {});
        let began = clock::now();
        let said = measure(world, &chatty, "-t 1 -R");
        assert!(said.code == Some(1) && began.elapsed() < Duration::from_secs(30), "{said:?}");
    });
}
