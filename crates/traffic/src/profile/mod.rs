//! The path profile: the client decides the steps ([`narrows_search::profile`]), either end sends them, the other counts.
//!
//! One socket carries all: the datagrams of the steps, and the notes about them ([`narrows_wire::profile`]), which are repeated until
//! they are answered. One thread an end.

mod arrivals;
mod client;
mod end;
pub mod iperf3;
mod sending;
mod server;

use crate::common::connections::{Connections, Socket};
use crate::common::engine::{self, Engine};
use crate::common::error::TrafficError;
use end::End;
use narrows_model::{LoadRecord, Place, ProfilePlan, UdpPlan};
use narrows_sys::thread;

impl Engine for ProfilePlan {
    fn run(&self, connections: Connections, observer: engine::End<'_>) -> Result<LoadRecord, TrafficError> {
        let socket = connections.streams.into_iter().next().map(|stream| stream.socket);
        let Some(Socket::Udp(stream)) = socket else { return Err(TrafficError::NoStreams) };
        thread::exact_timers();
        let place = observer.place;
        let end = End::new(self, stream, observer)?;
        Ok(if place == Place::Client { client::run(end) } else { server::run(end) }.into())
    }

    /// Datagrams as large as the path carries; a send buffer that shows a slow device soon.
    fn handshake(&self) -> UdpPlan {
        let rate = narrows_model::UdpRate::Max;
        UdpPlan {
            direction: self.direction,
            rate_up: rate,
            rate_down: rate,
            send_buffer_bytes: Some(128 << 10),
            ..UdpPlan::default()
        }
    }
}
