//! A fleet: hosts that are tested again and again. What its file asks for ([`plan`]), which tests are due when ([`schedule`]), and what that
//! costs ([`cost`]). Pure: no IO, no clock.
//!
//! Times are milliseconds since the Unix epoch.

pub mod cost;
pub mod plan;
pub mod schedule;
