//! Several clients at one server.

use crate::world::{connect, connect_as_guest, short_plan, until, with_session, world};
use narrows_runner::Stop;
use std::sync::{Barrier, mpsc};

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

#[test]
fn a_session_that_asks_six_times_at_once_is_told_to_wait() {
    world(|world| {
        let server = world.serve(|_| {});
        let look = connect(world, server.port()).open_look().expect("a look");
        let (barrier, ask) = (Barrier::new(6), || look.inventory().map(drop).map_err(|error| error.to_string()));
        let at_once = || {
            barrier.wait();
            ask()
        };
        // A reading may be over before the last one is asked for.
        until("one of six has to wait", || {
            let answers = std::thread::scope(|scope| {
                let asked: Vec<_> = (0..6).map(|_| scope.spawn(at_once)).collect();
                asked.into_iter().map(|one| one.join().expect("no panic")).collect::<Vec<_>>()
            });
            assert!(answers.iter().filter(|answer| answer.is_ok()).count() >= 4, "{answers:?}");
            let mut refused = answers.iter().filter_map(|answer| answer.as_ref().err()).peekable();
            let any = refused.peek().is_some();
            refused.for_each(|why| assert!(why.contains("this session has several requests that wait"), "{why}"));
            any
        });
        assert_eq!(ask(), Ok(()));
    });
}

#[test]
fn a_guest_reads_nothing_while_a_token_holder_measures() {
    world(|world| {
        let server = world.serve(|config| config.open = true);
        let guest = connect_as_guest(world, server.port()).open_look().expect("a look");
        guest.inventory().expect("nobody measures");
        let (_holder, running) = with_session(world, server.port());
        let why = guest.inventory().map(drop).expect_err("somebody measures").to_string();
        assert!(why.contains("another client is measuring; ask again after it"), "{why}");
        running.inventory().expect("its own reading");
        running.close();
        until("the guest reads again", || guest.inventory().is_ok());
    });
}
