//! The connections of this host: filters, formats, and bad input.

use crate::world::{alone, on_loopback};
use serde_json::Value;
use std::net::{TcpListener, TcpStream};

#[test]
fn bad_filters_are_explained() {
    assert_eq!(
        alone().sentence(2, &["connections", "--interval", "1ms"]),
        "interval is 1 ms, but must be from 50 ms to 1 h"
    );
    let said = alone().run(&["connections", "--peer", "nobody"]);
    assert!(
        said.code == Some(2) && said.err.contains("must be an IP address, as 192.0.2.7 or 2001:db8::/32"),
        "{said:?}"
    );
    let said = alone().sentence(2, &["connections", "--cgroup", "no/such/group", "--once"]);
    assert!(said.starts_with("cannot find the control group: /sys/fs/cgroup/no/such/group: "), "{said}");
    let said = alone().run(&["connections", "--token-file", "x"]);
    assert!(said.code == Some(2) && said.err.contains("--peer-host"), "{said:?}");
    on_loopback(|world| {
        let said = world.sentence(1, &["connections", "--peer-host", "127.0.0.1", "--once"]);
        assert!(said.starts_with("cannot connect to 127.0.0.1:5220: connection refused"), "{said}");
    });
}

#[test]
fn an_idle_connection_is_counted_and_shown_with_full() {
    on_loopback(|world| {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let stream = TcpStream::connect(address).expect("connected");
        let port = address.port().to_string();
        let only = ["connections", "--once", "--interval", "100ms", "--port", &port];
        let text = world.run(&only).out;
        assert!(text.contains("2 connections, 0 with data") && text.contains("2 connections without data"), "{text}");
        let view = world.run(&[&only[..], &["--format", "json", "--peer", "127.0.0.0/8"]].concat()).json();
        let all = view["connections"].as_array().expect("a list");
        assert_eq!((all.len(), &view["matching"]), (2, &Value::from(2)));
        let local = stream.local_addr().expect("an address").to_string();
        let one = all.iter().find(|it| it["local"] == local.as_str()).expect("this one");
        assert_eq!((&one["limit"], &one["why"]), (&Value::from("idle"), &Value::from("no data")));
        assert_eq!(one["process"]["pid"], std::process::id());
        let none = world.run(&[&only[..], &["--peer", "192.0.2.0/24"]].concat()).out;
        assert!(none.contains("0 connections, 0 with data"), "{none}");
        let full = world.run(&[&only[..], &["--full"]].concat()).out;
        assert!(full.contains("  idle  ") && full.contains(&format!("127.0.0.1:{port}")), "{full}");
    });
}
