//! A fleet: hosts that are tested again and again. What its file asks for ([`plan`]), which tests are due when ([`schedule`]), what that
//! costs ([`cost`]), what became of each ([`truth`]), and what
//! is reported ([`incident`]). Pure: no IO, no clock.
//!
//! Times are milliseconds since the Unix epoch.

pub mod cost;
pub mod incident;
pub mod plan;
pub mod schedule;
pub mod truth;
