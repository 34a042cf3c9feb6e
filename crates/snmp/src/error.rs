//! Errors between this host and an agent: each names the agent, the object and what to do.

use thiserror::Error;

/// Why an agent's counters could not be read.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum SnmpError {
    /// The target is invalid.
    #[error("cannot query SNMP agent {agent}: {why}")]
    BadTarget {
        agent: String,
        /// What is wrong and what is allowed.
        why: String,
    },
    /// This host cannot send requests at all.
    #[error("cannot reach SNMP agent {agent}: {why}; check its name, the route and the open-file limit of this host")]
    Unreachable { agent: String, why: String },
    #[error(
        "cannot read {object} from SNMP agent {agent}: no answer within {within_ms} ms ({asked} requests); check the \
        {secret}, address and port, that the agent runs and admits this host, and firewalls"
    )]
    NoAnswer {
        agent: String,
        /// What was asked for.
        object: String,
        within_ms: u64,
        /// How often the request was sent.
        asked: u32,
        /// `community` or `user name or password`.
        secret: &'static str,
    },
    /// An answer that is not SNMP.
    #[error(
        "cannot read {object} from SNMP agent {agent}: it sent {datagrams} that are not an answer; check its SNMP \
        version and that no other program uses the port"
    )]
    Unreadable {
        agent: String,
        /// What was asked for.
        object: String,
        /// `1 datagram`, `3 datagrams`.
        datagrams: String,
    },
    /// The agent answered with an error.
    #[error("cannot read {object} from SNMP agent {agent}: {why}; {advice}")]
    Refused {
        agent: String,
        /// What was asked for.
        object: String,
        /// The agent's error status.
        why: String,
        advice: &'static str,
    },
    #[error("cannot use {object} of SNMP agent {agent}: {why}")]
    Wrong {
        agent: String,
        /// What was asked for.
        object: String,
        why: String,
    },
    /// The agent does not have the object.
    #[error(
        "cannot read {object} from SNMP agent {agent}: not available; give the community or user access to IF-MIB \
        (1.3.6.1.2.1.2 and 1.3.6.1.2.1.31)"
    )]
    Absent {
        agent: String,
        /// What was asked for.
        object: String,
    },
    /// The agent has more instances than are accepted.
    #[error("SNMP agent {agent} lists more than {limit} of {object}; select the interface by number, as `#17`")]
    TooMany {
        agent: String,
        /// What was asked for.
        object: String,
        limit: usize,
    },
    #[error("SNMP agent {agent} has no interface `{wanted}`; it has {known}")]
    NoInterface {
        agent: String,
        /// The name in the plan.
        wanted: String,
        /// The names that the agent has, truncated if there are many.
        known: String,
    },
    /// The name matches several interfaces.
    #[error("SNMP agent {agent} has several interfaces `{wanted}`; select one by number, {numbers}")]
    Ambiguous {
        agent: String,
        /// The name in the plan.
        wanted: String,
        /// `#3, #7`.
        numbers: String,
    },
    /// The number now belongs to another interface.
    #[error(
        "interface #{number} of SNMP agent {agent} was `{was}` and is now `{is}`: the device renumbered its \
        interfaces; start again, and make the numbers persistent on the device"
    )]
    Renumbered { agent: String, number: u32, was: String, is: String },
}
