//! What each report of a benchmark says, in each of its formats.

mod advice;
mod forwarding;
mod forwarding_ab;
mod samples;
