//! Every key of a fact that a rule needs, a table shows or a collector promises, defined once: its name, its unit and
//! the label of its row.
//!
//! The names are published: they are the keys of stored runs and of the JSON output.

use super::fact::{FactKey, Unit};

/// A line is a constant, the name, the unit and, where the key begins a row of the tables, the row's label.
macro_rules! keys {
    ($($key:ident = $name:literal, $unit:ident $(, $label:literal)?;)*) => {
        $(
            #[doc = concat!("`", $name, "`")]
            pub const $key: FactKey = FactKey::new($name, Unit::$unit)$(.label($label))?;
        )*

        /// All of them, with the names of their constants.
        pub const ALL: &[(&str, FactKey)] = &[$((stringify!($key), $key)),*];
    };
}

#[rustfmt::skip]
keys! {
    // The machine and its kernel.
    HOST_NAME = "host.name", Text, "name";
    HOST_KERNEL = "host.kernel", Text, "kernel";
    HOST_VIRTUALISATION = "host.virtualisation", Text, "virtualisation";
    HOST_BOOT = "host.boot", Text;
    CPU_MODEL = "cpu.model", Text, "CPU";
    CPU_COUNT = "cpu.count", Number, "CPUs";
    CPU_NUMA_NODES = "cpu.numa_nodes", Number, "NUMA nodes";
    CPU_GOVERNOR = "cpu.governor", Text, "governor";
    CPU_FREQUENCY = "cpu.frequency", Hertz, "frequency";
    CPU_FREQUENCY_MAX = "cpu.frequency.max", Hertz;
    CPU_FREQUENCY_LIMIT = "cpu.frequency.limit", Hertz;
    CPU_THERMAL_THROTTLED_MS = "cpu.thermal.throttled_ms", Count;
    CPU_TIME_USER = "cpu.time.user", Count;
    CPU_TIME_SYSTEM = "cpu.time.system", Count;
    CPU_TIME_IRQ = "cpu.time.irq", Count;
    CPU_TIME_SOFTIRQ = "cpu.time.softirq", Count;
    CPU_TIME_STEAL = "cpu.time.steal", Count;
    CPU_TIME_IDLE = "cpu.time.idle", Count;
    MEMORY_TOTAL = "memory.total", Bytes, "memory";
    MEMORY_AVAILABLE = "memory.available", Bytes, "available memory";
    MEMORY_PRESSURE_SOME_US = "memory.pressure.some_us", Count;
    MEMORY_PRESSURE_FULL_US = "memory.pressure.full_us", Count;
    SWAP_TOTAL = "swap.total", Bytes;
    SWAP_USED = "swap.used", Bytes, "swap in use";
    CGROUP_CPU_QUOTA = "cgroup.cpu_quota", Fraction, "CPU quota (cores)";
    CGROUP_CPU_PERIODS = "cgroup.cpu.periods", Count;
    CGROUP_CPU_THROTTLED = "cgroup.cpu.throttled", Count;
    CGROUP_CPU_THROTTLED_US = "cgroup.cpu.throttled_us", Count;
    CGROUP_MEMORY_LIMIT = "cgroup.memory.limit", Bytes;
    CGROUP_MEMORY_SOCK = "cgroup.memory.sock", Bytes;
    CGROUP_MEMORY_EVENTS = "cgroup.memory.events", Count;
    CGROUP_MEMORY_SCANNED = "cgroup.memory.scanned", Count;
    CGROUP_MEMORY_RECLAIMED = "cgroup.memory.reclaimed", Count;
    VMSTAT_PSWPIN = "vmstat.pswpin", Count;
    VMSTAT_PSWPOUT = "vmstat.pswpout", Count;
    VMSTAT_PGMAJFAULT = "vmstat.pgmajfault", Count;
    SOFTIRQ_NET_RX = "softirq.net_rx", Count;
    SOFTIRQ_NET_TX = "softirq.net_tx", Count;
    // The network interface.
    NIC_NAME = "nic.name", Text, "interface";
    NIC_KIND = "nic.kind", Text;
    NIC_BOND_MODE = "nic.bond.mode", Text;
    NIC_HARDWARE = "nic.hardware", Text;
    NIC_MTU = "nic.mtu", Bytes, "MTU";
    // Virtual interfaces and what is below them: the last part is the number of the layer, 0 on top.
    LAYERS = "layers", Text, "layers";
    LAYER_NAME = "layer.name.*", Text;
    LAYER_KIND = "layer.kind.*", Text;
    LAYER_MTU = "layer.mtu.*", Bytes;
    LAYER_OVERHEAD = "layer.overhead.*", Bytes;
    LAYER_REMOTE = "layer.remote.*", Text;
    LAYER_SPEED = "layer.speed.*", BitsPerSecond;
    LAYER_OFF = "layer.off.*", Text;
    LAYER_TX_DROPPED = "layer.tx_dropped.*", Count;
    LAYER_RX_DROPPED = "layer.rx_dropped.*", Count;
    LAYER_QDISC_DROPS = "layer.qdisc_drops.*", Count;
    NIC_TXQUEUELEN = "nic.txqueuelen", Packets, "txqueuelen";
    NIC_GSO_MAX = "nic.gso_max", Bytes, "largest segment sent";
    NIC_GRO_MAX = "nic.gro_max", Bytes, "largest segment received";
    NIC_TSO_MAX = "nic.tso_max", Bytes;
    NIC_UP = "nic.up", Flag;
    NIC_CARRIER = "nic.carrier", Flag, "link up";
    NIC_COUNTER = "nic.counter.*", Count;
    NIC_DRIVER = "nic.driver", Text, "driver";
    NIC_DRIVER_VERSION = "nic.driver_version", Text;
    NIC_FIRMWARE = "nic.firmware", Text, "firmware";
    NIC_BUS = "nic.bus", Text, "bus";
    NIC_NUMA_NODE = "nic.numa_node", Number, "NUMA node";
    NIC_IOMMU = "nic.iommu", Text, "IOMMU";
    NIC_LOCAL_CPUS = "nic.local_cpus", Cpu;
    NIC_FEATURE_TSO = "nic.feature.tso", Flag, "TSO";
    NIC_FEATURE_GSO = "nic.feature.gso", Flag, "GSO";
    NIC_FEATURE_GRO = "nic.feature.gro", Flag, "GRO";
    NIC_FEATURE_LRO = "nic.feature.lro", Flag, "LRO";
    NIC_FEATURE_TX_CHECKSUM = "nic.feature.tx_checksum", Flag, "tx checksums";
    NIC_FEATURE_RX_CHECKSUM = "nic.feature.rx_checksum", Flag, "rx checksums";
    NIC_FEATURE_SCATTER_GATHER = "nic.feature.scatter_gather", Flag, "scatter-gather";
    NIC_FEATURE_FIXED_OFF = "nic.feature.fixed_off", Text;
    NIC_IRQ_INTERRUPTS = "nic.irq.interrupts", Count;
    NIC_IRQ_COUNT = "nic.irq.count", Number, "interrupts";
    NIC_IRQ_CPUS = "nic.irq.cpus", Cpu, "interrupt CPUs";
    NIC_SPEED = "nic.speed", BitsPerSecond, "link speed";
    NIC_SPEED_MAX = "nic.speed.max", BitsPerSecond;
    NIC_DUPLEX = "nic.duplex", Text, "duplex";
    NIC_AUTONEG = "nic.autoneg", Flag, "autonegotiation";
    NIC_PAUSE_RX = "nic.pause.rx", Flag, "flow control rx";
    NIC_PAUSE_TX = "nic.pause.tx", Flag, "flow control tx";
    NIC_PAUSE_AUTONEG = "nic.pause.autoneg", Flag, "flow control autoneg";
    NIC_RING_RX = "nic.ring.rx", Number, "rx ring";
    NIC_RING_RX_MAX = "nic.ring.rx.max", Number;
    NIC_RING_TX = "nic.ring.tx", Number, "tx ring";
    NIC_RING_TX_MAX = "nic.ring.tx.max", Number;
    NIC_CHANNELS_RX = "nic.channels.rx", Number;
    NIC_CHANNELS_RX_MAX = "nic.channels.rx.max", Number;
    NIC_CHANNELS_TX = "nic.channels.tx", Number;
    NIC_CHANNELS_TX_MAX = "nic.channels.tx.max", Number;
    NIC_CHANNELS_COMBINED = "nic.channels.combined", Number, "channels";
    NIC_CHANNELS_COMBINED_MAX = "nic.channels.combined.max", Number;
    NIC_WIFI_TX_RATE = "nic.wifi.tx_rate", BitsPerSecond;
    NIC_WIFI_RX_RATE = "nic.wifi.rx_rate", BitsPerSecond;
    NIC_WIFI_SIGNAL = "nic.wifi.signal", Number;
    NIC_WIFI_TX_PACKETS = "nic.wifi.tx_packets", Count;
    NIC_WIFI_TX_RETRIES = "nic.wifi.tx_retries", Count;
    NIC_WIFI_TX_FAILED = "nic.wifi.tx_failed", Count;
    NIC_COALESCE_RX_USECS = "nic.coalesce.rx_usecs", Microseconds, "rx coalescing";
    NIC_COALESCE_RX_FRAMES = "nic.coalesce.rx_frames", Packets;
    NIC_COALESCE_TX_USECS = "nic.coalesce.tx_usecs", Microseconds;
    NIC_COALESCE_TX_FRAMES = "nic.coalesce.tx_frames", Packets;
    NIC_COALESCE_ADAPTIVE_RX = "nic.coalesce.adaptive_rx", Flag;
    NIC_COALESCE_ADAPTIVE_TX = "nic.coalesce.adaptive_tx", Flag;
    NIC_STAT = "nic.stat.*", Count;
    NIC_COUNTER_RX_DROPPED = "nic.counter.rx_dropped", Count, "receive drops";
    NIC_COUNTER_RX_PACKETS = "nic.counter.rx_packets", Count, "packets received";
    NIC_COUNTER_RX_ERRORS = "nic.counter.rx_errors", Count, "receive errors";
    NIC_COUNTER_RX_MISSED_ERRORS = "nic.counter.rx_missed_errors", Count, "rx_missed_errors";
    NIC_COUNTER_RX_CRC_ERRORS = "nic.counter.rx_crc_errors", Count;
    NIC_COUNTER_RX_FRAME_ERRORS = "nic.counter.rx_frame_errors", Count;
    NIC_COUNTER_TX_WINDOW_ERRORS = "nic.counter.tx_window_errors", Count;
    NIC_COUNTER_TX_PACKETS = "nic.counter.tx_packets", Count, "packets sent";
    NIC_COUNTER_TX_BYTES = "nic.counter.tx_bytes", Count, "bytes sent";
    NIC_COUNTER_TX_DROPPED = "nic.counter.tx_dropped", Count, "send drops";
    NIC_COUNTER_TX_ERRORS = "nic.counter.tx_errors", Count, "send errors";
    NIC_COUNTER_RX_BYTES = "nic.counter.rx_bytes", Count, "bytes received";
    NIC_COUNTER_RX_FIFO_ERRORS = "nic.counter.rx_fifo_errors", Count;
    NIC_COUNTER_RX_OVER_ERRORS = "nic.counter.rx_over_errors", Count;
    RPS_CPUS = "rps.cpus", Cpu, "RPS CPUs";
    PCIE_SPEED = "pcie.speed", GigaTransfersPerSecond, "link";
    PCIE_SPEED_MAX = "pcie.speed.max", GigaTransfersPerSecond, "PCIe link of the NIC";
    PCIE_WIDTH = "pcie.width", Lanes;
    PCIE_WIDTH_MAX = "pcie.width.max", Lanes;
    PCIE_BANDWIDTH = "pcie.bandwidth", BitsPerSecond, "bandwidth";
    PCIE_BANDWIDTH_MAX = "pcie.bandwidth.max", BitsPerSecond;
    PCIE_NARROWEST = "pcie.narrowest", Text, "narrowest link";
    PCIE_PARENTS_SPEED = "pcie.parents.speed.*", GigaTransfersPerSecond;
    PCIE_PARENTS_SPEED_MAX = "pcie.parents.speed_max.*", GigaTransfersPerSecond;
    PCIE_PARENTS_WIDTH = "pcie.parents.width.*", Lanes;
    PCIE_PARENTS_WIDTH_MAX = "pcie.parents.width_max.*", Lanes;
    PCIE_PARENTS_BANDWIDTH = "pcie.parents.bandwidth.*", BitsPerSecond;
    // TCP.
    TCP_MEM_USED = "tcp.mem.used", Pages;
    TCP_RMEM_MIN = "tcp.rmem.min", Bytes, "tcp_rmem";
    TCP_RMEM_DEFAULT = "tcp.rmem.default", Bytes;
    TCP_RMEM_MAX = "tcp.rmem.max", Bytes;
    TCP_WMEM_MIN = "tcp.wmem.min", Bytes, "tcp_wmem";
    TCP_WMEM_DEFAULT = "tcp.wmem.default", Bytes;
    TCP_WMEM_MAX = "tcp.wmem.max", Bytes;
    TCP_MEM_LOW = "tcp.mem.low", Pages, "tcp_mem";
    TCP_MEM_PRESSURE = "tcp.mem.pressure", Pages;
    TCP_MEM_HIGH = "tcp.mem.high", Pages;
    TCP_SACK = "tcp.sack", Flag, "SACK";
    TCP_TIMESTAMPS = "tcp.timestamps", Flag, "timestamps";
    TCP_WINDOW_SCALING = "tcp.window_scaling", Flag, "window scaling";
    TCP_ECN = "tcp.ecn", Number, "ECN";
    TCP_CONGESTION_CONTROL = "tcp.congestion_control", Text, "default congestion control";
    TCP_CONGESTION_CONTROL_AVAILABLE = "tcp.congestion_control.available", Text, "available";
    TCP_NO_METRICS_SAVE = "tcp.no_metrics_save", Flag, "no_metrics_save";
    TCP_MTU_PROBING = "tcp.mtu_probing", Number, "MTU probing";
    TCP_SLOW_START_AFTER_IDLE = "tcp.slow_start_after_idle", Flag, "slow start after idle";
    TCP_MODERATE_RCVBUF = "tcp.moderate_rcvbuf", Flag, "receive autotuning";
    TCP_ADV_WIN_SCALE = "tcp.adv_win_scale", Number;
    TCP_NOTSENT_LOWAT = "tcp.notsent_lowat", Bytes;
    TCP_AUTOCORKING = "tcp.autocorking", Flag;
    TCP_LIMIT_OUTPUT_BYTES = "tcp.limit_output_bytes", Bytes;
    // UDP and IP.
    UDP_MEM_USED = "udp.mem.used", Pages;
    UDP_MEM_LOW = "udp.mem.low", Pages, "udp_mem";
    UDP_MEM_PRESSURE = "udp.mem.pressure", Pages;
    UDP_MEM_HIGH = "udp.mem.high", Pages;
    UDP_RMEM_MIN = "udp.rmem_min", Bytes, "udp_rmem_min";
    UDP_WMEM_MIN = "udp.wmem_min", Bytes, "udp_wmem_min";
    IP_FRAG_MEM_USED = "ip.frag.mem.used", Bytes;
    IP_FRAG_HIGH = "ip.frag.high", Bytes;
    IP6_FRAG_MEM_USED = "ip6.frag.mem.used", Bytes;
    IP6_FRAG_HIGH = "ip6.frag.high", Bytes;
    // Sockets, queues and the receive path.
    CORE_RMEM_DEFAULT = "core.rmem.default", Bytes, "core rmem default";
    CORE_RMEM_MAX = "core.rmem.max", Bytes, "core rmem max";
    CORE_WMEM_DEFAULT = "core.wmem.default", Bytes, "core wmem default";
    CORE_WMEM_MAX = "core.wmem.max", Bytes, "core wmem max";
    CORE_NETDEV_MAX_BACKLOG = "core.netdev_max_backlog", Packets, "netdev_max_backlog";
    CORE_NETDEV_BUDGET = "core.netdev_budget", Packets, "netdev_budget";
    CORE_NETDEV_BUDGET_USECS = "core.netdev_budget_usecs", Microseconds;
    CORE_DEFAULT_QDISC = "core.default_qdisc", Text, "default qdisc";
    QDISC_DEVICE = "qdisc.device", Text;
    QDISC_ROOT_KIND = "qdisc.root.kind", Text, "root qdisc";
    QDISC_KINDS = "qdisc.kinds", Text;
    QDISC_RATE = "qdisc.rate", BitsPerSecond, "qdisc rate";
    QDISC_RATE_KIND = "qdisc.rate.kind", Text;
    // Classes of a shaper; the last part is the class: `1:10`.
    QDISC_CLASS_RATE = "qdisc.class.rate.*", BitsPerSecond;
    QDISC_CLASS_SENT = "qdisc.class.sent.*", Count;
    QDISC_LIMIT_PACKETS = "qdisc.limit.packets", Packets;
    QDISC_LIMIT_BYTES = "qdisc.limit.bytes", Bytes;
    QDISC_SENT_BYTES = "qdisc.sent.bytes", Count;
    QDISC_SENT_PACKETS = "qdisc.sent.packets", Count;
    QDISC_DROPS = "qdisc.drops", Count, "qdisc drops";
    QDISC_OVERLIMITS = "qdisc.overlimits", Count;
    QDISC_REQUEUES = "qdisc.requeues", Count;
    QDISC_BACKLOG_BYTES = "qdisc.backlog.bytes", Bytes;
    QDISC_BACKLOG_PACKETS = "qdisc.backlog.packets", Packets;
    QDISC_LEAF_DROPS = "qdisc.leaf.drops", Count;
    QDISC_LEAF_OVERLIMITS = "qdisc.leaf.overlimits", Count;
    SOFTNET_PROCESSED = "softnet.processed", Count;
    SOFTNET_DROPPED = "softnet.dropped", Count;
    SOFTNET_TIME_SQUEEZE = "softnet.time_squeeze", Count;
    SOFTNET_RECEIVED_RPS = "softnet.received_rps", Count;
    SOFTNET_FLOW_LIMIT = "softnet.flow_limit", Count;
    SOFTNET = "softnet.*", Count;
    // The way to the peer.
    ROUTE_DEVICE = "route.device", Text, "device";
    ROUTE_GATEWAY = "route.gateway", Text, "gateway";
    ROUTE_SOURCE = "route.source", Text, "address";
    ROUTE_MTU = "route.mtu", Bytes, "MTU of the route";
    ROUTE_WINDOW = "route.window", Bytes;
    ROUTE_INITCWND = "route.initcwnd", Packets;
    ROUTE_CWND = "route.cwnd", Packets;
    ROUTE_SSTHRESH = "route.ssthresh", Packets;
    ROUTE_CONGESTION = "route.congestion", Text;
    PATH_MTU = "path.mtu", Bytes, "path MTU";
    NEIGHBOUR_STATE = "neighbour.state", Text, "neighbour";
    CONNTRACK_COUNT = "conntrack.count", Number, "tracked connections";
    CONNTRACK_MAX = "conntrack.max", Number;
    CONNTRACK_DROP = "conntrack.drop", Count;
    CONNTRACK_EARLY_DROP = "conntrack.early_drop", Count;
    CONNTRACK_INSERT_FAILED = "conntrack.insert_failed", Count;
    NETFILTER_RULES = "netfilter.rules", Number, "filter rules";
    TAPS_COUNT = "taps.count", Number, "packet taps";
    FILTER_DROP_RULES = "filter.drop.rules", Number;
    FILTER_DROP_RULES_UNCOUNTED = "filter.drop.rules.uncounted", Number;
    FILTER_DROP_PACKETS = "filter.drop.packets", Count;
    FILTER_DROP_BYTES = "filter.drop.bytes", Count;
    // Run times of BPF programs while a trial ran, microseconds: of all, and of the most expensive by `<id>.<type>.<name>`.
    BPF_RUN_US = "bpf.run_us", Count;
    BPF_PROGRAM_RUN_US = "bpf.run_us.*", Count;
    BPF_PROGRAM_RUNS = "bpf.runs.*", Count;
    DROP_REASON = "drop.reason.*", Count;
    DROP_LOCATION = "drop.location.*", Count;
    DROP_WATCHED = "drop.watched", Count;
    DROP_LOST_RECORDS = "drop.lost_records", Count;
    DROP_ELSEWHERE = "drop.elsewhere", Count;
    DROP_REASON_UDP_CSUM = "drop.reason.UDP_CSUM", Count;
    DROP_REASON_NETFILTER_DROP = "drop.reason.NETFILTER_DROP", Count;
    DROP_REASON_QDISC_DROP = "drop.reason.QDISC_DROP", Count;
    DROP_REASON_QDISC_OVERLIMIT = "drop.reason.QDISC_OVERLIMIT", Count;
    DROP_REASON_QDISC_CONGESTED = "drop.reason.QDISC_CONGESTED", Count;
    DROP_REASON_FQ_FLOW_LIMIT = "drop.reason.FQ_FLOW_LIMIT", Count;
    DROP_REASON_CPU_BACKLOG = "drop.reason.CPU_BACKLOG", Count;
    DROP_REASON_PROTO_MEM = "drop.reason.PROTO_MEM", Count;
    DROP_REASON_SOCKET_RCVBUFF = "drop.reason.SOCKET_RCVBUFF", Count;
    // Counters of the protocols, by the names of the kernel.
    NETSTAT_TCP_EXT = "netstat.TcpExt.*", Count;
    NETSTAT_IP_EXT = "netstat.IpExt.*", Count;
    NETSTAT_TCP_EXT_TCP_TO_ZERO_WINDOW_ADV = "netstat.TcpExt.TCPToZeroWindowAdv", Count;
    NETSTAT_TCP_EXT_DELAYED_ACKS = "netstat.TcpExt.DelayedACKs", Count;
    NETSTAT_TCP_EXT_TCP_SPURIOUS_RTX_HOST_QUEUES = "netstat.TcpExt.TCPSpuriousRtxHostQueues", Count;
    NETSTAT_TCP_EXT_TCP_RENO_RECOVERY = "netstat.TcpExt.TCPRenoRecovery", Count;
    NETSTAT_TCP_EXT_TCP_MEMORY_PRESSURES_CHRONO = "netstat.TcpExt.TCPMemoryPressuresChrono", Count;
    NETSTAT_IP_EXT_IN_NO_ECT_PKTS = "netstat.IpExt.InNoECTPkts", Count;
    NETSTAT_TCP_EXT_IP_REVERSE_PATH_FILTER = "netstat.TcpExt.IPReversePathFilter", Count;
    NETSTAT_IP_EXT_IN_ECT0_PKTS = "netstat.IpExt.InECT0Pkts", Count;
    NETSTAT_IP_EXT_IN_ECT1_PKTS = "netstat.IpExt.InECT1Pkts", Count;
    NETSTAT_IP_EXT_IN_CE_PKTS = "netstat.IpExt.InCEPkts", Count;
    SNMP_IP = "snmp.Ip.*", Count;
    SNMP_ICMP = "snmp.Icmp.*", Count;
    SNMP_TCP = "snmp.Tcp.*", Count;
    SNMP_UDP = "snmp.Udp.*", Count;
    SNMP_UDP_IN_CSUM_ERRORS = "snmp.Udp.InCsumErrors", Count;
    SNMP_UDP_IN_ERRORS = "snmp.Udp.InErrors", Count;
    SNMP_IP_IN_RECEIVES = "snmp.Ip.InReceives", Count;
    SNMP_IP_OUT_REQUESTS = "snmp.Ip.OutRequests", Count;
    SNMP_IP_OUT_DISCARDS = "snmp.Ip.OutDiscards", Count;
    SNMP_IP_FRAG_CREATES = "snmp.Ip.FragCreates", Count;
    SNMP_IP_FRAG_OKS = "snmp.Ip.FragOKs", Count;
    SNMP_IP_REASM_REQDS = "snmp.Ip.ReasmReqds", Count;
    SNMP_IP_REASM_OKS = "snmp.Ip.ReasmOKs", Count;
    SNMP_IP_REASM_FAILS = "snmp.Ip.ReasmFails", Count;
    SNMP_UDP_SNDBUF_ERRORS = "snmp.Udp.SndbufErrors", Count;
    SNMP_UDP_MEM_ERRORS = "snmp.Udp.MemErrors", Count;
    SNMP_UDP_RCVBUF_ERRORS = "snmp.Udp.RcvbufErrors", Count;
    SNMP_ICMP_IN_MSGS = "snmp.Icmp.InMsgs", Count;
    SNMP_TCP_IN_SEGS = "snmp.Tcp.InSegs", Count;
    SNMP_TCP_OUT_SEGS = "snmp.Tcp.OutSegs", Count;
    SNMP_TCP_RETRANS_SEGS = "snmp.Tcp.RetransSegs", Count;
    SNMP_UDP_IN_DATAGRAMS = "snmp.Udp.InDatagrams", Count;
    SNMP_UDP_NO_PORTS = "snmp.Udp.NoPorts", Count;
    SNMP6 = "snmp6.*", Count;
    SNMP6_UDP6_IN_CSUM_ERRORS = "snmp6.Udp6InCsumErrors", Count;
    SNMP6_UDP6_IN_ERRORS = "snmp6.Udp6InErrors", Count;
    SNMP6_IP6_IN_RECEIVES = "snmp6.Ip6InReceives", Count;
    SNMP6_IP6_OUT_REQUESTS = "snmp6.Ip6OutRequests", Count;
    SNMP6_IP6_REASM_FAILS = "snmp6.Ip6ReasmFails", Count;
    SNMP6_UDP6_SNDBUF_ERRORS = "snmp6.Udp6SndbufErrors", Count;
    SNMP6_UDP6_MEM_ERRORS = "snmp6.Udp6MemErrors", Count;
    SNMP6_UDP6_RCVBUF_ERRORS = "snmp6.Udp6RcvbufErrors", Count;
    SNMP6_IP6_FRAG_OKS = "snmp6.Ip6FragOKs", Count;
    SNMP6_IP6_FRAG_CREATES = "snmp6.Ip6FragCreates", Count;
    SNMP6_ICMP6_IN_MSGS = "snmp6.Icmp6InMsgs", Count;
    SNMP6_IP6_REASM_REQDS = "snmp6.Ip6ReasmReqds", Count;
    SNMP6_IP6_REASM_OKS = "snmp6.Ip6ReasmOKs", Count;
}

/// How a host is at a moment: no settings, for a minute later they are others.
pub const MOMENTARY: &[FactKey] = &[
    MEMORY_AVAILABLE, SWAP_USED, CPU_FREQUENCY, CGROUP_MEMORY_SOCK, TCP_MEM_USED, UDP_MEM_USED, IP_FRAG_MEM_USED,
    IP6_FRAG_MEM_USED, QDISC_BACKLOG_BYTES, QDISC_BACKLOG_PACKETS, CONNTRACK_COUNT, NEIGHBOUR_STATE, NIC_WIFI_TX_RATE,
    NIC_WIFI_RX_RATE, NIC_WIFI_SIGNAL,
];

#[cfg(test)]
mod tests {
    use super::ALL;
    use std::collections::BTreeSet;

    #[test]
    fn each_name_is_defined_once() {
        let names: BTreeSet<_> = ALL.iter().map(|(_, key)| key.name).collect();
        assert_eq!(names.len(), ALL.len());
    }
}
