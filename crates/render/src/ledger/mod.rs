//! The packet ledger as a waterfall: text and picture. As JSON it is [`crate::json::pretty`] of the account itself.

mod rows;
pub mod svg;
pub mod text;
