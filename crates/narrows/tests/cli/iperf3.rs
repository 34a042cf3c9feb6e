//! Real iperf3 as the other end, on both sides: byte counts agree exactly, and a broken client harms no other.

use crate::world::{Ended, Running, World, on_loopback};
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The port of iperf3's own server; each test has a network of its own.
const PORT: &str = "5201";

/// Runs a test where iperf3 is installed.
pub(crate) fn with_iperf3(what: &str, test: impl FnOnce(&World) + Send) {
    match Command::new("iperf3").arg("--version").output() {
        Ok(_) => on_loopback(test),
        Err(error) => println!("NOT CHECKED: {what}, since iperf3 cannot be started: {error}"),
    }
}

/// A client of iperf3 with its result as JSON.
pub(crate) fn client(port: &str, words: &str) -> Child {
    let mut command = Command::new("iperf3");
    command.args(["-c", "127.0.0.1", "-p", port, "-J"]).args(words.split_whitespace());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("iperf3")
}

pub(crate) fn result(child: Child) -> Value {
    let output = child.wait_with_output().expect("its output");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn bytes(result: &Value, sum: &str) -> u64 {
    result["end"][sum]["bytes"].as_u64().unwrap_or_else(|| panic!("no {sum}: {result}"))
}

pub(crate) fn serve(world: &World) -> (Running, String) {
    serve_for(world, &[])
}

fn serve_for(world: &World, flags: &[&str]) -> (Running, String) {
    let (mut server, _, _) = world.serve(&[&["--iperf3", "0", "--user", "root"], flags].concat());
    let line = server.line_of_errors();
    let port = line.strip_prefix("iperf3 clients are served on port ").and_then(|rest| rest.split(' ').next());
    (server, port.unwrap_or_else(|| panic!("no port: {line}")).to_owned())
}

#[test]
fn clients_of_iperf3_are_served() {
    with_iperf3("the server for iperf3", |world| {
        let (_server, port) = serve(world);
        for words in ["-n 4M", "-k 20 -P 3", "-n 4M --bidir -b 100M"] {
            let result = result(client(&port, words));
            assert_eq!(result["error"], Value::Null, "{words}");
            assert_eq!(bytes(&result, "sum_sent"), bytes(&result, "sum_received"), "{words}: {result}");
        }
        for words in [
            "-t 1 -R -b 20M -M 1000 -w 200K -C reno",
            "-t 1 -O 1 -b 20M -P 2 --get-server-output",
            "-t 1 -u -b 8M --bidir -P 2",
        ] {
            let result = result(client(&port, words));
            assert_eq!(result["error"], Value::Null, "{words}");
            let received = result["end"]["sum_received"]["bytes"].as_u64().or(result["end"]["sum"]["bytes"].as_u64());
            assert!(received.is_some_and(|bytes| bytes > 0), "{words}: {result}");
            assert_eq!(words.contains("output"), result["server_output_text"].is_string(), "{words}: {result}");
        }
        let refused = result(client(&port, "-t 4000"));
        // 3.12 has no words for it.
        assert!(
            refused["error"].as_str().is_some_and(|error| error.contains("37") || error.contains("duration")),
            "{refused}"
        );
    });
}

#[test]
fn many_at_once_and_a_broken_one_harms_none() {
    with_iperf3("many clients of iperf3 at once", |world| {
        let (_server, port) = serve(world);
        let connect = || TcpStream::connect(("127.0.0.1", port.parse().expect("a port"))).expect("connected");
        let clients: Vec<_> =
            (0..12).map(|n| client(&port, if n % 3 == 0 { "-u -t 2 -b 1M" } else { "-t 2 -b 1M" })).collect();
        // Killed while data flows, in each direction and protocol.
        for words in ["-t 30 -b 1M", "-t 30 -b 1M -R", "-u -t 30 -b 1M -R"] {
            let mut killed = client(&port, words);
            std::thread::sleep(Duration::from_millis(300));
            killed.kill().expect("it runs");
            killed.wait().expect("a child");
        }
        let idle = connect();
        let mut garbage = connect();
        garbage.write_all(&[0xFF; 4000]).expect("sent");
        // One that leaves after each word.
        let cookie = [&[b'a'; 36][..], &[0]].concat();
        let params = serde_json::json!({"tcp": true, "time": 1, "parallel": 2}).to_string();
        let params = [&(params.len() as u32).to_be_bytes(), params.as_bytes()].concat();
        for words in [vec![], vec![&params[..]], vec![&params[..3]], vec![&[0xFF; 8][..]], vec![&params[..], &[16][..]]]
        {
            let mut broken = connect();
            broken.write_all(&cookie).expect("sent");
            broken.set_read_timeout(Some(Duration::from_secs(5))).expect("an option");
            assert_eq!(broken.read(&mut [0]).expect("its first word"), 1);
            for word in words {
                let _ = broken.write_all(word);
            }
            // The next one has the same cookie: wait until the server has seen the end of this one.
            broken.shutdown(std::net::Shutdown::Write).expect("shut down");
            while matches!(broken.read(&mut [0; 64]), Ok(1..)) {}
        }
        for client in clients {
            let result = result(client);
            assert_eq!(result["error"], Value::Null, "{result}");
        }
        drop(idle);
    });
}

/// A server of iperf3 itself.
pub(crate) fn own_server(port: &str, flags: &[&str]) -> Ended {
    let mut command = Command::new("iperf3");
    command.args(["-s", "-p", port, "--forceflush"]).args(flags).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut server = Ended(command.spawn().expect("iperf3"));
    let read = server.0.stdout.as_mut().expect("piped").read(&mut [0; 64]).expect("its first words");
    assert!(read > 0);
    server
}

#[test]
fn a_server_of_iperf3_is_measured() {
    with_iperf3("a server of iperf3", |world| {
        let _server = own_server(PORT, &[]);
        let measure = |words: &str| {
            let words = format!("measure {words} --no-save --no-collect");
            let said = world.run(&words.split_whitespace().collect::<Vec<_>>());
            assert_eq!(said.code, Some(0), "{words}: {said:?}");
            said.out
        };
        let run = |words: &str| -> Value { serde_json::from_str(&measure(words)).expect("JSON") };
        for (words, flows) in
            [("-n 2M -P 2", 1), ("-t 1 -R -b 20M", 1), ("-t 1 --bidir -b 20M", 2), ("-t 2 -O 1 -b 20M", 1)]
        {
            let report = run(&format!("tcp iperf3://127.0.0.1 {words} --format json"));
            let found = report["summary"]["flows"].as_array().expect("flows");
            assert_eq!(found.len(), flows, "{words}");
            for flow in found {
                let received = flow["total"]["bytes"].as_u64().expect("bytes");
                assert!(received > 0 && (words != "-n 2M -P 2" || received == 4 << 20), "{words}: {flow}");
            }
        }
        for words in ["-b 8M", "-b 8M -R", "-b 8M --bidir -P 2"] {
            let report = run(&format!("udp iperf3://127.0.0.1 -t 1 --size 1000 {words} --format json"));
            for flow in report["summary"]["flows"].as_array().expect("flows") {
                let [sent, received] = ["sent", "received"].map(|end| flow["total"][end]["datagrams"].as_u64());
                assert!(sent.is_some_and(|sent| sent > 100 && Some(sent) >= received), "{words}: {flow}");
            }
        }
        let busy = client(PORT, "-t 3 -b 1M");
        std::thread::sleep(Duration::from_millis(500));
        let said = world.run(&["measure", "tcp", "iperf3://127.0.0.1", "-t", "1", "-q", "--no-save"]);
        let words = "narrows: the iperf3 server at 127.0.0.1:5201 answered: the server is busy running a test. try again later\n";
        assert_eq!((said.code, said.err.as_str()), (Some(1), words));
        drop(result(busy));
    });
}

/// The files of a server with one user, `ada` with `secret`: private key, public key, list.
fn users(world: &World) -> Option<[String; 3]> {
    let [private, public] = ["private.pem", "public.pem"].map(|name| world.path(name).display().to_string());
    let made = |words: &[&str]| Command::new("openssl").args(words).output().is_ok_and(|it| it.status.success());
    let keys =
        made(&["genrsa", "-out", &private, "2048"]) && made(&["rsa", "-in", &private, "-pubout", "-out", &public]);
    // printf '{ada}secret' | sha256sum
    let hash = "649724750d24496f99e258b0020be5c96fd77bdd660faf0e7b4e0e155af4c831";
    keys.then(|| [private, public, world.file("users", &format!("ada,{hash}\n"))])
}

#[test]
fn users_of_iperf3_are_known_by_their_passwords() {
    with_iperf3("the users of iperf3", |world| {
        let Some([private, public, list]) = users(world) else {
            println!("NOT CHECKED: the users of iperf3, since openssl made no key");
            return;
        };
        let files = ["--rsa-private-key-path", &private, "--authorized-users-path", &list];
        let theirs = |port: &str, password: Option<&str>| {
            let mut command = Command::new("iperf3");
            command.args(["-c", "127.0.0.1", "-p", port, "-J", "-n", "1M"]).stdin(Stdio::null());
            if let Some(password) = password {
                command.env("IPERF3_PASSWORD", password).args(["--username", "ada", "--rsa-public-key-path", &public]);
            }
            let output = command.output().expect("iperf3");
            serde_json::from_slice::<Value>(&output.stdout).expect("JSON")["error"].clone()
        };
        let ours = |port: &str, password: Option<&str>, old: bool| {
            let server = format!("iperf3://127.0.0.1:{port}");
            let mut words = vec!["measure", "tcp", &server, "-n", "1M", "-q", "--no-save"];
            if password.is_some() {
                words.extend(["--username", "ada", "--rsa-public-key-path", &public]);
            }
            words.extend(old.then_some("--use-pkcs1-padding"));
            let mut command = world.command(&words);
            let output = command.env("IPERF3_PASSWORD", password.unwrap_or_default()).output().expect("narrows");
            (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
        };
        let refused = "test authorization failed";
        let log = world.path("audit").display().to_string();
        let (_server, port) = serve_for(world, &[&files[..], &["--audit-log", &log]].concat());
        assert_eq!(theirs(&port, Some("secret")), Value::Null);
        for password in [Some("wrong"), None] {
            let error = theirs(&port, password);
            assert!(error.as_str().is_some_and(|it| it.contains(refused)), "{password:?}: {error}");
            let (code, said) = ours(&port, password, false);
            assert!(code == Some(1) && said.contains(refused), "{password:?}: {said}");
        }
        // Both paddings, since versions of iperf3 differ.
        for old in [false, true] {
            let (code, said) = ours(&port, Some("secret"), old);
            assert_eq!(code, Some(0), "{old}: {said}");
        }

        let told = std::fs::read_to_string(&log).expect("the audit log");
        let measured = told.lines().filter(|line| line.contains(r#""event":"measured""#)).collect::<Vec<_>>();
        let of = |who: &str| measured.iter().filter(|line| line.contains(&format!(r#""who":"{who}""#))).count();
        assert!(of("iperf3 user ada") >= 2 && of("stranger") >= 2, "{told}");

        // With iperf3's own server, of either padding.
        let _theirs = own_server("5301", &files);
        let good = [true, false].map(|old| ours("5301", Some("secret"), old).0);
        assert!(good.contains(&Some(0)), "{good:?}");
        assert_eq!(ours("5301", Some("wrong"), good[0] == Some(0)).0, Some(1));

        // What makes no sense.
        let key = ["--username", "ada", "--rsa-public-key-path", &public];
        let why = world.sentence(2, &[&["measure", "tcp", "iperf3://127.0.0.1"], &key[..]].concat());
        assert_eq!(why, "cannot log in as ada: set IPERF3_PASSWORD to the password");
        let why = world.sentence(1, &["serve", "--iperf3", "0", files[0], &public, files[2], &list]);
        assert!(why.starts_with("cannot read a private RSA key from"), "{why}");
    });
}
