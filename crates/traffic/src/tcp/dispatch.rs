//! The TCP engine in the table of engines.

use super::engine;
use super::stream::Stream;
use crate::common::connections::{Connections, DataStream, Socket};
use crate::common::engine::{Engine, Observer};
use crate::common::error::TrafficError;
use crate::common::stop::Stop;
use narrows_model::{LoadRecord, Place, TcpPlan};

/// The streams over TCP among these.
pub(crate) fn of(streams: Vec<DataStream>) -> Vec<Stream> {
    let tcp = |DataStream { id, flow, socket, .. }| match socket {
        Socket::Tcp(socket) => Some(Stream { id, flow, socket }),
        Socket::Udp(_) => None,
    };
    streams.into_iter().filter_map(tcp).collect()
}

impl Engine for TcpPlan {
    fn run(
        &self,
        place: Place,
        connections: Connections,
        stop: &Stop,
        observer: Observer<'_>,
    ) -> Result<LoadRecord, TrafficError> {
        let Observer { cpu_times, on_progress } = observer;
        let streams = of(connections.streams);
        engine::run(place, self, streams, stop, cpu_times, &mut |it| on_progress(it.into())).map(Into::into)
    }
}
