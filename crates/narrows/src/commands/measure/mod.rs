//! `narrows measure`: one plain measurement.

mod quic;
mod responsiveness;
mod rr;
mod run;
mod stamp;
mod tcp;
mod udp;

use crate::failure::Outcome;
use clap::Subcommand;

/// Make one plain measurement
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Goodput of TCP streams
    Tcp(Box<tcp::TcpArgs>),
    /// Goodput of QUIC, with a server of its protocol perf
    Quic(Box<quic::QuicArgs>),
    /// Latency under load over HTTP/2 and TLS: round trips per minute, idle and working latency
    Responsiveness(Box<responsiveness::ResponsivenessArgs>),
    /// Requests and responses over one connection a stream: latency, transactions a second
    Rr(Box<rr::RrArgs>),
    /// Connect, request, response, close: each transaction on a connection of its own
    Crr(Box<rr::CrrArgs>),
    /// STAMP session with any reflector: RTT, loss and delay variation of each direction
    Stamp(Box<stamp::StampArgs>),
    /// UDP at a rate: loss, reordering, delay variation, and where each datagram went
    Udp(Box<udp::UdpArgs>),
}

impl Args {
    pub(crate) fn run(self) -> Outcome {
        match self.what {
            What::Tcp(args) => args.run(),
            What::Quic(args) => args.run(),
            What::Udp(args) => args.run(),
            What::Responsiveness(args) => args.run(),
            What::Rr(args) => args.run(),
            What::Crr(args) => args.run(),
            What::Stamp(args) => args.run(),
        }
    }
}
