//! UDP at the one port: hellos of streams that a trial waits for. Each gets a socket of its own beside this one; everything
//! else that comes is dropped without an answer, but for a hello whose trial there is not.

use super::shared::Shared;
use super::trial;
use narrows_sys::udp::{Arrival, UdpListener};
use narrows_traffic::udp::refuse;
use narrows_wire::probe::Hello;
use std::sync::Arc;
use tokio::io::unix::AsyncFd;

/// The longest datagram of a hello: the largest of UDP.
const MOST_BYTES: usize = 65_536;
/// So many datagrams are looked at before other tasks have their turn.
const AT_ONCE: usize = 64;

/// Listens for ever.
pub(super) async fn listen(shared: Arc<Shared>, listener: UdpListener) {
    let Ok(listener) = AsyncFd::register(listener) else { return };
    let mut buffer = vec![0; MOST_BYTES];
    loop {
        let Ok(mut ready) = listener.readable().await else { return };
        for _ in 0..AT_ONCE {
            match listener.get_ref().receive(&mut buffer) {
                Ok(Some(arrival)) => {
                    if let Ok(hello) = Hello::decode(&buffer[..arrival.bytes.min(MOST_BYTES)]) {
                        attend(&shared, listener.get_ref(), &hello, &arrival);
                    }
                }
                // What is broken about one datagram is not about the next.
                Err(_) => {}
                Ok(None) => {
                    ready.clear_ready();
                    break;
                }
            }
        }
        tokio::task::yield_now().await;
    }
}

fn attend(shared: &Shared, listener: &UdpListener, hello: &Hello, arrival: &Arrival) {
    match trial::attend_datagram(shared, hello, arrival) {
        Ok(()) => {}
        Err(why) => refuse(listener, hello, arrival, &why),
    }
}
