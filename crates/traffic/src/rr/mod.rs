//! The request/response engine: `TCP_RR`, `UDP_RR` and `TCP_CRR` as defined by netperf. The client requests, the server responds.
//!
//! **Closed loop** (no rate): each stream keeps `outstanding` requests in flight; the next one is sent as soon as one is
//! answered or lost. A latency counts from the request's first byte out.
//!
//! **Open loop** (a rate): each request has an instant at which it is due, regardless of earlier requests. No more than
//! `outstanding` are in flight; a request that has to wait for that is sent as soon as possible, and its latency counts from
//! the instant at which it was **due**. So a path that stalls for a second shows as a second of latency in all requests of that
//! second, and not in one alone (coordinated omission). A remark counts the requests that were due and could not be sent before
//! the end.
//!
//! A latency ends when the requesting thread has the response's last byte: it includes the wake-ups of both ends. Latencies
//! before `omit_ms` are not in the distributions; all counts include the whole trial.

mod answer;
mod budget;
mod engine;
mod pace;
mod requester;
mod sockets;
mod streams;
mod tally;
mod tcp_requester;
mod tcp_responder;
mod transactor;
mod udp_requester;
mod udp_responder;

pub use answer::{ANSWER_LIMIT, Answering, Answers, Step, answer};
