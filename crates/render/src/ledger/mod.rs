//! The packet ledger as a waterfall: text, a Markdown table and a picture. As JSON it is [`crate::json::pretty`] of the account itself.

pub mod markdown;
mod rows;
pub mod svg;
pub mod text;
