//! The UDP engine in the table of engines.

use super::engine;
use crate::common::connections::{Connections, DataStream, Socket};
use crate::common::engine::{Engine, Observer};
use crate::common::error::TrafficError;
use crate::common::stop::Stop;
use narrows_model::{LoadRecord, Place, UdpPlan};

impl Engine for UdpPlan {
    fn run(
        &self,
        place: Place,
        connections: Connections,
        stop: &Stop,
        observer: Observer<'_>,
    ) -> Result<LoadRecord, TrafficError> {
        let Observer { cpu_times, on_progress } = observer;
        let udp = |stream: DataStream| match stream.socket {
            Socket::Udp(stream) => Some(stream),
            Socket::Tcp(_) => None,
        };
        let streams = connections.streams.into_iter().filter_map(udp).collect();
        engine::run(place, self, streams, stop, cpu_times, &mut |it| on_progress(it.into())).map(Into::into)
    }

    fn handshake(&self) -> UdpPlan {
        self.clone()
    }
}
