//! Values and their spelling: units, places, addresses.

/// Enums whose variants are words, a line each: the same word in JSON, in text and on the command line.
#[macro_export]
macro_rules! words {
    ($(
        $(#[$meta:meta])*
        pub enum $name:ident { $($(#[$about:meta])* $variant:ident = $word:literal,)* }
    )*) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        pub enum $name { $($(#[$about])* #[serde(rename = $word)] $variant,)* }

        impl $name {
            /// All of them.
            pub const ALL: [Self; [$($word),*].len()] = [$(Self::$variant),*];

            /// The word used in every format and flag.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.word())
            }
        }
    )*};
}
pub use words;

pub mod date;
pub mod figures;
pub mod mac;
pub mod place;
pub mod show;
pub mod units;
