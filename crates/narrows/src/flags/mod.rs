//! The flags that several commands share, each defined once. A command flattens the groups that it needs and adapts a default or a
//! help text with `mut_arg`.

pub(crate) mod given;
pub(crate) mod load;
pub(crate) mod old;
pub(crate) mod output;
pub(crate) mod rate;
pub(crate) mod remote;
pub(crate) mod size;
pub(crate) mod tcp;
pub(crate) mod time;
pub(crate) mod udp;
pub(crate) mod values;

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
