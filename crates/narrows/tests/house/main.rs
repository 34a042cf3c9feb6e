//! The rules of the house, as tests: each failure says the rule, the place and the way out.
//!
//! They read the source tree and nothing else, so they need no build of the crates that they judge.

#![allow(clippy::disallowed_methods, clippy::panic)] // a test reads the tree that it judges and fails loudly; the bans are for the program

mod additions;
mod arrows;
mod circles;
mod glossary;
mod pages;
mod size;
mod tables;
mod tree;
mod words;
