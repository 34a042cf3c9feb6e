//! Fleets over NATS, where nats-server is installed.

use super::*;
use crate::fleet::keys::{Keys, user};
use async_nats::{ConnectOptions, Request};
use futures_util::StreamExt as _;
use narrows_wire::token::Secret;
use ring::{aead, hmac};

/// A nats-server for the users of a fleet, where there is one; it ends with this thread.
fn bus(state: &Path, port: u16) -> Option<std::process::Child> {
    let users = crate::fleet::users_of(&state.join("fleet.toml"), state).expect("users");
    let file = state.join("nats.conf");
    files::write_whole(&file, format!("listen: 127.0.0.1:{port}\n{users}\n").as_bytes(), 0o600).expect("a file");
    let mut server = narrows_sys::process::bound_command("nats-server");
    server.arg("-c").arg(&file).stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let Ok(server) = server.spawn() else {
        println!("NOT CHECKED: NATS, since nats-server is missing");
        return None;
    };
    let until = clock::now() + Duration::from_secs(10);
    let at = std::net::SocketAddr::from(([127, 0, 0, 1], port));
    while std::net::TcpStream::connect_timeout(&at, Duration::from_secs(1)).is_err() {
        assert!(clock::now() < until, "no nats-server");
        clock::sleep(Duration::from_millis(20));
    }
    Some(server)
}

/// What a bus needs of a fleet before its controller runs; a free port.
fn prepared(state: &Path) -> u16 {
    files::write_whole(&state.join("fleet.toml"), FILE.as_bytes(), 0o600).expect("a file");
    Keys::of(state).expect("a key");
    narrows_sys::net::listen(0).expect("a port").local_addr().expect("its address").port()
}

/// The server is killed in the middle, and comes back.
fn conforms_where_it_is_killed(state: &Path, store: Option<PathBuf>) {
    let port = prepared(state);
    let Some(mut server) = bus(state, port) else { return };
    let address = format!("nats://127.0.0.1:{port}");
    conforms(state, Over { bus: Some(&address), store, ..Over::default() }, &mut || {
        server.kill().and_then(|()| server.wait()).expect("its end");
        server = bus(state, port).expect("a server");
    });
    server.kill().and_then(|()| server.wait()).expect("its end");
}

#[test]
fn nats_conforms_where_its_server_is_killed_and_comes_back() {
    conforms_where_it_is_killed(tempfile::tempdir().expect("a directory").path(), None);
}

#[cfg(feature = "postgres")]
#[test]
fn nats_conforms_with_a_store_on_postgresql() {
    let Some(store) = super::server::Server::start() else { return };
    let place = tempfile::tempdir().expect("a directory");
    conforms_where_it_is_killed(place.path(), Some(store.database("fleet")));
}

/// A poll as it is sealed on its way (see `nats.rs`), with a token of long ago.
fn sealed(secret: &Secret, poll: &Poll) -> Vec<u8> {
    let key = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.bytes()), b"bus");
    let key = aead::UnboundKey::new(&aead::CHACHA20_POLY1305, key.as_ref()).expect("a key");
    let nonce: [u8; aead::NONCE_LEN] = narrows_sys::random::bytes().expect("a random number");
    let mut body = [[0; 16].as_slice(), &serde_json::to_vec(poll).expect("JSON")].concat();
    let unique = aead::Nonce::assume_unique_for_key(nonce);
    let key = aead::LessSafeKey::new(key);
    key.seal_in_place_append_tag(unique, aead::Aad::from(b"poll"), &mut body).expect("sealed");
    [nonce.as_slice(), &body].concat()
}

#[test]
fn a_stolen_token_neither_speaks_nor_listens_for_others_on_the_bus() {
    let place = tempfile::tempdir().expect("a directory");
    let state = place.path();
    let port = prepared(state);
    let Some(mut server) = bus(state, port) else { return };
    let address = format!("nats://127.0.0.1:{port}");
    let running = run(state, Some(&address));
    let [own, other] = ["a", "b"].map(|host| token(state, host).secret);
    let [own_user, other_user] = [&own, &other].map(|it| user(it).expect("a user"));
    let name = other_user.public_key();
    let (said, heard) = channel();
    let options = ConnectOptions::with_nkey(own_user.seed().expect("a seed")).event_callback(move |event| {
        let _ = said.send(event.to_string());
        std::future::ready(())
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("threads");
    let speaks = [format!("narrows.poll.{name}"), format!("_INBOX.{name}.1"), "$SYS.REQ.SERVER.PING".to_owned()];
    let listens = [
        format!("_INBOX.{name}.>"),
        "_INBOX.>".to_owned(),
        ">".to_owned(),
        "narrows.poll.*".to_owned(),
        format!("narrows.poll.{name}"),
    ];
    let (client, mut subscriptions) = runtime.block_on(async {
        let client = options.connect(&address).await.expect("it may come in");
        for subject in &speaks {
            client.publish(subject.clone(), "forged".into()).await.expect("sent");
        }
        let mut subscriptions = Vec::new();
        for subject in &listens {
            subscriptions.push(client.subscribe(subject.clone()).await.expect("sent"));
        }
        client.flush().await.expect("sent");
        (client, subscriptions)
    });
    let mut refused = Vec::new();
    while refused.len() < speaks.len() + listens.len() {
        let event: String = heard.recv_timeout(Duration::from_secs(20)).expect("the server refuses");
        if event.to_lowercase().contains("permissions violation") {
            refused.push(event);
        }
    }
    for subject in speaks.iter().chain(&listens) {
        assert!(refused.iter().any(|it| it.contains(&format!("\"{subject}\""))), "{subject}: {refused:?}");
    }

    // Also where the bus lets it speak on the subject of b, the controller takes nothing that is not sealed by b.
    let mut all = agents(state, &address);
    together(&mut all);
    let mut forged = all[1].poll.clone();
    forged.agent.version = "forged".to_owned();
    runtime.block_on(async {
        let on =
            ConnectOptions::with_nkey(other_user.seed().expect("a seed")).custom_inbox_prefix(format!("_INBOX.{name}"));
        let on = on.connect(&address).await.expect("it may come in");
        let ask = |secret: &Secret| {
            let request = Request::new().payload(sealed(secret, &forged).into()).timeout(Some(Duration::from_secs(3)));
            on.send_request(speaks[0].clone(), request)
        };
        assert!(ask(&other).await.is_ok(), "its own message is answered, with a token for the next one");
        assert!(ask(&own).await.is_err(), "that of another is not");
    });
    let seen = status(&running.users).expect("a status");
    assert!(seen.hosts.iter().all(|it| it.version.as_deref() == Some("1")), "{:?}", seen.hosts);
    // Meanwhile b polled and was answered, of which a heard nothing.
    runtime.block_on(async {
        for subscription in &mut subscriptions {
            let message = tokio::time::timeout(Duration::from_millis(200), subscription.next()).await;
            assert!(!matches!(message, Ok(Some(_))), "{message:?}");
        }
    });
    drop((client, running));
    server.kill().and_then(|()| server.wait()).expect("its end");
}
