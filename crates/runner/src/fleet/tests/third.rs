//! Who is in no test gets no packet: neither an address that an agent names, nor a host that is drained.

use super::*;
use narrows_fleet::protocol::Admits;
use std::net::IpAddr;

/// Of somebody else.
const THIRD: [u8; 4] = [198, 51, 100, 7];

#[test]
fn an_address_that_an_agent_names_gets_nothing_unless_its_service_names_it() {
    let place = tempfile::tempdir().expect("a directory");
    let state = place.path();
    let text = "name = 'three'\nhosts.a = { address = '192.0.2.1' }\nhosts.b = { address = '192.0.2.2' }\n\
        [[join]]\ngroup = 'pods'\nmost = 2\n[[join]]\ngroup = 'named'\nservice = '192.0.2.9'\nmost = 2\n[[mesh]]\nname = 'all'\n\
        [[mesh.test]]\nkind = 'load'\nevery = '1h'\nlasts = '200ms'\n[[mesh.test]]\nkind = 'probe'\nevery = '1h'\nlasts = '200ms'\n";
    let running = run_with(state, text, None, state.join("runs.db"));
    let own = |nth: u64, host: &str| {
        let to = target(&running.users.asked, token(state, host));
        Stub::new(nth, transport(&[to], None).expect("a transport"))
    };
    let joins = |nth: u64, group: &str, name: &str| {
        let token = token_of(&state.join("fleet.toml"), Holder::Group(group), state).expect("a token");
        let joins = Joins { name: name.to_owned(), address: Some(IpAddr::from(THIRD)) };
        let to = target(&running.users.asked, token.parse().expect("a token"));
        Stub::new(nth, transport(&[to], Some(&joins)).expect("a transport"))
    };
    let mut all = [own(1, "a"), own(2, "b"), joins(3, "pods", "p"), joins(4, "named", "n")];
    let until = clock::now() + COMES;
    let (mut asked, mut done) = (0, 0);
    // Both loads and the probe of a and b, twice.
    while done < 6 {
        let replies = together(&mut all);
        for (nth, reply) in replies.into_iter().enumerate() {
            let said = serde_json::to_string(&reply).expect("JSON");
            assert!(!said.contains("198.51.100.7"), "{said}");
            if nth > 1 {
                assert!(reply.orders.is_empty(), "by a loopback address nobody is loaded: {said}");
                assert!(reply.admits.is_none_or(|it| it.passes.is_empty() && it.peers.is_empty()), "{said}");
                continue;
            }
            for order in reply.orders {
                let other = if nth == 0 { [192, 0, 2, 2] } else { [192, 0, 2, 1] };
                assert_eq!(order.to.ip(), IpAddr::from(other), "{said}");
                done += usize::from(all[nth].ends(&order));
            }
        }
        if done >= asked * 3 && hosts(&running).len() == 4 && asked < 2 {
            ask(&running.users, &ALL).expect("planned");
            asked += 1;
        }
        assert!(clock::now() < until, "{:?}", status(&running.users));
    }
    let seen = status(&running.users).expect("a status");
    assert!(!serde_json::to_string(&seen).expect("JSON").contains("198.51.100.7"), "{seen:?}");
}

#[test]
fn a_host_lets_in_those_alone_whose_tests_are_in_hand() {
    let place = tempfile::tempdir().expect("a directory");
    let state = place.path();
    let running = run(state, None);
    let mut all = agents(state, &running.users.asked);
    together(&mut all);
    ask(&running.users, &Command::Drain { host: "c".to_owned(), back: false }).expect("drained");
    ask(&running.users, &ALL).expect("planned");
    let until = clock::now() + COMES;
    let (mut passes, mut secrets) = ([BTreeSet::new(), BTreeSet::new()], [BTreeSet::new(), BTreeSet::new()]);
    let mut last = [Admits::default(), Admits::default()];
    let is_empty = |it: &Admits| it.passes.is_empty() && it.peers.is_empty();
    let mut done = 0;
    while done < 3 || !last.iter().all(is_empty) || all.iter().any(|it| !it.poll.outcomes.is_empty()) {
        for (nth, reply) in together(&mut all).into_iter().enumerate() {
            if nth == 2 {
                assert!(reply.orders.is_empty() && reply.admits.as_ref().is_none_or(is_empty), "{reply:?}");
                continue;
            }
            if let Some(admits) = reply.admits {
                // From where the other one is, and from where the controller sees it.
                let other = IpAddr::from(if nth == 0 { [192, 0, 2, 2] } else { [192, 0, 2, 1] });
                let is_it = |it: &IpAddr| *it == other || it.is_loopback();
                assert!(admits.peers.iter().all(is_it), "{admits:?}");
                passes[nth].extend(admits.passes.iter().cloned());
                last[nth] = admits;
            }
            for order in reply.orders {
                assert!([&order.ticket.from, &order.ticket.to].iter().all(|host| *host != "c"), "{order:?}");
                if matches!(order.what, What::Load { .. }) {
                    let secret = order.token.rsplit('.').next().expect("a secret").to_owned();
                    secrets[1 - nth].insert(secret);
                }
                done += usize::from(all[nth].ends(&order));
            }
        }
        assert!(clock::now() < until, "{last:?}");
    }
    // Each pass is of a load that the other one makes, of one host alone, and gone with it.
    for (passes, secrets) in passes.iter().zip(&secrets) {
        assert!(passes.is_subset(secrets), "{passes:?} {secrets:?}");
    }
    assert!(passes[0].is_disjoint(&passes[1]) && !secrets.iter().any(BTreeSet::is_empty));
}
