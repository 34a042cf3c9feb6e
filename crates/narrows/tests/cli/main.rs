//! The program as its users meet it when something is wrong: one clear sentence and the exit code, and never a stack trace.
//!
//! What needs a network gets one of its own: a fresh network namespace with nothing but its loopback device. Loads are
//! paced and short.

#![allow(clippy::disallowed_methods, clippy::panic)] // a test that runs the program and fails loudly

mod advise;
mod bench;
mod campaign;
mod chain;
mod compare;
mod connections;
mod ends;
mod far;
mod files;
mod fleet;
mod frames;
mod habits;
mod help;
mod history;
mod iperf3;
mod iperf3_table;
mod kept;
mod lab;
mod mcp;
mod mesh;
mod ndt7;
mod quic;
mod reach;
mod rfc2544;
mod serve_user;
mod shell;
mod sweep;
mod tables;
mod trace;
mod tui;
mod usage;
mod watch;
mod world;
