//! The flags that several commands share, each defined once. A command flattens the groups that it needs and adapts a default or a
//! help text with `mut_arg`.

mod filter;
mod given;
pub(crate) mod habits;
pub(crate) mod known;
mod load;
pub(crate) mod old;
mod output;
mod rate;
mod remote;
mod size;
mod tcp;
mod time;
mod udp;
pub(crate) mod values;

pub(crate) use filter::{FilterArgs, confirmed};
pub(crate) use given::Given;
pub(crate) use load::{DirectionArg, DirectionListArg, DirectionWord, LoadArgs, SeedArg, SocketArgs, StreamsArg};
pub(crate) use output::{FormatArg, FullArg, OutputArg, ResultArgs, SaveArgs, SvgArg, TuiArg, ViewArgs};
pub(crate) use rate::{FrameRateArg, LinkSpeedArg, PathRateArg, RateArg, TransactionRateArg};
pub(crate) use remote::{FamilyArg, ProxyArgs, RemoteArgs, TrustArgs, WayArgs};
pub(crate) use size::{FrameSizeArg, FrameSizeListArg, SizeArg, SizeListArg};
pub(crate) use tcp::TcpLoadArgs;
pub(crate) use time::{DurationArg, IntervalArg, OmitArg, slow_start_ms};
pub(crate) use udp::UdpLoadArgs;

/// The words of a flag for the variants of a model's enum.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident for $model:ty { $($(#[$help:meta])* $variant:ident),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
        pub(crate) enum $name {
            $($(#[$help])* $variant,)*
        }

        impl From<$name> for $model {
            fn from(word: $name) -> Self {
                match word {
                    $($name::$variant => Self::$variant,)*
                }
            }
        }
    };
}
pub(crate) use words;
