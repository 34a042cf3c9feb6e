//! The control plane from end to end, on the loopback device of fresh network namespaces: what users meet, and what those meet
//! who mean harm or lose their power cord. Each test has a namespace and a state directory of its own.

mod abuse;
mod connections;
mod interfaces;
mod loss;
mod queue;
mod reach;
mod reflection;
mod ssh;
mod tokens;
mod trials;
mod trust;
mod tuning;
mod world;
