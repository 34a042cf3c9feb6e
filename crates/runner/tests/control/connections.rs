//! What a server tells of its host's TCP connections: those with the address that asks, and no others.

use crate::world::{connect, connect_as_guest, world};
use narrows_sys::net;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

#[test]
fn only_connections_with_the_client_are_told() {
    world(|world| {
        let server = world.serve(|_| {});
        let look = connect(world, server.port());
        let asks = look.data_address().ip().to_canonical();
        let session = look.open_look().expect("a look");
        let listener = net::listen(0).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        // The client, over loopback, has the address of the server; the other family is that of somebody else.
        let open = |ip: IpAddr| {
            let to = SocketAddr::new(ip, port);
            let mut out = net::connect(to, Duration::from_secs(5), |_| Ok::<_, narrows_sys::Error>(())).expect("open");
            let (mut into, _) = listener.accept().expect("accepted");
            out.write_all(b"seven b").expect("sent");
            into.read_exact(&mut [0; 7]).expect("received");
            let pair = (out.local_addr().expect("an address"), to);
            (out, into, pair)
        };
        let [v4, v6] = [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)].map(open);
        let (own, others) = if asks.is_ipv4() { (v4.2, v6.2) } else { (v6.2, v4.2) };
        let nowhere = (own.0, SocketAddr::new(own.1.ip(), 1));
        let told = session.connections(&[own, others, nowhere]).expect("told");
        let [one] = &told[..] else { panic!("{told:#?}") };
        assert_eq!((one.remote, one.local, one.tcp.bytes_received), (own.0, own.1, Some(7)));
        assert_eq!((one.inode, one.cgroup), (0, None), "of its host nothing else is told");
        assert!(session.connections(&[]).expect("told").is_empty());
        // The times of two readings are of one clock.
        let later = session.connections(&[own]).expect("told");
        assert!(later[0].at_us > one.at_us && later[0].id == one.id);
        let error = session.connections(&vec![own; 4097]).expect_err("too many").to_string();
        assert_eq!(error, "the server says: at most 4096 connections can be asked for at once");
    });
}

#[test]
fn without_a_token_no_connection_is_told() {
    world(|world| {
        let server = world.serve(|config| config.open = true);
        let session = connect_as_guest(world, server.port()).open_look().expect("a look");
        let error = session.connections(&[]).expect_err("not told").to_string();
        assert_eq!(error, "this server is open and shows its connections only to clients with its token");
    });
}
