//! The request/response engine in the table of engines.

use super::answer::Answers;
use super::connections::{self, Exchange, RrStream};
use super::{engine, sockets};
use crate::common::connections::{Connections, DataStream, PerTransaction, Socket};
use crate::common::engine::{Engine, Observer};
use crate::common::error::TrafficError;
use crate::common::stop::Stop;
use crate::tcp;
use crate::udp::UdpStream;
use narrows_model::{DatagramSizes, LoadRecord, Place, RrPlan, Transaction, UdpPlan};

/// The streams of requests come first, those of the load beside them after.
fn of(plan: &RrPlan, connections: Connections) -> connections::Connections {
    let of_load = |stream: &DataStream| {
        plan.load.is_some() && (stream.id >= plan.streams || plan.transaction == Transaction::TcpConnect)
    };
    let (load, requests): (Vec<_>, Vec<_>) = connections.streams.into_iter().partition(of_load);
    let request = |DataStream { id, socket, connect_ns, .. }| RrStream {
        id,
        socket: match socket {
            Socket::Tcp(socket) => connections::Socket::Tcp(socket),
            Socket::Udp(stream) => connections::Socket::Udp(stream.into_socket()),
        },
        connect_ns,
    };
    let exchange = match connections.per_transaction {
        PerTransaction::Nothing => Exchange::Streams(requests.into_iter().map(request).collect()),
        PerTransaction::Connect { address, key } => Exchange::Connect { address, key },
        PerTransaction::Answer(answers) => Exchange::Answer(answers),
    };
    connections::Connections { exchange, load: tcp::streams_of(load) }
}

impl Engine for RrPlan {
    fn run(
        &self,
        place: Place,
        connections: Connections,
        stop: &Stop,
        observer: Observer<'_>,
    ) -> Result<LoadRecord, TrafficError> {
        let Observer { cpu_times, on_progress } = observer;
        let connections = of(self, connections);
        engine::run(place, self, connections, stop, cpu_times, &mut |it| on_progress(it.into())).map(Into::into)
    }

    /// Small datagrams that need no particular path MTU.
    fn handshake(&self) -> UdpPlan {
        UdpPlan {
            sizes: DatagramSizes::Sequence(vec![self.request_bytes.max(self.response_bytes)]),
            allow_fragments: true,
            ..UdpPlan::default()
        }
    }

    /// The first requests may come before the trial begins here.
    fn prepare_udp(&self, stream: &UdpStream) {
        // The trial does it again, and remarks an error.
        let _ = sockets::prepare(stream.socket(), self);
    }

    fn answers(&self) -> Option<Answers> {
        (self.transaction == Transaction::TcpConnect).then(|| Answers::new(self))
    }
}
