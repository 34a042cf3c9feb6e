//! Watching interfaces, where it cannot be, and how it ends.

use crate::world::{SIGINT, alone, on_loopback};
use serde_json::Value;

#[test]
fn one_end_is_named_or_this_host_alone() {
    let said = alone().run(&["watch"]);
    assert_eq!(said.code, Some(2));
    assert!(said.err.starts_with("error: the following required arguments were not provided:\n  <HOST>"), "{said:?}");
    let said = alone().run(&["watch", "server", "--local"]);
    assert!(said.code == Some(2) && said.err.contains("cannot be used with"), "{said:?}");
    assert_eq!(
        alone().sentence(2, &["watch", "--local", "--interval", "1ms"]),
        "interval is 1 ms, but must be from 50 ms to 1 h"
    );
}

#[test]
fn both_ends_are_read_so_often() {
    on_loopback(|world| {
        let (_server, port, token) = world.serve(&[]);
        let way = ["watch", "127.0.0.1", "--port", &port, "--token-file", &token, "--interval", "50ms"];
        let said = world.run(&[&way[..], &["--count", "3", "--format", "ndjson"]].concat()).quiet(0);
        let views: Vec<Value> = said.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(views.len(), 3);
        for view in &views {
            let places: Vec<_> = view["ends"].as_array().expect("ends").iter().map(|end| &end["place"]).collect();
            assert_eq!(places, ["client", "server"]);
            assert_eq!(view["ends"][1]["interfaces"][0]["name"], "lo");
            assert!(view["ends"][1]["interfaces"][0]["rx"]["now_bps"].is_number(), "{view}");
        }
        let text = world.run(&[&way[..], &["--count", "1", "--full"]].concat()).out;
        assert!(text.contains("client (here)") && text.contains("server (here)") && text.contains("lo "), "{text}");
        assert!(!text.contains('\x1b'), "no terminal, no painting: {text:?}");
    });
}

#[test]
fn ctrl_c_ends_it_and_a_lost_server_is_silent() {
    on_loopback(|world| {
        let (server, port, token) = world.serve(&[]);
        let mut client =
            world.start(&["watch", "127.0.0.1", "--port", &port, "--token-file", &token, "--interval", "50ms"]);
        client.await_line("server (here)");
        drop(server);
        client.await_line("  silent: lost the server at 127.0.0.1:");
        client.await_line("client (here)");
        client.signal(SIGINT);
        client.end().quiet(0);
    });
}

#[test]
fn an_open_server_does_not_show_its_interfaces() {
    on_loopback(|world| {
        let (_server, port, _) = world.serve(&["--open"]);
        assert_eq!(
            world.sentence(1, &["watch", "127.0.0.1", "--port", &port]),
            "this server is open and shows its interfaces only to clients with its token"
        );
    });
}
