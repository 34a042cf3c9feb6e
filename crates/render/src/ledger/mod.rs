//! The packet ledger as a waterfall, in words and as a picture. As JSON it is [`crate::json::pretty`] of the account itself.

mod rows;
pub mod svg;
mod written;

pub(crate) use written::add;
pub use written::{markdown, text};
