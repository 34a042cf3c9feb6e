//! Stored runs: one file per run, written atomically after every step, read according to its format version.
//!
//! A run's file is the [`Run`](narrows_model::Run) as JSON. Reports are never stored: they are derived from the run, so that
//! newer rules can evaluate an old one.

pub mod compat;
pub mod error;
pub mod file;
mod form_1;
pub mod id;

pub use error::Error;
pub use file::{LARGEST, host, load, save};
pub use id::{file_name, new_id};
