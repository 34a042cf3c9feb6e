//! Three hosts: a client, one that sends in the name of a victim, and the victim. What the server sends to the victim.

use crate::abuse::https;
use crate::world::world;
use narrows_model::{Direction, Flow, LoadPlan, RrPlan, TcpPlan, Transaction, UdpPlan};
use narrows_sys::netns::Namespaces;
use narrows_sys::rtnl::Links;
use narrows_sys::udp::socket::connect_from;
use narrows_sys::{clock, files, net, sysctl};
use narrows_wire::api::{TrialReady, TrialRequest, key_from_hex};
use narrows_wire::probe::{Hello, Reply, go};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

const fn address(net: u8, host: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 66, net, host))
}
const CLIENT: IpAddr = address(1, 2);
const VICTIM: IpAddr = address(2, 2);
/// The server, as the client and the spoofer reach it.
const SERVER: IpAddr = address(1, 1);
/// The device of each of them.
const DEVICE: &str = "s";
/// Of Ethernet, IPv4 and UDP.
const HEADERS: u64 = 14 + 20 + 8;
/// An address that is asked for again (ARP), a few times.
const ARP: u64 = 4 * 42;

/// A host behind a device `name` of this one.
fn host(name: &str, own: Option<IpAddr>, its: IpAddr, routes: &[(IpAddr, u8, Option<IpAddr>)]) -> Namespaces {
    let (host, ()) = Namespaces::create(name, || Ok::<_, narrows_sys::Error>(())).expect("root, as every test here");
    let mut links = Links::open().expect("rtnetlink");
    links.add_veth(name, DEVICE, host.network()).expect("a pair of devices");
    links.set_up(name, true).expect("up");
    if let Some(own) = own {
        links.add_address(name, own, 30).expect("an address");
    }
    host.run(|| {
        let mut links = Links::open().expect("rtnetlink");
        links.set_up("lo", true).and_then(|()| links.set_up(DEVICE, true)).expect("up");
        links.add_address(DEVICE, its, if own.is_some() { 30 } else { 32 }).expect("an address");
        for (to, bits, by) in routes {
            links.add_route(DEVICE, *to, *bits, *by).expect("a route");
        }
    })
    .expect("the host");
    host
}

/// Bytes that a host has received and sent.
fn bytes(host: &Namespaces) -> (u64, u64) {
    let text =
        host.run(|| files::read_text("/proc/thread-self/net/dev".as_ref()).expect("counters")).expect("the host");
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix("s:")).expect("the device");
    let column = |nth| line.split_whitespace().nth(nth).and_then(|word| word.parse().ok()).expect("a number");
    (column(0), column(8))
}

/// Sends for a second in the victim's name to a port of the server; the bytes on the wire.
fn spoof(spoofer: &Namespaces, port: u16, datagrams: &[Vec<u8>]) -> u64 {
    let send = || {
        let to = SocketAddr::from((SERVER, port));
        let socket = connect_from(SocketAddr::from((VICTIM, 0)), to).expect("an address of this host");
        let mut sent = 0;
        for nth in 0..200 {
            let datagram = &datagrams[nth % datagrams.len()];
            // An error of an earlier one may be told here.
            if socket.send(datagram).is_ok() {
                sent += HEADERS + datagram.len() as u64;
            }
            clock::sleep(Duration::from_millis(5));
        }
        sent
    };
    spoofer.run(send).expect("the host")
}

/// Loads of every kind that a client may ask for with data from the server, and the stream whose hello is UDP.
fn engines() -> Vec<(&'static str, LoadPlan, Flow)> {
    let rr = |transaction| RrPlan {
        transaction,
        request_bytes: 64,
        duration_ms: 3_000,
        response_bytes: if transaction == Transaction::Udp { 60_000 } else { 64_000 },
        ..RrPlan::default()
    };
    let udp = UdpPlan { direction: Direction::Down, duration_ms: 3_000, ..UdpPlan::default() };
    vec![
        ("UDP down", udp.into(), Flow::Down),
        ("UDP requests", rr(Transaction::Udp).into(), Flow::Up),
        ("TCP", TcpPlan { direction: Direction::Down, ..TcpPlan::default() }.into(), Flow::Down),
        ("TCP requests", rr(Transaction::Tcp).into(), Flow::Down),
    ]
}

/// What the victim got, with a client that has this token or none, and a victim that answers with ICMP or not at all.
fn check(open: bool, answers: bool) {
    world(|world| {
        sysctl::write("net.ipv4.ip_forward", "0").expect("settable");
        let client = host("client", Some(SERVER), CLIENT, &[]);
        let back = [(address(1, 0), 30, Some(address(2, 1)))];
        let victim = host("victim", Some(address(2, 1)), VICTIM, if answers { &back } else { &[] });
        let spoofer = host("spoofer", None, VICTIM, &[(SERVER, 32, None)]);
        for device in ["all", "spoofer"] {
            sysctl::write(&format!("net.ipv4.conf.{device}.rp_filter"), "0").expect("settable");
        }
        let server = world.serve(|config| config.open = open);
        let port = server.port();
        let to = SocketAddr::from((SERVER, port));
        let token = server.token().filter(|_| !open);
        let token = token.map_or_else(String::new, |it| format!("authorization: Bearer {}\r\n", it.secret.reveal()));
        for (engine, plan, flow) in engines() {
            let name = format!("{engine}, guest {open}, the victim answers {answers}");
            let (mut before, mut sent) = (bytes(&victim).0, 0);
            let key = client.run(|| {
                let mut events = https::stream(to);
                let open = format!(
                    "POST /v1/sessions HTTP/1.1\r\nhost: x\r\n{token}transfer-encoding: chunked\r\n\r\n1\r\n\n\r\n"
                );
                std::io::Write::write_all(&mut events, open.as_bytes()).expect("sent");
                let session = https::until(&mut events, "\"session\":\"", "\"");
                let ask = |what: &str, body: &str| {
                    https::ask(to, &format!("POST /v1/sessions/{session}/{what}"), &token, body)
                };
                let request =
                    serde_json::to_string(&TrialRequest { plan: plan.clone(), light: false, machine: String::new() })
                        .expect("JSON");
                let ready = ask("trials", &request);
                let ready: TrialReady =
                    serde_json::from_str(&ready[ready.find('{').expect("JSON")..]).expect("a trial");
                let key = key_from_hex(&ready.key).expect("a key");
                let hello = |attempt| Hello { key, stream: 0, flow, attempt, time_ns: 0 }.encode(256);
                before = bytes(&victim).0;
                // In the victim's name: hellos with the right key, and what follows a hello.
                let guesses = [hello(1), go(0, 1_400), vec![0; 20]];
                sent += spoof(&spoofer, ready.data_port, &guesses);
                // The client proves its own address, and the other goes on in the victim's name.
                let own = connect_from(SocketAddr::from((CLIENT, 0)), SocketAddr::from((SERVER, ready.data_port)));
                let own = own.expect("an address of this host");
                own.set_read_timeout(Some(Duration::from_millis(500))).expect("a limit");
                own.send(&hello(2)).expect("sent");
                let mut buffer = [0; 2048];
                let reply = own.recv(&mut buffer).ok().and_then(|length| Reply::decode(&buffer[..length], 0).ok());
                if let Some(Reply::Ok { cookie, .. }) = reply {
                    ask("trials/begin", &format!("{{\"cookies\": {{\"0\": {cookie}}}}}"));
                    own.send(&go(0, 1_400)).expect("sent");
                    sent += spoof(&spoofer, ready.data_port, &guesses);
                }
                key
            });
            key.expect("the host");
            clock::sleep(Duration::from_secs(1));
            let after = bytes(&victim).0;
            let got = after - before;
            println!("{name}: sent {sent} bytes in its name, the victim got {got}");
            assert!(sent > 10_000, "{name}: {sent}");
            assert!(got <= 3 * sent + ARP, "{name}: {got} of {sent}");
            clock::sleep(Duration::from_millis(500));
            let late = bytes(&victim).0 - after;
            assert!(late <= ARP, "{name}: {late} bytes after a second");
        }
        // TCP: the server answers a SYN by itself, and asks once more.
        let (before, sent_before) = (bytes(&victim).0, bytes(&spoofer).1);
        let syns = || {
            for _ in 0..20 {
                // Given up before the SYN is repeated.
                let limit = Duration::from_millis(20);
                net::connect(to, limit, |_| Ok::<_, narrows_sys::Error>(())).expect_err("nobody answers");
            }
        };
        spoofer.run(syns).expect("the host");
        clock::sleep(Duration::from_secs(2));
        let after = bytes(&victim).0;
        clock::sleep(Duration::from_millis(2_500));
        let (late, sent) = (bytes(&victim).0 - after, bytes(&spoofer).1 - sent_before);
        println!("SYNs, guest {open}, the victim answers {answers}: sent {sent}, got {}", after - before);
        assert!(sent >= 20 * 54, "{sent}");
        assert!(after - before <= 3 * sent + ARP, "{} of {sent}", after - before);
        assert!(late <= ARP, "{late} bytes after two seconds");
    });
}

#[test]
fn a_silent_victim_gets_no_more_than_was_sent_in_its_name() {
    std::thread::scope(|scope| {
        for open in [false, true] {
            scope.spawn(move || check(open, false));
        }
    });
}

#[test]
fn a_victim_that_answers_gets_no_more_than_was_sent_in_its_name() {
    std::thread::scope(|scope| {
        for open in [false, true] {
            scope.spawn(move || check(open, true));
        }
    });
}
