//! Changes of the server's host, and their way back when something dies.

use crate::world::{connect, read_sysctl, until, with_session, world};
use narrows_model::{Place, Setting};
use narrows_runner::tune::{Tuner, Undone};

const KEY: &str = "net.ipv4.tcp_rmem";
const VALUE: &str = "4096 131072 262144";

fn setting() -> Setting {
    Setting::Sysctl { key: KEY.into(), value: VALUE.into() }
}

#[test]
fn a_change_is_made_undone_kept_or_undone_with_its_session() {
    world(|world| {
        let server = world.serve(|config| config.allow_tune = true);
        let remote = connect(world, server.port());
        assert!(remote.hello().permissions.tune);
        let before = read_sysctl(KEY);
        let session = remote.open_session(&mut |_, _| true).expect("a session");
        let change = session.apply(&setting()).expect("set");
        assert_eq!((change.at, change.before.as_str(), change.in_force), (Place::Server, before.as_str(), true));
        assert_eq!(read_sysctl(KEY), VALUE);
        assert_eq!(session.changes().expect("a list"), std::slice::from_ref(&change));
        assert!(!session.undo(&change.id).expect("undone").in_force);
        assert_eq!(read_sysctl(KEY), before);

        session.apply(&setting()).expect("set");
        session.close();
        assert_eq!(read_sysctl(KEY), before, "the end of the session is the end of its changes");

        let session = remote.open_session(&mut |_, _| true).expect("a session");
        let change = session.apply(&setting()).expect("set");
        session.keep(&change.id).expect("kept");
        session.close();
        assert_eq!(read_sysctl(KEY), VALUE);
        // A kept one has its way back in the journal, and a new server leaves it alone.
        drop(remote);
        server.stop();
        assert!(world.serve(|_| {}).recovered().is_empty());
        assert_eq!(Tuner::new(world.state(), "tune").undo(&change.id).expect("undone"), Undone::SetBack);
        assert_eq!(read_sysctl(KEY), before);
    });
}

#[test]
fn what_may_not_be_set_is_refused_with_a_reason() {
    world(|world| {
        let server = world.serve(|_| {});
        let (remote, session) = with_session(world, server.port());
        let error = session.apply(&setting()).expect_err("not allowed").to_string();
        assert_eq!(error, "this server does not allow changes; restart it with `narrows serve --allow-tune`");
        drop(session);
        drop(remote);
        let server = world.serve(|config| config.allow_tune = true);
        let (_remote, session) = with_session(world, server.port());
        let panic = Setting::Sysctl { key: "kernel.panic".into(), value: "1".into() };
        let error = session.apply(&panic).expect_err("not in the table").to_string();
        assert!(error.starts_with("the server says: narrows does not set the kernel parameter"), "{error}");
        assert!(
            session.undo("someone-elses").expect_err("none").to_string().contains("unknown change of this session")
        );
    });
}

#[test]
fn a_killed_client_leaves_nothing_changed() {
    world(|world| {
        let server = world.serve(|config| config.allow_tune = true);
        let before = read_sysctl(KEY);
        let host = format!("127.0.0.1:{}", server.port());
        let mut client = world.process(&["change", &world.token_file(), &host, KEY, VALUE]);
        client.word("changed");
        assert_eq!(read_sysctl(KEY), VALUE);
        client.kill();
        until("the change of a killed client is undone", || read_sysctl(KEY) == before);
        until("its journal is empty", || Tuner::new(world.state(), "tune").list().expect("a list").is_empty());
    });
}

#[test]
fn a_client_that_falls_silent_leaves_nothing_changed() {
    const SIGSTOP: i32 = 19;
    world(|world| {
        let server = world.serve(|config| config.allow_tune = true);
        let before = read_sysctl(KEY);
        let host = format!("127.0.0.1:{}", server.port());
        let mut client = world.process(&["change", &world.token_file(), &host, KEY, VALUE]);
        client.word("changed");
        // Its kernel still acknowledges everything, as that of a hung host does.
        client.signal(SIGSTOP);
        until("the change of a silent client is undone", || read_sysctl(KEY) == before);
    });
}

#[test]
fn what_a_killed_server_left_is_undone_by_the_next_or_by_hand() {
    world(|world| {
        let before = read_sysctl(KEY);
        for by_hand in [true, false] {
            let (server, port) = world.server_process(&["tune"]);
            let (_remote, session) = with_session(world, port);
            session.apply(&setting()).expect("set");
            server.kill();
            drop(session);
            assert_eq!(read_sysctl(KEY), VALUE, "nobody is there to undo it");
            if by_hand {
                let undone = Tuner::new(world.state(), "tune").undo_all().expect("the journal");
                assert!(matches!(undone.as_slice(), [one] if matches!(one.outcome, Ok(Undone::SetBack))), "{undone:?}");
            } else {
                let next = world.serve(|_| {});
                assert!(
                    matches!(next.recovered(), [line] if line.starts_with("rolled back a change of a killed server: \
                        sysctl")),
                    "{:?}",
                    next.recovered()
                );
            }
            assert_eq!(read_sysctl(KEY), before);
        }
    });
}

#[test]
fn a_stopped_server_undoes_what_its_clients_changed() {
    world(|world| {
        let before = read_sysctl(KEY);
        let server = world.serve(|config| config.allow_tune = true);
        let (_remote, session) = with_session(world, server.port());
        session.apply(&setting()).expect("set");
        server.stop();
        assert_eq!(read_sysctl(KEY), before);
        let error = session.changes().expect_err("gone").to_string();
        assert!(error.starts_with("lost the server at 127.0.0.1"), "{error}");
    });
}
