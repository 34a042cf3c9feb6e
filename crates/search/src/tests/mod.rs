//! The strategies on the test bench.

mod accuracy;
mod hiccups;
mod interface;
mod properties;
mod tester;
