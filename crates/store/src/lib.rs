//! Stored runs: all in one SQLite file or PostgreSQL database ([`Store`]), or one file per run; each is read according to its format version.
//!
//! What is stored is the [`Run`](narrows_model::Run) as JSON. Reports are never stored: they are derived from the run, so that
//! newer rules can evaluate an old one.

mod body;
mod columns;
pub mod compat;
pub mod database;
pub mod error;
pub mod file;
pub mod filter;
pub mod id;
mod migrations;
#[cfg(all(test, feature = "postgres"))]
#[path = "../tests/server/mod.rs"]
mod server;
pub mod spool;

pub use body::json_of_columns;
pub use database::fleet::FleetTests;
pub use database::{KIND_OF_RUNS, Point, Store, is_address, shown};
pub use error::Error;
pub use file::{LARGEST, host, load, save};
pub use filter::Filter;
pub use id::{file_name, new_id};
