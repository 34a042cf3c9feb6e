//! Several clients at one server.

use crate::world::{connect, short_plan, world};
use narrows_runner::Stop;
use std::sync::mpsc;

#[test]
fn the_second_waits_for_its_turn_and_is_told_why() {
    world(|world| {
        let server = world.serve(|_| {});
        let (first, second) = (connect(world, server.port()), connect(world, server.port()));
        let running = first.open_session(&mut |_, _| true).expect("a session");
        let (queued, told) = mpsc::channel();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let mut session = second
                    .open_session(&mut |position, why| queued.send((position, why.to_owned())).is_ok())
                    .expect("its turn comes");
                session.trial(&short_plan().into(), &Stop::new(), &mut |_, _| {}).map(|_| ())
            });
            let (position, why) = told.recv().expect("it is queued");
            assert_eq!(position, 1);
            assert_eq!(why, "the client 127.0.0.1 is measuring; this server runs one load at a time");
            // Looking is not loading: it does not wait.
            assert!(first.open_look().expect("a look").inventory().is_ok());
            running.close();
            waiting.join().expect("no panic").expect("a trial");
        });
    });
}

#[test]
fn who_gives_up_waiting_leaves_the_queue() {
    world(|world| {
        let server = world.serve(|config| config.queue = 1);
        let (first, second) = (connect(world, server.port()), connect(world, server.port()));
        let running = first.open_session(&mut |_, _| true).expect("a session");
        let error = second.open_session(&mut |_, _| false).map(|_| ()).expect_err("gave up").to_string();
        assert!(error.starts_with("gave up waiting:"), "{error}");
        // The one place in the queue is free again, at the latest when the connection is gone.
        drop(second);
        let third = connect(world, server.port());
        let error = third.open_session(&mut |position, _| position != 1).map(|_| ()).expect_err("gave up").to_string();
        assert!(error.starts_with("gave up waiting:"), "{error}");
        running.close();
    });
}

#[test]
fn a_full_queue_turns_away() {
    world(|world| {
        let server = world.serve(|config| config.queue = 0);
        let (first, second) = (connect(world, server.port()), connect(world, server.port()));
        let running = first.open_session(&mut |_, _| true).expect("a session");
        let error = second.open_session(&mut |_, _| true).map(|_| ()).expect_err("turned away").to_string();
        assert_eq!(error, "the server is busy and its queue is full; try again later");
        running.close();
        second.open_session(&mut |_, _| true).map(drop).expect("there is room again");
    });
}

#[test]
fn two_loads_at_a_time_where_allowed() {
    world(|world| {
        let server = world.serve(|config| config.parallel = 2);
        let (first, second) = (connect(world, server.port()), connect(world, server.port()));
        let mut one = first.open_session(&mut |_, _| false).expect("a session");
        let mut two = second.open_session(&mut |_, _| false).expect("another");
        std::thread::scope(|scope| {
            let other = scope.spawn(|| two.trial(&short_plan().into(), &Stop::new(), &mut |_, _| {}).map(|_| ()));
            one.trial(&short_plan().into(), &Stop::new(), &mut |_, _| {}).expect("a trial");
            other.join().expect("no panic").expect("a trial");
        });
    });
}
