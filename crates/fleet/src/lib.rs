//! A fleet: hosts that are tested again and again. What its file asks for ([`plan`]; made from perfSONAR's, [`psconfig`]), which tests are due when ([`schedule`]), what that
//! costs ([`cost`]), who joins it beside those of its file ([`join`]), what became of each ([`truth`]), who makes them ([`control`], by the messages of [`protocol`]), what they say ([`judge`]), and
//! what is reported ([`incident`]), to whom and in which form ([`alert`]). Pure: no IO, no clock.
//!
//! Times are milliseconds since the Unix epoch.

pub mod alert;
pub mod control;
pub mod cost;
pub mod incident;
pub mod join;
pub mod judge;
pub mod plan;
pub mod protocol;
pub mod psconfig;
pub mod schedule;
pub mod truth;
mod usual;
