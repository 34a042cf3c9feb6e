//! # tcp-receive-window
//!
//! Receive buffer autotuning ends at the maximum of `net.ipv4.tcp_rmem`, so the advertised window does too, and no more than
//! one window is in flight per round trip. Source: kernel Documentation/networking/ip-sysctl.rst.

use super::undo::set_maximum;
use super::{Fault, HOSTS, Parameter, Undo, Unit, Value};
use crate::Result;
use crate::host::Host;

pub(super) const FAULT: Fault = Fault {
    id: "tcp-receive-window",
    about: "the receive buffer of TCP ends early",
    places: HOSTS,
    parameter: Some(Parameter { unit: Unit::Bytes, default: "256k", about: "the maximum of net.ipv4.tcp_rmem" }),
    host: Some(inject),
    path: None,
};

fn inject(host: &Host, value: &Value) -> Result<Undo> {
    set_maximum(host, "net.ipv4.tcp_rmem", value.number())
}
