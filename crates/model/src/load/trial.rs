//! Trials: one engine at one setting, as both ends saw it. Samples are cumulative and raw; rates are derived on reading.

use crate::host::fact::Snapshot;
use crate::load::tcp::TcpPlan;
use crate::load::tcp_info::TcpInfo;
use crate::words::place::{Flow, Place};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which sizes of a socket's buffers the application fixed (`SO_BUF_LOCK`): the kernel then stops tuning them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct BufferLock {
    /// `SO_SNDBUF` was called.
    pub send: bool,
    /// `SO_RCVBUF` was called.
    pub receive: bool,
}

/// A socket's memory (`SO_MEMINFO`, include/uapi/linux/sock_diag.h), all in bytes of kernel memory, overhead included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct SocketMemory {
    /// Bytes held by the receive queue.
    pub rmem_alloc_bytes: u32,
    /// The receive buffer's limit.
    pub rcvbuf_bytes: u32,
    /// Bytes handed to the device and not yet freed.
    pub wmem_alloc_bytes: u32,
    /// The send buffer's limit.
    pub sndbuf_bytes: u32,
    /// Bytes held by the write and retransmit queues.
    pub wmem_queued_bytes: u32,
    /// Bytes waiting in the backlog while the socket is locked.
    pub backlog_bytes: u32,
    /// Packets that the socket dropped.
    pub drops: u32,
}

/// One stream at one instant, seen from one end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct TcpSample {
    /// Since the trial began on this end.
    pub at_us: u64,
    /// Bytes that the application handed over (sender) or took (receiver) so far.
    pub bytes: u64,
    /// Calls that moved them.
    pub calls: u64,
    /// CPU time of the thread that moves the data so far, user and system; `None` where threads are shared.
    pub thread_cpu_us: Option<u64>,
    /// The kernel's view, by the length that it returned.
    pub tcp: TcpInfo,
    /// The socket's memory.
    pub memory: Option<SocketMemory>,
    /// `SIOCINQ`: received, not yet read by the application.
    pub recv_q_bytes: Option<u32>,
    /// `SIOCOUTQ`: written by the application, not yet acknowledged.
    pub send_q_bytes: Option<u32>,
}

/// One stream over a trial, seen from one end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TcpStreamRecord {
    /// From 0, the same on both ends.
    pub id: u32,
    /// Which way its data goes.
    pub flow: Flow,
    /// `address:port` of this end.
    pub local: String,
    /// `address:port` of the other end.
    pub remote: String,
    /// The congestion control in use, read back from the socket.
    pub congestion_control: Option<String>,
    /// The MSS that the socket reported at the start.
    pub mss_bytes: Option<u32>,
    /// Which buffers the application fixed.
    pub buffer_lock: Option<BufferLock>,
    /// `SO_SNDBUF` as obtained right after the connection was made.
    pub sndbuf_bytes: Option<u32>,
    /// `SO_RCVBUF` as obtained right after the connection was made.
    pub rcvbuf_bytes: Option<u32>,
    /// How the sender handed its bytes over: `send`, `sendfile`; how the receiver took them: `recv`, `discard`.
    pub method: String,
    /// In the order of time; the first is taken right after the connection was made, the last after the last byte.
    pub samples: Vec<TcpSample>,
}

/// Times of one CPU since boot (`/proc/stat`, in microseconds; its grain is a tick of 10 ms).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct CpuTimes {
    /// The CPU's number.
    pub cpu: u32,
    /// User code, nice or not.
    pub user_us: u64,
    /// Kernel code in system calls and kernel threads.
    pub system_us: u64,
    /// Interrupts.
    pub irq_us: u64,
    /// Soft interrupts: the network stack's receive path, mostly.
    pub softirq_us: u64,
    /// Time that the hypervisor gave to others.
    pub steal_us: u64,
    /// Nothing to do, or waiting for a disk.
    pub idle_us: u64,
}

impl CpuTimes {
    /// All of it.
    #[must_use]
    pub const fn total_us(&self) -> u64 {
        self.busy_us().saturating_add(self.steal_us).saturating_add(self.idle_us)
    }

    /// All but idle and stolen time.
    #[must_use]
    pub const fn busy_us(&self) -> u64 {
        // What comes from another host may be any number.
        self.user_us.saturating_add(self.system_us).saturating_add(self.irq_us).saturating_add(self.softirq_us)
    }

    /// What passed since `earlier`; a counter that went backwards gives 0.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            cpu: self.cpu,
            user_us: self.user_us.saturating_sub(earlier.user_us),
            system_us: self.system_us.saturating_sub(earlier.system_us),
            irq_us: self.irq_us.saturating_sub(earlier.irq_us),
            softirq_us: self.softirq_us.saturating_sub(earlier.softirq_us),
            steal_us: self.steal_us.saturating_sub(earlier.steal_us),
            idle_us: self.idle_us.saturating_sub(earlier.idle_us),
        }
    }
}

/// The host at one instant of a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct HostSample {
    /// Since the trial began on this end.
    pub at_us: u64,
    /// Each online CPU.
    pub cpus: Vec<CpuTimes>,
}

/// What one end saw of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TcpEndRecord {
    /// Which end.
    pub place: Place,
    /// Its streams, by id.
    pub streams: Vec<TcpStreamRecord>,
    /// The host's CPUs, at the same instants as the streams' samples or near them.
    pub host: Vec<HostSample>,
    /// Counters of the host right before the load.
    pub before: Snapshot,
    /// Counters of the host right after it.
    pub after: Snapshot,
    /// Words on anything that went otherwise than planned (a buffer not obtained, a method not possible).
    pub remarks: Vec<String>,
}

/// One engine at one setting, as both ends saw it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// What was asked for.
    pub plan: TcpPlan,
    /// What the client saw.
    pub client: TcpEndRecord,
    /// What the server saw.
    pub server: TcpEndRecord,
    /// How long the data flowed, by the client's clock.
    pub elapsed_us: u64,
}

impl Trial {
    /// The record of one end. A path records nothing.
    #[must_use]
    pub const fn end(&self, place: Place) -> Option<&TcpEndRecord> {
        match place {
            Place::Client => Some(&self.client),
            Place::Server => Some(&self.server),
            Place::Path => None,
        }
    }
}
