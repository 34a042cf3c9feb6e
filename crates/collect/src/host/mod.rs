//! The source of facts: a live host or a recorded one. Every collector reads through this interface.

mod live;
mod recorded;
mod recorder;
mod scrub;

pub use live::Live;
pub use recorded::{CaptureError, Meta, Recorded};
pub use recorder::{Keep, Recording, record};

use crate::Missing;
use crate::kernel::{
    Answer, Ethtool, FilterDrops, Forwarding, Link, Neighbour, Qdiscs, Question, Route, Statistics, Wifi,
};
use std::net::IpAddr;

/// A host that can be read: its files below `/proc` and `/sys`, and the kernel's answers to queries.
///
/// A live host answers for the network namespace of the calling thread; use it only on the thread that made it.
pub trait Host {
    /// The text of a file below `/proc` or `/sys`.
    /// Errors: why it cannot be read.
    fn read(&self, path: &str) -> Result<String, Missing>;

    /// The names in a directory below `/proc` or `/sys`, sorted.
    /// Errors: why it cannot be read.
    fn list(&self, path: &str) -> Result<Vec<String>, Missing>;

    /// The target of a symbolic link below `/sys`.
    /// Errors: why it cannot be read.
    fn target(&self, path: &str) -> Result<String, Missing>;

    /// The kernel's answer to a query.
    fn ask(&self, question: &Question) -> Result<Answer, Missing>;

    /// When the facts were read, microseconds since the Unix epoch by the host's clock.
    fn taken_unix_us(&self) -> u64;

    /// The peer of the capture, for a recorded host.
    fn peer(&self) -> Option<IpAddr> {
        None
    }
}

macro_rules! typed {
    ($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) -> $answer:ident, $question:expr) => {
        $(#[$doc])*
        pub fn $name(&self, $($argument: $type),*) -> Result<$answer, Missing> {
            let question = $question;
            match self.ask(&question)? {
                Answer::$answer(answer) => Ok(answer),
                _ => Err(Missing::because(format!("{} has the answer to another request", question.file()))),
            }
        }
    };
}

impl dyn Host + '_ {
    typed!(
        /// A network interface by its name.
        link(device: &str) -> Link, Question::Link { device: device.to_owned() }
    );
    typed!(
        /// The route to a peer, or the default route.
        route(peer: Option<IpAddr>) -> Route, Question::Route { peer }
    );
    typed!(
        /// The route to the other end of a tunnel.
        underlay(tunnel: &str, remote: IpAddr) -> Route, Question::Underlay { tunnel: tunnel.to_owned(), remote }
    );
    typed!(
        /// Where a bridge or VXLAN sends frames for an Ethernet address.
        forwarding(device: &str, address: &str) -> Forwarding,
        Question::Forwarding { device: device.to_owned(), address: address.to_owned() }
    );
    typed!(
        /// The neighbour entry of an address on an interface.
        neighbour(address: IpAddr, device: &str) -> Neighbour,
        Question::Neighbour { address, device: device.to_owned() }
    );
    typed!(
        /// The queueing disciplines and classes of an interface.
        qdiscs(device: &str) -> Qdiscs, Question::Qdiscs { device: device.to_owned() }
    );
    typed!(
        /// The driver's description of itself and its settings.
        ethtool(device: &str) -> Ethtool, Question::Ethtool { device: device.to_owned() }
    );
    typed!(
        /// The driver's own counters.
        statistics(device: &str) -> Statistics, Question::Statistics { device: device.to_owned() }
    );
    typed!(
        /// The station that a wireless interface talks to.
        wifi(device: &str) -> Wifi, Question::Wifi { device: device.to_owned() }
    );
    typed!(
        /// The counters of the `nf_tables` rules that drop packets in this network namespace.
        filter_drops() -> FilterDrops, Question::FilterDrops
    );

    /// The number of `nf_tables` rules in this network namespace.
    pub fn filter_rules(&self) -> Result<u64, Missing> {
        match self.ask(&Question::FilterRules)? {
            Answer::FilterRules(count) => Ok(count),
            _ => Err(Missing::because("the capture has the answer to another request")),
        }
    }

    /// The first word of a file that holds only one.
    pub fn word(&self, path: &str) -> Result<String, Missing> {
        Ok(self.read(path)?.trim().to_owned())
    }

    /// The number in a file that holds only one.
    pub fn number<T: std::str::FromStr>(&self, path: &str) -> Result<T, Missing> {
        crate::parse::number(path, 1, &self.read(path)?)
    }
}
