//! The traffic of the other end's interfaces, for those who watch it.

use crate::world::{connect, connect_as_guest, short_plan, with_session, world};
use narrows_model::InterfaceSample;
use narrows_runner::Stop;
use narrows_runner::remote::Session;

fn loopback(session: &Session) -> InterfaceSample {
    let interfaces = session.interfaces().expect("the list");
    interfaces.into_iter().find(|it| it.name == "lo").expect("every namespace has one")
}

#[test]
fn a_session_that_only_looks_sees_what_a_trial_moves() {
    world(|world| {
        let server = world.serve(|_| {});
        let remote = connect(world, server.port());
        let look = remote.open_look().expect("a look");
        let before = loopback(&look);
        let (_other, mut session) = with_session(world, server.port());
        session.trial(&short_plan().into(), &Stop::new(), &mut |_, _| {}).expect("a trial");
        let after = loopback(&look);
        assert!(after.rx_bytes > before.rx_bytes + 10_000, "{before:?} {after:?}");
        assert!(after.tx_packets > before.tx_packets && after.at_us > before.at_us, "{before:?} {after:?}");
        assert!(loopback(&session).rx_bytes >= after.rx_bytes, "one that loads may ask, too");
    });
}

#[test]
fn without_a_token_nothing_of_the_machine_is_shown() {
    world(|world| {
        let server = world.serve(|config| config.open = true);
        let remote = connect_as_guest(world, server.port());
        let session = remote.open_look().expect("a look");
        let error = session.interfaces().expect_err("not shown").to_string();
        assert_eq!(error, "this server is open and shows its interfaces only to clients with its token");
    });
}
