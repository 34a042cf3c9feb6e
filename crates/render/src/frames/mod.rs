//! Raw frames: the view of a generator and a receiver as text, and one line per interval while they run. As
//! JSON it is [`crate::json::pretty`] of the view.

mod flows;
pub mod progress;
pub mod text;
pub mod words;
