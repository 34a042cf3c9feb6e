//! One end dies in the middle of a trial.

use crate::world::{Process, World, connect, short_plan, with_session, world};
use narrows_model::{Direction, Limit, TcpPlan, TcpTrial};
use narrows_runner::Stop;
use narrows_runner::remote::{RemoteError, TrialError};
use narrows_sys::rtnl::{Links, Qdisc};

const SIGSTOP: i32 = 19;

fn client_in_a_trial(world: &World, port: u16) -> Process {
    let mut client = world.process(&["trial", &world.token_file(), &format!("127.0.0.1:{port}"), "60000"]);
    client.word("moving");
    client
}

#[test]
fn a_killed_client_frees_its_turn() {
    world(|world| {
        let server = world.serve(|_| {});
        let client = client_in_a_trial(world, server.port());
        let remote = connect(world, server.port());
        client.kill();
        let start = narrows_sys::clock::now();
        let mut session = remote.open_session(&mut |_, _| true).expect("its turn comes");
        println!("admitted {} ms after the other client was killed", start.elapsed().as_millis());
        assert!(session.trial(&short_plan().into(), &Stop::new(), &mut |_, _| {}).is_ok());
    });
}

#[test]
fn a_silent_client_frees_its_turn() {
    world(|world| {
        let server = world.serve(|_| {});
        let client = client_in_a_trial(world, server.port());
        let remote = connect(world, server.port());
        client.signal(SIGSTOP);
        let start = narrows_sys::clock::now();
        let mut session = remote.open_session(&mut |_, _| true).expect("its turn comes");
        println!("admitted {} ms after the other client fell silent", start.elapsed().as_millis());
        assert!(session.trial(&short_plan().into(), &Stop::new(), &mut |_, _| {}).is_ok());
    });
}

/// Runs a trial on a server process and does something to the process as soon as both ends have told of progress.
fn trial_interrupted_by(direction: Direction, round: impl Fn(&Process) + Sync) -> TrialError {
    let mut outcome = None;
    world(|world| {
        let (server, port) = world.server_process(&[]);
        let (_remote, mut session) = with_session(world, port);
        let plan = TcpPlan { direction, limit: Limit::DurationMs(60_000), interval_ms: 50, ..TcpPlan::default() };
        let mut told = 0;
        let error = session
            .trial(&plan.clone().into(), &Stop::new(), &mut |_, _| {
                told += 1;
                if told == 10 {
                    round(&server);
                }
            })
            .expect_err("the server is gone");
        assert!(session.inventory().is_err());
        outcome = Some(error);
    });
    outcome.expect("the world has ended")
}

fn check(error: &TrialError, direction: Direction) {
    assert!(matches!(error.why, RemoteError::Lost { .. }), "{error:?}");
    assert!(error.to_string().starts_with("lost the server at 127.0.0.1:"), "{error}");
    let partial = error.partial.as_ref().expect("what was measured so far");
    let partial: TcpTrial<'_> = partial.of().expect("a trial of TCP");
    let own = partial.client.streams.first().and_then(|stream| stream.samples.last()).expect("a sample");
    assert!(own.bytes > 0, "{direction}");
    let theirs = &partial.server.streams.first().expect("a stream").samples;
    assert!(theirs.windows(2).all(|two| two[0].at_us < two[1].at_us) && theirs.len() > 1, "all that it reported");
    assert!(theirs.last().expect("its last report").bytes > 0);
    assert!(partial.server.remarks.iter().any(|r| r.contains("only its progress reports")), "{direction}");
}

#[test]
fn a_killed_server_is_a_clear_error_with_what_was_measured() {
    for direction in [Direction::Up, Direction::Down] {
        let error = trial_interrupted_by(direction, |server| server.signal(9));
        check(&error, direction);
    }
}

#[test]
fn a_silent_server_is_a_clear_error_with_what_was_measured() {
    for direction in [Direction::Up, Direction::Down] {
        let error = trial_interrupted_by(direction, |server| server.signal(SIGSTOP));
        check(&error, direction);
        assert!(
            error.to_string().starts_with("lost the server at") && error.to_string().ends_with(": no event for 9 s"),
            "{error}"
        );
    }
}

#[test]
fn a_queue_that_holds_seconds_of_data_is_not_a_death() {
    world(|world| {
        // What one trial ended with would be the start of the next one: whether it fills the queue would be chance (tcp_metrics).
        narrows_sys::sysctl::write("net.ipv4.tcp_no_metrics_save", "1").expect("settable");
        // The path of bytes to and fro is the loopback device: 4 Mbit/s with 1 MB of queue, 2 s deep.
        let shaper = Qdisc::TokenBucket { rate_bps: 4_000_000, burst_bytes: 3_000, limit_bytes: 1_000_000 };
        let mut links = Links::open().expect("netlink");
        links.set_mtu("lo", 1500).expect("the loopback device");
        let server = world.serve(|_| {});
        let (_remote, mut session) = with_session(world, server.port());
        links.replace_qdisc("lo", &shaper).expect("a shaper");
        for direction in [Direction::Up, Direction::Down] {
            let plan = TcpPlan {
                direction,
                streams: 4,
                limit: Limit::DurationMs(5_000),
                congestion_control: Some("reno".into()),
                ..TcpPlan::default()
            };
            // Where slow start ends early the queue stays short: then the trial tells nothing.
            let deep = (0..4).any(|_| {
                let trial = session.trial(&plan.clone().into(), &Stop::new(), &mut |_, _| {}).expect("both ends live");
                let trial: TcpTrial<'_> = trial.of().expect("a trial of TCP");
                let sender = trial.end(direction.flows()[0].sender()).expect("an end");
                let rtt = sender.streams.iter().flat_map(|s| &s.samples).filter_map(|s| s.tcp.rtt_us).max();
                println!("{direction}: the largest RTT was {rtt:?} us");
                rtt.is_some_and(|us| us > 1_400_000)
            });
            assert!(deep, "{direction}: the queue was not deep enough to tell");
        }
    });
}
