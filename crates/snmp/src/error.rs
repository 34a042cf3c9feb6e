//! Errors between this host and an agent: each names the agent, the object and what to do.

use thiserror::Error;

/// Why an agent's counters could not be read.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum SnmpError {
    /// The target is invalid.
    #[error("cannot ask the SNMP agent {agent}: {why}")]
    BadTarget {
        /// Its address.
        agent: String,
        /// What is wrong and what is allowed.
        why: String,
    },
    /// This host cannot send requests at all.
    #[error(
        "cannot reach the SNMP agent {agent}: {why}; check its name, the route and the descriptor limit of this host"
    )]
    Unreachable {
        /// Its address.
        agent: String,
        /// This host's error.
        why: String,
    },
    /// No answer.
    #[error(
        "no answer from the SNMP agent {agent} to {object} within {within_ms} ms ({asked} times asked); a wrong {secret} looks the \
         same: check {secret}, address and port, that the agent runs and lets this host in, and a firewall between"
    )]
    NoAnswer {
        /// Its address.
        agent: String,
        /// What was asked for.
        object: String,
        /// Timeout, including repeats.
        within_ms: u64,
        /// How often the request was sent.
        asked: u32,
        /// `community` or `user name or password`.
        secret: &'static str,
    },
    /// An answer that is not SNMP.
    #[error(
        "the SNMP agent {agent} did not answer {object}, but sent {datagrams} that cannot be read as an answer: is it an SNMP \
         agent of this version, and alone on that port?"
    )]
    Unreadable {
        /// Its address.
        agent: String,
        /// What was asked for.
        object: String,
        /// `1 datagram`, `3 datagrams`.
        datagrams: String,
    },
    /// The agent answered with an error.
    #[error("the SNMP agent {agent} refused {object}: {why}; {advice}")]
    Refused {
        /// Its address.
        agent: String,
        /// What was asked for.
        object: String,
        /// The agent's error status.
        why: String,
        /// What to do.
        advice: &'static str,
    },
    /// An unexpected answer.
    #[error("the SNMP agent {agent} answered {object} wrongly: {why}; its counters cannot be used")]
    Wrong {
        /// Its address.
        agent: String,
        /// What was asked for.
        object: String,
        /// What is wrong.
        why: String,
    },
    /// The agent does not have the object.
    #[error(
        "the SNMP agent {agent} has no {object}: let the community or user see IF-MIB (1.3.6.1.2.1.2 and 1.3.6.1.2.1.31)"
    )]
    Absent {
        /// Its address.
        agent: String,
        /// What was asked for.
        object: String,
    },
    /// The agent has more instances than are accepted.
    #[error("the SNMP agent {agent} lists more than {limit} of {object}: name the interface by its number, as `#17`")]
    TooMany {
        /// Its address.
        agent: String,
        /// What was asked for.
        object: String,
        /// The maximum.
        limit: usize,
    },
    /// No such interface.
    #[error("the SNMP agent {agent} has no interface `{wanted}`: it has {known}")]
    NoInterface {
        /// Its address.
        agent: String,
        /// The name in the plan.
        wanted: String,
        /// The names that the agent has, truncated if there are many.
        known: String,
    },
    /// The name matches several interfaces.
    #[error("the SNMP agent {agent} has several interfaces `{wanted}`: name one by its number, {numbers}")]
    Ambiguous {
        /// Its address.
        agent: String,
        /// The name in the plan.
        wanted: String,
        /// `#3, #7`.
        numbers: String,
    },
    /// The number now belongs to another interface.
    #[error(
        "interface #{number} of the SNMP agent {agent} was `{was}` and is `{is}` now: the device numbered its interfaces anew \
         (it restarted?); begin again, and make the numbers persistent on the device"
    )]
    Renumbered {
        /// Its address.
        agent: String,
        /// ifIndex.
        number: u32,
        /// Before.
        was: String,
        /// Now.
        is: String,
    },
}
