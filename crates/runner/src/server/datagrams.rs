//! UDP at the one port: hellos of streams that a trial waits for. Each gets a socket of its own beside this one; everything
//! else that comes is dropped without an answer, but for a hello whose trial there is not.

use super::shared::Shared;
use super::trial;
use narrows_sys::clock;
use narrows_sys::udp::{Arrival, UdpListener};
use narrows_traffic::udp::refuse;
use narrows_wire::probe::Hello;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// The longest datagram of a hello: the largest of UDP.
const MAX_BYTES: usize = 65_536;
/// So many datagrams are looked at before other tasks have their turn.
const AT_ONCE: usize = 64;
/// Refusals cost a socket each, and at a port below 1024 a call of the helper.
const REFUSALS_A_SECOND: u32 = 50;
/// Refusals at the same time; a helper that is late must not take all threads.
const REFUSALS: usize = 8;

/// The next datagram of a socket that is ready; `None`: one that could not be read.
pub(super) fn next(ready: &UdpSocket, listener: &UdpListener, buffer: &mut [u8]) -> io::Result<Option<Arrival>> {
    ready.try_io(Interest::READABLE, || match listener.receive(buffer) {
        Ok(Some(arrival)) => Ok(Some(arrival)),
        Ok(None) => Err(ErrorKind::WouldBlock.into()),
        // What is broken about one datagram is not about the next.
        Err(_) => Ok(None),
    })
}

pub(super) async fn listen(shared: Arc<Shared>, listener: UdpListener) {
    let Ok(Ok(ready)) = listener.watched().map(UdpSocket::from_std) else { return };
    let (listener, refusals) = (Arc::new(listener), Arc::new(Semaphore::new(REFUSALS)));
    let mut buffer = vec![0; MAX_BYTES];
    let (mut since, mut refused) = (clock::now(), 0);
    while ready.readable().await.is_ok() {
        for _ in 0..AT_ONCE {
            let Ok(arrival) = next(&ready, &listener, &mut buffer) else { break };
            let Some(arrival) = arrival else { continue };
            if since.elapsed() >= Duration::from_secs(1) {
                (since, refused) = (clock::now(), 0);
            }
            let Ok(hello) = Hello::decode(&buffer[..arrival.bytes.min(MAX_BYTES)]) else { continue };
            let listener = listener.clone();
            // The sockets are made elsewhere: the helper may have to bind them, and may be late.
            match trial::claim_datagram(&shared, &hello, &arrival) {
                Ok(None) => {}
                Ok(Some(claimed)) => {
                    spawn_blocking(move || {
                        if let Err(why) = claimed.accept(&hello, &arrival) {
                            refuse(&listener, &hello, &arrival, &why);
                        }
                    });
                }
                Err(why) => {
                    if refused < REFUSALS_A_SECOND
                        && let Ok(turn) = refusals.clone().try_acquire_owned()
                    {
                        refused += 1;
                        spawn_blocking(move || (refuse(&listener, &hello, &arrival, &why), turn).0);
                    }
                }
            }
        }
        tokio::task::yield_now().await;
    }
}
