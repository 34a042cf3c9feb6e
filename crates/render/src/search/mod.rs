//! A search for the highest load within a loss goal: its view, as text and as pictures. As JSON it is
//! [`crate::json::pretty`] of the view.

pub mod curve;
pub mod svg;
pub mod text;
