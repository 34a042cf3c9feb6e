//! The ways in which the other end is not there.

use crate::world::{connect_error, options, spec, world};
use narrows_model::Family;
use narrows_runner::remote::{RemoteError, TargetSpec};
use narrows_runner::server::{ServeError, Server};
use std::io::Write as _;
use std::net::SocketAddr;

fn target(asked: &str, port: u16) -> TargetSpec {
    TargetSpec { asked: asked.to_owned(), family: None, port, token: None }
}

#[test]
fn each_way_of_not_being_there_has_its_sentence() {
    world(|_| {
        let error = connect_error(&target("no-such-host.invalid", 1), &options());
        assert!(error.to_string().starts_with("cannot resolve `no-such-host.invalid`: "), "{error}");
        let error = connect_error(&target("127.0.0.1", 1), &options());
        assert_eq!(
            error.to_string(),
            "cannot connect to 127.0.0.1:1: connection refused; start `narrows serve` \
            there, or give its port with --port"
        );
        let error = connect_error(&target("192.0.2.1", 5220), &options());
        assert!(error.to_string().starts_with("cannot connect to 192.0.2.1:5220: no route"), "{error}");
        let mut ipv6 = target("127.0.0.1", 1);
        ipv6.family = Some(Family::Ipv6);
        let error = connect_error(&ipv6, &options());
        assert!(error.to_string().contains("127.0.0.1"), "{error}");
    });
}

#[test]
fn another_service_is_told_by_what_it_says() {
    world(|_| {
        let listener = narrows_sys::net::listen(0).expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let service = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("the client");
            stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n").expect("sent");
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
        });
        let error = connect_error(&target("127.0.0.1", port), &options());
        assert!(matches!(error, RemoteError::NotNarrows { .. }), "{error:?}");
        assert!(error.to_string().contains("is not a narrows server"), "{error}");
        service.join().expect("the service");
    });
}

#[test]
fn a_bound_server_is_reached_at_its_address_alone() {
    world(|world| {
        let server = world.serve(|config| config.bind = Some([127, 0, 0, 7].into()));
        let at = |asked: &str| {
            let mut spec = spec(world, server.port());
            spec.asked = asked.to_owned();
            spec
        };
        let remote = narrows_runner::remote::Remote::connect(&at("127.0.0.7"), &options()).expect("its address");
        let mut session = remote.open_session(&mut |_, _| true).expect("a session");
        let plan = narrows_model::UdpPlan { duration_ms: 200, ..narrows_model::UdpPlan::default() };
        session.trial(&plan.into(), &narrows_runner::Stop::new(), &mut |_, _| {}).expect("UDP at that address, too");
        let error = connect_error(&at("127.0.0.1"), &options());
        assert!(matches!(error, RemoteError::Refused(_)), "{error:?}");
    });
}

#[test]
fn both_families_reach_the_one_port() {
    world(|world| {
        let server = world.serve(|_| {});
        for (asked, family) in [("127.0.0.1", Family::Ipv4), ("::1", Family::Ipv6), ("localhost", Family::Ipv4)] {
            let mut spec = spec(world, server.port());
            spec.asked = asked.to_owned();
            spec.family = Some(family);
            let remote = narrows_runner::remote::Remote::connect(&spec, &options()).expect(asked);
            assert_eq!(remote.target().family, family);
            assert_eq!(remote.data_address().port(), server.port());
            let times = remote.idle_rtt_us(5).expect("probes");
            assert!(times.len() == 5 && times.is_sorted(), "{times:?}");
        }
    });
}

#[test]
fn a_taken_port_is_named() {
    world(|world| {
        let server = world.serve(|_| {});
        let mut config = world.config();
        config.port = server.port();
        let error = Server::start(config).expect_err("taken");
        assert!(matches!(error, ServeError::PortTaken(port) if port == server.port()));
        assert!(error.to_string().contains("choose another with --port"), "{error}");
        // And it is free again as soon as the server has stopped.
        let port = server.port();
        server.stop();
        let again = narrows_sys::net::listen_at(SocketAddr::from(([127, 0, 0, 1], port)));
        assert!(again.is_ok(), "{again:?}");
    });
}
