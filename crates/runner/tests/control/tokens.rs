//! Named tokens: their rights, their end, and what the audit log says of their holders.

use crate::world::{connect, connect_error, options, read_sysctl, short_plan, spec, until, world};
use narrows_model::{Setting, TcpPlan};
use narrows_runner::Stop;
use narrows_runner::remote::{Remote, RemoteError, Session, TargetSpec};
use narrows_runner::server::{AuditTo, ServerHandle};
use narrows_runner::tokens::{self, Allowed};
use narrows_wire::Token;
use narrows_wire::token::Secret;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

const KEY: &str = "net.ipv4.tcp_rmem";

fn setting() -> Setting {
    Setting::Sysctl { key: KEY.into(), value: "4096 131072 262144".into() }
}

fn target(world: &crate::world::World, server: &ServerHandle, token: Token) -> TargetSpec {
    TargetSpec { token: Some(token), ..spec(world, server.port()) }
}

/// The server reads its tokens again at the next request after 20 ms.
fn let_in(target: &TargetSpec) -> Remote {
    (0..1000).find_map(|_| Remote::connect(target, &options()).ok()).expect("let in")
}

#[test]
fn a_named_token_allows_what_it_names_within_its_rate() {
    world(|world| {
        let server = world.serve(|config| config.allow_tune = true);
        let add = |name: &str, allow: &[Allowed], rate| {
            tokens::add(world.state(), name, allow.iter().copied().collect(), rate, None).expect("made")
        };
        let measure = target(world, &server, add("ci", &[Allowed::Measure], Some(50_000_000)));
        let remote = let_in(&measure);
        let permissions = remote.hello().permissions;
        assert!(permissions.measure && permissions.inventory && !permissions.tune);
        let mut session = remote.open_session(&mut |_, _| true).expect("a session");
        let trial = session.trial(&short_plan().into(), &Stop::new(), &mut |_, _| {}).expect("a trial");
        assert_eq!(trial.plan.get::<TcpPlan>().expect("TCP").pacing_bps, Some(50_000_000));
        assert_eq!(
            session.apply(&setting()).expect_err("not allowed").to_string(),
            "token ci does not allow this; it needs one of `narrows serve token add NAME --allow tune`"
        );
        session.close();
        let tune = target(world, &server, add("admin", &[Allowed::Tune], None));
        let remote = let_in(&tune);
        assert!(remote.hello().permissions.tune && !remote.hello().permissions.measure);
        let mut session = remote.open_session(&mut |_, _| true).expect("a session");
        let change = session.apply(&setting()).expect("allowed");
        session.undo(&change.id).expect("its own");
        let error = session.trial(&short_plan().into(), &Stop::new(), &mut |_, _| {}).expect_err("no load").to_string();
        assert!(error.starts_with("token admin does not allow this") && error.contains("--allow measure`"), "{error}");
    });
}

#[test]
fn a_revoked_or_expired_token_ends_its_sessions_and_undoes_their_changes() {
    world(|world| {
        let server = world.serve(|config| config.allow_tune = true);
        let before = read_sysctl(KEY);
        let token = tokens::add(world.state(), "ci", Allowed::ALL.into(), None, None).expect("made");
        let target = target(world, &server, token);
        let remote = let_in(&target);
        let session = remote.open_session(&mut |_, _| true).expect("a session");
        session.apply(&setting()).expect("allowed");
        assert_ne!(read_sysctl(KEY), before);
        tokens::revoke(world.state(), "ci").expect("revoked");
        let refused = (0..1000).find_map(|_| session.apply(&setting()).err()).expect("at the next look at the tokens");
        assert!(matches!(refused, RemoteError::WrongToken(_) | RemoteError::Lost(..)), "{refused:?}");
        until("the change of a revoked token is undone", || read_sysctl(KEY) == before);
        let error = connect_error(&target, &options());
        assert!(matches!(error, RemoteError::WrongToken(_)), "{error:?}");
        // Others go on, and a token whose time is over lets nobody in.
        connect(world, server.port()).open_session(&mut |_, _| true).expect("the server's own token");
        let old = tokens::add(world.state(), "old", Allowed::ALL.into(), None, Some(1)).expect("made");
        let error = connect_error(&TargetSpec { token: Some(old), ..target }, &options()).to_string();
        assert_eq!(error, "token old: its token has expired");
    });
}

#[test]
fn a_pass_measures_and_nothing_else_and_ends_with_the_session_that_gave_it() {
    world(|world| {
        let server = world.serve(|config| config.allow_tune = true);
        let own = spec(world, server.port());
        let conductor = connect(world, server.port()).open_look().expect("a session");
        let ask = |session: &Session, what: &str| -> Result<Value, RemoteError> {
            session.call(hyper::Method::POST, what, &(), Duration::from_secs(5))
        };
        let pass = |session: &Session| ask(session, "pass").map(|it| it["secret"].as_str().expect("one").to_owned());
        let secret = pass(&conductor).expect("a pass");
        let token = own.token.as_ref().expect("one").with_secret(&secret).expect("a token");
        let member = Remote::connect(&target(world, &server, token.clone()), &options()).expect("let in");
        let permissions = member.hello().permissions;
        assert!(permissions.measure && !permissions.tune);
        let mut session = member.open_session(&mut |_, _| true).expect("a session");
        session.trial(&short_plan().into(), &Stop::new(), &mut |_, _| {}).expect("a trial");
        for error in [session.apply(&setting()).map(drop), pass(&session).map(drop)] {
            assert!(matches!(error, Err(RemoteError::NotAllowed(_))), "{error:?}");
        }
        // This address came before it was sealed, and goes on.
        ask(&conductor, "pass/seal").expect("sealed");
        session.trial(&short_plan().into(), &Stop::new(), &mut |_, _| {}).expect("a trial");
        drop(conductor);
        until("its sessions end with it", || session.lost().is_some());
        let error = connect_error(&target(world, &server, token), &options());
        assert!(matches!(error, RemoteError::WrongToken(_)), "{error:?}");
        // A server of one run admits whom it saw at its start, and gives nobody a pass.
        let of_run = world.serve(|config| config.of_one_run = Some(Arc::default()));
        let token = of_run.token().expect("in memory").clone();
        let other = Remote::connect(&target(world, &of_run, token), &options()).expect("let in");
        let error = pass(&other.open_look().expect("a session"));
        assert!(matches!(error, Err(RemoteError::NotAllowed(_))), "{error:?}");
    });
}

#[test]
fn the_audit_log_says_who_did_what_and_holds_no_secret() {
    world(|world| {
        let log = world.state().join("audit.log");
        let server = world.serve(|config| {
            config.allow_tune = true;
            config.audit = Some(AuditTo::File(log.clone()));
        });
        let token =
            tokens::add(world.state(), "ci", [Allowed::Measure, Allowed::Tune].into(), None, None).expect("made");
        let right = target(world, &server, token.clone());
        let mut wrong = right.clone();
        let guess = Secret::new([7; 24]);
        wrong.token.as_mut().expect("one").secret = guess.clone();
        connect_error(&wrong, &options());
        let remote = let_in(&right);
        let mut session = remote.open_session(&mut |_, _| true).expect("a session");
        let trial = session.trial(&short_plan().into(), &Stop::new(), &mut |_, _| {}).expect("a trial");
        session.apply(&setting()).expect("allowed");
        let panic = Setting::Sysctl { key: "kernel.panic\u{1b}[2J".into(), value: "1".into() };
        session.apply(&panic).expect_err("not in the table");
        session.close();
        drop(remote);
        server.stop();
        let text = narrows_sys::files::read_text(&log).expect("a log");
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
        let said: Vec<String> = lines
            .iter()
            .map(|line| {
                let word = |key: &str| line[key].as_str().unwrap_or("-").to_owned();
                format!("{} {} {} {}", word("event"), word("who"), word("from"), word("action"))
            })
            .collect();
        assert_eq!(
            said,
            [
                "start - - -", "refused stranger 127.0.0.1 -", "session ci 127.0.0.1 -", "measured ci 127.0.0.1 -",
                "changed ci 127.0.0.1 set", "refused ci 127.0.0.1 -", "changed ci 127.0.0.1 undo",
                "session-end ci 127.0.0.1 -", "stop - - -",
            ],
            "{text}"
        );
        assert_eq!(lines[1]["request"], "GET /v1/hello");
        assert_eq!(lines[1]["reason"], "wrong-token");
        let received = trial.server.end().samples().iter().map(|s| s.last().map_or(0, |s| s.bytes())).sum::<u64>();
        assert_eq!((lines[3]["kind"].as_str(), lines[3]["bytes"].as_u64()), (Some("Tcp"), Some(received)));
        assert!(received > 0 && lines[3]["duration_ms"].as_u64().is_some_and(|ms| ms >= 300));
        assert_eq!((lines[4]["key"].as_str(), lines[4]["new"].as_str()), (Some(KEY), Some("4096 131072 262144")));
        assert_eq!(lines[5]["request"], "POST /v1/sessions/{id}/changes");
        assert!(
            lines[5]["message"].as_str().is_some_and(|message| message.contains("kernel.panic\\u{1b}[2J")),
            "{}",
            lines[5]
        );
        for secret in [&token.secret, &guess] {
            assert!(!text.contains(&secret.reveal()));
        }
    });
}
