//! Trials over the real engine.

use crate::world::{short_plan, spec, with_session, world};
use narrows_model::{Direction, Flow, Limit, Place, TcpPlan, TcpTrial, Trial};
use narrows_runner::Stop;
use narrows_runner::live::LiveInstruments;
use narrows_runner::remote::{Options, Remote};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

fn tcp(trial: &Trial) -> TcpTrial<'_> {
    trial.of().expect("a trial of TCP")
}

fn bytes(trial: &Trial, place: Place, flow: Flow) -> u64 {
    let streams = &tcp(trial).end(place).expect("an end").streams;
    streams.iter().filter(|s| s.flow == flow).filter_map(|s| s.samples.last()).map(|sample| sample.bytes).sum()
}

#[test]
fn every_direction_moves_data_and_both_ends_tell_of_it() {
    world(|world| {
        let server = world.serve(|_| {});
        let (_remote, mut session) = with_session(world, server.port());
        for direction in [Direction::Up, Direction::Down, Direction::Both] {
            let plan = TcpPlan { direction, streams: 2, ..short_plan() };
            let mut heard = Vec::new();
            let trial =
                session.trial(&plan.clone().into(), &Stop::new(), &mut |place, _| heard.push(place)).expect("a trial");
            assert_eq!(trial.plan, plan.into());
            for flow in direction.flows() {
                let (sent, received) = (bytes(&trial, flow.sender(), *flow), bytes(&trial, flow.receiver(), *flow));
                assert!(0 < received && received <= sent, "{direction}: sent {sent}, received {received}");
            }
            let ids = |place| {
                tcp(&trial).end(place).expect("an end").streams.iter().map(|s| (s.id, s.flow)).collect::<Vec<_>>()
            };
            assert_eq!(ids(Place::Client), ids(Place::Server));
            assert!(heard.contains(&Place::Client) && heard.contains(&Place::Server), "{heard:?}");
            assert!(trial.elapsed_us > 0);
            for record in [tcp(&trial).client, tcp(&trial).server] {
                assert!(record.before.taken_unix_us <= record.after.taken_unix_us && !record.after.facts.is_empty());
            }
        }
        let inventory = session.inventory().expect("an inventory");
        assert!(inventory.facts.len() > 20, "{} facts", inventory.facts.len());
    });
}

#[test]
fn a_raised_flag_ends_a_trial_with_what_was_measured() {
    world(|world| {
        let server = world.serve(|_| {});
        let (_remote, mut session) = with_session(world, server.port());
        for direction in [Direction::Up, Direction::Down] {
            let plan = TcpPlan { direction, limit: Limit::DurationMs(60_000), interval_ms: 50, ..TcpPlan::default() };
            let stop = Stop::new();
            let raise = stop.clone();
            let trial = session
                .trial(&plan.clone().into(), &stop, &mut |_, _| raise.stop())
                .expect("a stopped trial is no error");
            assert!(trial.elapsed_us < 60_000_000, "{}", trial.elapsed_us);
            assert!(bytes(&trial, Place::Server, direction.flows()[0]) > 0);
        }
        // And the session goes on.
        assert!(session.trial(&short_plan().into(), &Stop::new(), &mut |_, _| {}).is_ok());
    });
}

#[test]
fn an_option_that_the_server_refuses_ends_the_trial_with_its_sentence() {
    world(|world| {
        let server = world.serve(|_| {});
        let (_remote, mut session) = with_session(world, server.port());
        let plan =
            TcpPlan { direction: Direction::Down, congestion_control: Some("no-such-one".into()), ..short_plan() };
        let error = session.trial(&plan.clone().into(), &Stop::new(), &mut |_, _| {}).expect_err("refused").to_string();
        assert!(error.contains("no-such-one") && error.starts_with("the server says:"), "{error}");
        let unsound = TcpPlan { streams: 0, ..short_plan() };
        let error =
            session.trial(&unsound.clone().into(), &Stop::new(), &mut |_, _| {}).expect_err("unsound").to_string();
        assert_eq!(error, "streams is 0, but must be from 1 to 128");
        assert!(session.trial(&short_plan().into(), &Stop::new(), &mut |_, _| {}).is_ok(), "the session goes on");
    });
}

#[test]
fn many_streams_are_opened() {
    world(|world| {
        let server = world.serve(|_| {});
        let (_remote, mut session) = with_session(world, server.port());
        let plan = TcpPlan { streams: 40, ..short_plan() };
        let trial = session.trial(&plan.clone().into(), &Stop::new(), &mut |_, _| {}).expect("a trial");
        assert_eq!((tcp(&trial).client.streams.len(), tcp(&trial).server.streams.len()), (40, 40));
    });
}

/// A load among hundreds reads of both hosts only whether they had CPU time, and the answer of a server that knows no such loads is a
/// whole one.
#[test]
fn a_light_trial_reads_no_counters_of_either_host() {
    world(|world| {
        let server = world.serve(|_| {});
        let remote = Remote::connect(&spec(world, server.port()), &Options::new(LiveInstruments::Cpu)).expect("it");
        let mut session = remote.open_session(&mut |_, _| true).expect("a session");
        let trial = session.trial(&short_plan().into(), &Stop::new(), &mut |_, _| {}).expect("a trial");
        for record in [tcp(&trial).client, tcp(&trial).server] {
            let others = |it: &&narrows_model::Fact| !it.key.starts_with("cgroup.");
            assert_eq!(record.after.facts.iter().find(others), None);
            assert!(!record.host.is_empty(), "CPU times");
        }
        assert!(bytes(&trial, Place::Server, Flow::Up) > 0);
    });
}

#[allow(clippy::disallowed_methods)] // its own server answers at once
/// What an address answers to a request over plain HTTP.
fn get(at: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(at).expect("a port");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

#[test]
fn scrapers_read_how_a_server_is_and_nothing_else() {
    world(|world| {
        let server = world.serve(|config| config.metrics = Some(SocketAddr::from(([127, 0, 0, 1], 0))));
        let at = server.metrics().expect("an address");
        let before = get(at, "/metrics");
        assert!(
            before.contains("application/openmetrics-text")
                && before.contains("\nnarrows_server_loads_total{end=\"done\"} 0\n")
        );
        let (_remote, mut session) = with_session(world, server.port());
        session.trial(&short_plan().into(), &Stop::new(), &mut |_, _| {}).expect("a trial");
        let after = get(at, "/metrics");
        for line in
            ["narrows_server_loads_total{end=\"done\"} 1", "narrows_server_sessions{state=\"loading\"} 1", "# EOF"]
        {
            assert!(after.lines().any(|it| it == line), "{line} in {after}");
        }
        for path in ["/v1/hello", "/"] {
            assert!(get(at, path).starts_with("HTTP/1.1 404"), "{path}");
        }
        // The port of clients shows nothing to who has no token.
        let clients = SocketAddr::from(([127, 0, 0, 1], server.port()));
        assert!(!get(clients, "/metrics").contains("narrows_server"));
    });
}
