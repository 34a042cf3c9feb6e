//! Where facts come from: a live host or a recorded one. Every collector reads through this door.

mod live;
mod recorded;
mod recorder;
mod scrub;

pub use live::Live;
pub use recorded::{CaptureError, Meta, Recorded};
pub use recorder::{Keep, Recording, record};

use crate::Missing;
use crate::kernel::{Answer, Ethtool, FilterDrops, Link, Neighbour, Qdiscs, Question, Route, Statistics};
use std::net::IpAddr;

/// A host that can be read: its files below `/proc` and `/sys`, and the kernel's answers that are no files.
///
/// A live host answers for the network namespace of the calling thread; use it only on the thread that made it.
pub trait Host {
    /// The text of a file below `/proc` or `/sys`.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn read(&self, path: &str) -> Result<String, Missing>;

    /// The names in a directory below `/proc` or `/sys`, sorted.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn list(&self, path: &str) -> Result<Vec<String>, Missing>;

    /// Where a symbolic link below `/sys` points.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn target(&self, path: &str) -> Result<String, Missing>;

    /// The kernel's answer to a question.
    ///
    /// # Errors
    /// Why there is none.
    fn ask(&self, question: &Question) -> Result<Answer, Missing>;

    /// When the facts are true, microseconds since the Unix epoch by the host's clock.
    fn taken_unix_us(&self) -> u64;

    /// The peer that a recorded host was recorded towards.
    fn peer(&self) -> Option<IpAddr> {
        None
    }
}

macro_rules! typed {
    ($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) -> $answer:ident, $question:expr) => {
        $(#[$doc])*
        ///
        /// # Errors
        /// Why it is not known.
        pub fn $name(&self, $($argument: $type),*) -> Result<$answer, Missing> {
            let question = $question;
            match self.ask(&question)? {
                Answer::$answer(answer) => Ok(answer),
                _ => Err(Missing::because(format!("{} holds the answer to another question", question.file()))),
            }
        }
    };
}

impl dyn Host + '_ {
    typed!(
        /// A network device by its name.
        link(device: &str) -> Link, Question::Link { device: device.to_owned() }
    );
    typed!(
        /// The route to a peer, or the default route.
        route(peer: Option<IpAddr>) -> Route, Question::Route { peer }
    );
    typed!(
        /// The neighbour entry of an address on a device.
        neighbour(address: IpAddr, device: &str) -> Neighbour,
        Question::Neighbour { address, device: device.to_owned() }
    );
    typed!(
        /// The queueing disciplines and classes of a device.
        qdiscs(device: &str) -> Qdiscs, Question::Qdiscs { device: device.to_owned() }
    );
    typed!(
        /// What the driver says of itself and its settings.
        ethtool(device: &str) -> Ethtool, Question::Ethtool { device: device.to_owned() }
    );
    typed!(
        /// The driver's own counters.
        statistics(device: &str) -> Statistics, Question::Statistics { device: device.to_owned() }
    );

    typed!(
        /// What the rules of `nf_tables` that drop packets have counted in this network namespace.
        filter_drops() -> FilterDrops, Question::FilterDrops
    );

    /// How many rules `nf_tables` holds in this network namespace.
    ///
    /// # Errors
    /// Why it is not known.
    pub fn filter_rules(&self) -> Result<u64, Missing> {
        match self.ask(&Question::FilterRules)? {
            Answer::FilterRules(count) => Ok(count),
            _ => Err(Missing::because("the capture holds the answer to another question")),
        }
    }

    /// The first word of a file that holds only one.
    ///
    /// # Errors
    /// Why it is not known.
    pub fn word(&self, path: &str) -> Result<String, Missing> {
        Ok(self.read(path)?.trim().to_owned())
    }

    /// The number in a file that holds only one.
    ///
    /// # Errors
    /// Why it is not known.
    pub fn number<T: std::str::FromStr>(&self, path: &str) -> Result<T, Missing> {
        crate::parse::number(path, 1, &self.read(path)?)
    }
}
