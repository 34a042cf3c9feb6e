//! The host of an end while a trial runs: its CPUs, and the memory of its sockets. All times are cumulative.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    pub const fn total_us(&self) -> u64 {
        self.busy_us().saturating_add(self.steal_us).saturating_add(self.idle_us)
    }

    /// All but idle and stolen time.
    pub const fn busy_us(&self) -> u64 {
        // What comes from another host may be any number.
        self.user_us.saturating_add(self.system_us).saturating_add(self.irq_us).saturating_add(self.softirq_us)
    }

    /// What passed since `earlier`; a counter that went backwards gives 0.
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
