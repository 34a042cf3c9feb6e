//! Who is let in, and what the others read.

use crate::world::{connect, connect_as_guest, connect_error, options, short_plan, spec, world};
use narrows_model::{Limit, Setting, TcpPlan};
use narrows_runner::Stop;
use narrows_runner::remote::RemoteError;
use narrows_wire::token::{Fingerprint, Secret};

#[test]
fn the_token_lets_in_and_tells_what_may_be_done() {
    world(|world| {
        let server = world.serve(|_| {});
        let remote = connect(world, server.port());
        let hello = remote.hello();
        assert!(hello.permissions.measure && hello.permissions.inventory && !hello.permissions.tune);
        assert_eq!((hello.data_port, hello.protocol), (server.port(), narrows_wire::PROTOCOL));
        let announcement = server.announcement();
        assert!(announcement.contains(&server.port().to_string()) && announcement.contains("token"), "{announcement}");
        assert!(!announcement.contains(&server.token().expect("one").secret.reveal()), "{announcement}");
    });
}

#[test]
fn without_a_token_the_sentence_says_where_it_is() {
    world(|world| {
        let server = world.serve(|_| {});
        let mut spec = spec(world, server.port());
        spec.token = None;
        let error = connect_error(&spec, &options());
        assert!(matches!(error, RemoteError::NoToken(_)), "{error:?}");
        assert_eq!(
            error.to_string(),
            "the server requires a token: copy the file whose path `narrows serve` printed at start, and pass it with \
            --token-file"
        );
    });
}

#[test]
fn a_wrong_secret_and_a_wrong_key_are_told_apart() {
    world(|world| {
        let server = world.serve(|_| {});
        let right = spec(world, server.port());
        let mut wrong = right.clone();
        wrong.token.as_mut().expect("one").secret = Secret::new([7; 24]);
        let error = connect_error(&wrong, &options());
        assert!(matches!(&error, RemoteError::WrongToken(text) if text.contains("wrong token")), "{error}");
        let mut wrong = right;
        wrong.token.as_mut().expect("one").fingerprint = Fingerprint([7; 32]);
        let error = connect_error(&wrong, &options());
        assert!(matches!(error, RemoteError::Fingerprint { .. }), "{error:?}");
        assert!(error.to_string().contains("does not match the server at"), "{error}");
    });
}

#[test]
fn an_open_server_lets_measure_within_limits_and_no_more() {
    world(|world| {
        let server = world.serve(|config| config.open = true);
        let remote = connect_as_guest(world, server.port());
        assert!(!remote.hello().permissions.inventory && !remote.hello().permissions.tune);
        let mut session = remote.open_session(&mut |_, _| true).expect("a session");

        let trial = session.trial(&short_plan().into(), &Stop::new(), &mut |_, _| {}).expect("a trial");
        assert_eq!(
            trial.plan.get::<TcpPlan>().expect("TCP").pacing_bps,
            Some(1_000_000_000),
            "the rate is bounded, and the trial says so"
        );
        let inventory = session.inventory().expect("the public part");
        assert!(inventory.get("tcp.rmem.max").is_some());
        let private = |key: &str| ["cpu.", "nic.", "kernel.", "memory.", "host."].iter().any(|p| key.starts_with(p));
        assert!(!inventory.facts.iter().any(|fact| private(&fact.key)), "{:?}", inventory.facts);
        assert!(inventory.why_absent("cpu.model").is_some_and(|why| why.contains("token")));

        let long = TcpPlan { limit: Limit::DurationMs(61_000), ..TcpPlan::default() };
        let error =
            session.trial(&long.clone().into(), &Stop::new(), &mut |_, _| {}).expect_err("too long").to_string();
        assert!(error.contains("without a token the maximum is 60 s"), "{error}");
        let setting = Setting::Sysctl { key: "net.ipv4.tcp_sack".into(), value: "0".into() };
        let error = session.apply(&setting).expect_err("not allowed").to_string();
        assert!(error.contains("narrows serve --allow-tune"), "{error}");
        let error = remote.open_session(&mut |_, _| true).map(|_| ()).expect_err("a second one").to_string();
        assert!(error.contains("one session for each client address"), "{error}");
    });
}
