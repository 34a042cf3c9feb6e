//! Real frames over a virtual pair inside a network namespace of the test's own: each mode of sending against each of
//! counting; every frame must come, once and in order.
#![allow(clippy::unwrap_used)] // tests may unwrap

mod counts;
mod ends;
mod modes;
mod walks;
mod wire;
