//! A TCP load.

use super::load::LoadArgs;
use super::values::{bps, cpus, size};
use super::words;
use crate::failure::Failure;
use clap::Args;
use narrows_model::{Application, Limit, Pin, Placement, Plan, Receive, TcpPlan, Transport, ZeroCopy};

words! {
    /// Zero-copy sending.
    ZeroCopyWord for ZeroCopy {
        /// Used where this kernel benefits
        Auto,
        /// Always: pages are sent by reference
        On,
        /// Never: data is copied from a user buffer
        Off,
    }
}

words! {
    /// How the receiver consumes the data.
    ReceiveWord for Receive {
        /// Discard in the kernel, without a copy
        Discard,
        /// Copy to a user buffer, as an application does
        Copy,
    }
}

words! {
    /// How data threads are placed on CPUs.
    PinWord for Pin {
        /// A fast load tries another placement first, and keeps what moves more
        Auto,
        /// The scheduler places them
        None,
        /// Each stream has the next CPU of --cpus
        List,
    }
}

/// What only a TCP load has.
#[derive(Debug, Args)]
#[command(next_help_heading = "Load")]
pub(crate) struct TcpLoadArgs {
    /// Stop after this many bytes per stream
    #[arg(long, short = 'n', value_parser = size, value_name = "SIZE", conflicts_with = "duration")]
    pub(crate) bytes: Option<u64>,
    /// Congestion control of the sender, such as cubic or bbr
    #[arg(long, short = 'C', value_name = "NAME")]
    congestion_control: Option<String>,
    /// Maximum segment size, in bytes (TCP_MAXSEG)
    #[arg(long, short = 'M', value_name = "BYTES", hide_short_help = true)]
    mss: Option<u16>,
    /// Disable Nagle's algorithm (TCP_NODELAY)
    #[arg(long, short = 'N', hide_short_help = true)]
    no_delay: bool,
    /// Pacing rate of each socket, in bit/s (SO_MAX_PACING_RATE)
    #[arg(long, value_parser = bps, value_name = "RATE", hide_short_help = true)]
    pacing_rate: Option<u64>,
    /// Zero-copy sending
    #[arg(long, value_enum, default_value = "auto", hide_short_help = true)]
    zero_copy: ZeroCopyWord,
    /// Same as --zero-copy on, as in iperf3
    #[arg(long = "zerocopy", short = 'Z', conflicts_with = "zero_copy", hide_short_help = true)]
    z: bool,
    /// How the receiver consumes the data
    #[arg(long, value_enum, default_value = "discard", hide_short_help = true)]
    receive: ReceiveWord,
    /// How data threads are placed on CPUs
    #[arg(long, value_enum, default_value = "auto", requires_if("list", "cpus"), hide_short_help = true)]
    pin: PinWord,
    /// CPUs of the data threads here, and of the server's after a slash
    #[arg(long, value_name = "LIST[/LIST]", value_parser = cpus, hide_short_help = true)]
    cpus: Option<[Vec<u32>; 2]>,
    /// Emulate an application that writes at this rate, in bit/s
    #[arg(long, value_parser = bps, value_name = "RATE", hide_short_help = true)]
    app_write_rate: Option<u64>,
    /// Emulate an application that reads at this rate, in bit/s
    #[arg(long, value_parser = bps, value_name = "RATE", hide_short_help = true)]
    app_read_rate: Option<u64>,
    /// Emulate application CPU time before each MiB written, in microseconds
    #[arg(long, value_name = "US", default_value_t = 0, hide_short_help = true)]
    app_write_cpu: u32,
    /// Emulate application CPU time after each MiB read, in microseconds
    #[arg(long, value_name = "US", default_value_t = 0, hide_short_help = true)]
    app_read_cpu: u32,
}

impl TcpLoadArgs {
    fn placement(&self) -> Option<Box<Placement>> {
        let [client_cpus, server_cpus] = self.cpus.clone().unwrap_or_default();
        let chosen = Placement { pin: self.pin.into(), client_cpus, server_cpus };
        (chosen != Placement::default()).then(|| Box::new(chosen))
    }

    /// The plan, resolved and checked. `omit_ms`: what is omitted of a duration where the user says nothing.
    pub(crate) fn plan(&self, load: &LoadArgs, omit_ms: impl FnOnce(u64) -> u64) -> Result<TcpPlan, Failure> {
        let duration_ms = load.duration.ms();
        let (limit, omit_ms) = match self.bytes {
            Some(bytes) => (Limit::BytesPerStream(bytes), 0),
            None => (Limit::DurationMs(duration_ms), omit_ms(duration_ms)),
        };
        let (message_bytes, keeps_message_bytes) = load.size.size.message_bytes()?;
        let plan = TcpPlan {
            streams: load.streams.streams,
            direction: load.direction.direction(),
            limit,
            omit_ms: load.omit.ms().unwrap_or(omit_ms),
            interval_ms: load.interval.ms(),
            message_bytes,
            keeps_message_bytes,
            send_buffer_bytes: load.sockets.send_buffer_bytes()?,
            receive_buffer_bytes: load.sockets.receive_buffer_bytes()?,
            congestion_control: self.congestion_control.clone(),
            mss_bytes: self.mss,
            dscp: load.sockets.dscp,
            no_delay: self.no_delay,
            pacing_bps: self.pacing_rate,
            zero_copy: if self.z { ZeroCopy::On } else { self.zero_copy.into() },
            receive: self.receive.into(),
            awake: false,
            transport: Transport::Tcp,
            placement: self.placement(),
            application: Application {
                write_bps: self.app_write_rate.unwrap_or(0),
                read_bps: self.app_read_rate.unwrap_or(0),
                write_cpu_us_per_mib: self.app_write_cpu,
                read_cpu_us_per_mib: self.app_read_cpu,
            },
        };
        plan.check().map_err(Failure::usage)?;
        Ok(plan)
    }
}
