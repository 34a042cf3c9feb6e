//! The other end through ssh, with a local command in its stead.

use crate::world::{END, World, connect_error, options, read_sysctl, short_plan, until, world};
use narrows_model::Setting;
use narrows_runner::Stop;
use narrows_runner::remote::{Options, Remote, RemoteError, TargetSpec};

fn target(asked: &str) -> TargetSpec {
    TargetSpec { asked: asked.to_owned(), family: None, port: 5220, token: None }
}

fn instead(words: &[&str]) -> Options {
    let mut options = options();
    options.instead_of_ssh = Some(words.iter().map(|word| (*word).to_owned()).collect());
    options
}

fn server(world: &World) -> Options {
    instead(&[END, "serve", &world.state().display().to_string(), "tune", "stdio"])
}

#[test]
fn no_port_and_no_token_are_needed() {
    world(|world| {
        let remote = Remote::connect(&target("ssh://somebody@127.0.0.1"), &server(world)).expect("over pipes");
        assert!(remote.hello().permissions.tune);
        assert_eq!(remote.idle_rtt_us(3).expect("probes").len(), 3);
        let before = read_sysctl("net.ipv4.tcp_sack");
        let mut session = remote.open_session(&mut |_, _| true).expect("a session");
        session.trial(&short_plan().into(), &Stop::new(), &mut |_, _| {}).expect("a trial");
        assert!(session.inventory().expect("an inventory").facts.len() > 20);
        session.apply(&Setting::Sysctl { key: "net.ipv4.tcp_sack".into(), value: "0".into() }).expect("set");
        assert_eq!(read_sysctl("net.ipv4.tcp_sack"), "0");
        let port = remote.data_address().port();
        drop(session);
        drop(remote);
        assert_eq!(read_sysctl("net.ipv4.tcp_sack"), before);
        until("the server's port is free", || narrows_sys::net::listen(port).is_ok());
        assert!(!world.state().join("token").exists(), "ssh needs no token");
    });
}

#[test]
fn what_ssh_says_is_passed_on() {
    world(|_| {
        let denied = "echo 'ops@db7: Permission denied (publickey).' >&2; exit 255";
        let error = connect_error(&target("ssh://ops@db7"), &instead(&["/bin/sh", "-c", denied]));
        assert!(matches!(error, RemoteError::Ssh { .. }), "{error:?}");
        assert!(error.to_string().ends_with("failed: ops@db7: Permission denied (publickey)."), "{error}");
        let error = connect_error(&target("ssh://db7"), &instead(&["/bin/sh", "-c", "exit 3"]));
        assert!(error.to_string().contains("without output"), "{error}");
        let error = connect_error(&target("ssh://db7"), &instead(&["no-such-ssh"]));
        assert!(error.to_string().contains("`no-such-ssh` is not installed on this host"), "{error}");
        // A login that greets on standard output is no server.
        let error = connect_error(&target("ssh://db7"), &instead(&["/bin/sh", "-c", "echo Welcome to db7"]));
        assert!(matches!(error, RemoteError::Ssh { .. }), "{error:?}");
    });
}
