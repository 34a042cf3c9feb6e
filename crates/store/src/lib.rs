//! Runs on disk: one file a run, written whole after every step, read by the version of its form.
//!
//! A run's file is the [`Run`](narrows_model::Run) as JSON. Reports are never stored: they are made from the run, so that
//! newer rules can look at an old one again.

pub mod compat;
pub mod directory;
pub mod error;
pub mod file;
pub mod id;

pub use directory::{Entry, list};
pub use error::Error;
pub use file::{LARGEST, load, save};
pub use id::{file_name, new_id};
