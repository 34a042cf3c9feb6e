//! A network between agents and their controller that can be cut: TCP connections end, and others are refused.

use narrows_sys::{clock, net};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

#[derive(Default)]
struct Carries {
    to: Mutex<Option<SocketAddr>>,
    until: Mutex<Option<Instant>>,
    connections: Mutex<Vec<TcpStream>>,
    refused: AtomicU64,
}

/// The network; it lasts as long as the process.
pub(super) struct Cut {
    port: u16,
    carries: Arc<Carries>,
}

impl Cut {
    pub(super) fn new() -> Self {
        let listener = net::listen(0).expect("a port");
        let port = listener.local_addr().expect("its address").port();
        let carries = Arc::new(Carries::default());
        let here = carries.clone();
        std::thread::spawn(move || listener.incoming().flatten().for_each(|it| here.carry(&it)));
        Self { port, carries }
    }

    /// Connections go to this address; where they are taken.
    pub(super) fn leads_to(&self, address: &str) -> String {
        *self.carries.to.lock().expect("one user") = Some(address.parse().expect("an address"));
        format!("127.0.0.1:{}", self.port)
    }

    /// Ends all connections, and takes no others for so long.
    pub(super) fn lasts(&self, time: Duration) {
        *self.carries.until.lock().expect("one user") = Some(clock::now() + time);
        for stream in self.carries.connections.lock().expect("one user").drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    pub(super) fn refused(&self) -> u64 {
        self.carries.refused.load(Ordering::Relaxed)
    }
}

impl Carries {
    fn carry(&self, from: &TcpStream) {
        let is_cut = self.until.lock().expect("one user").is_some_and(|until| clock::now() < until);
        if is_cut {
            self.refused.fetch_add(1, Ordering::Relaxed);
            let _ = from.shutdown(Shutdown::Both);
            return;
        }
        let to = self.to.lock().expect("one user").expect("where it leads");
        let Ok(to) = TcpStream::connect_timeout(&to, Duration::from_secs(5)) else { return };
        let own = |stream: &TcpStream| stream.try_clone().expect("a descriptor");
        self.connections.lock().expect("one user").extend([own(from), own(&to)]);
        for (mut from, mut to) in [(own(from), own(&to)), (own(&to), own(from))] {
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut from, &mut to);
                let _ = to.shutdown(Shutdown::Both);
            });
        }
    }
}
