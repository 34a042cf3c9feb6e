//! The buffers of TCP that the kernel grows: their three numbers, how large the last one must be, and how they are set.
//! Source: Documentation/networking/ip-sysctl.rst, `tcp_rmem` and `tcp_wmem`.

use super::change::Setting;
use super::fact::{FactKey, Snapshot};
use super::keys;

/// `net.ipv4.tcp_rmem` or `net.ipv4.tcp_wmem`: minimum, default and maximum, in bytes.
#[derive(Debug)]
pub struct TcpBuffer {
    /// As in sentences.
    pub name: &'static str,
    pub sysctl: &'static str,
    /// The facts of its three numbers.
    pub words: [FactKey; 3],
    /// The kernel's values of the first two, where a host's are not known.
    usual: [f64; 2],
    /// Bytes of it per byte in flight: of what is received up to half may be overhead (`tcp_win_from_space`); a writer that found its buffer
    /// full sleeps until a third of it is free (`sk_stream_is_writeable`), so two thirds of a large one are in flight on average.
    overhead: f64,
}

pub const RECEIVE: TcpBuffer = TcpBuffer {
    name: "receive buffer",
    sysctl: "net.ipv4.tcp_rmem",
    words: [keys::TCP_RMEM_MIN, keys::TCP_RMEM_DEFAULT, keys::TCP_RMEM_MAX],
    usual: [4096.0, 131_072.0],
    overhead: 2.0,
};

pub const SEND: TcpBuffer = TcpBuffer {
    name: "send buffer",
    sysctl: "net.ipv4.tcp_wmem",
    words: [keys::TCP_WMEM_MIN, keys::TCP_WMEM_DEFAULT, keys::TCP_WMEM_MAX],
    usual: [4096.0, 16_384.0],
    overhead: 1.5,
};

impl TcpBuffer {
    /// The one of this kernel parameter, with or without `net.ipv4.`.
    pub fn of(sysctl: &str) -> Option<&'static Self> {
        [&RECEIVE, &SEND]
            .into_iter()
            .find(|it| it.sysctl == sysctl || it.sysctl.strip_prefix("net.ipv4.") == Some(sysctl))
    }

    /// Bytes that a rate in bit/s takes over a round trip in seconds: the bandwidth-delay product with the overhead.
    pub const fn holds(&self, rate_bps: f64, rtt_s: f64) -> f64 {
        self.overhead * rate_bps / 8.0 * rtt_s
    }

    /// Its maximum at a host.
    pub fn max(&self, host: &Snapshot) -> Option<f64> {
        host.number(self.words[2])
    }

    /// Its three numbers with this maximum; the other two as they are, or as the kernel has them, and no larger.
    pub fn numbers(&self, host: Option<&Snapshot>, max: u64) -> String {
        let number = |at: usize| host.and_then(|host| host.number(self.words[at])).unwrap_or(self.usual[at]);
        let [min, default] = [0, 1].map(|at| number(at).min(max as f64));
        format!("{min:.0} {default:.0} {max}")
    }

    /// The parameter with this maximum.
    pub fn setting(&self, host: Option<&Snapshot>, max: u64) -> Setting {
        Setting::Sysctl { key: self.sysctl.to_owned(), value: self.numbers(host, max) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_a_host_stay_and_are_no_larger_than_the_maximum() {
        let set = |it: &TcpBuffer, max| it.setting(None, max).to_string();
        assert_eq!(set(&RECEIVE, 33_554_432), "sysctl -w net.ipv4.tcp_rmem='4096 131072 33554432'");
        assert_eq!(set(TcpBuffer::of("tcp_wmem").expect("one"), 8192), "sysctl -w net.ipv4.tcp_wmem='4096 8192 8192'");
        assert!(TcpBuffer::of("net.ipv4.tcp_rmem").is_some() && TcpBuffer::of("tcp_mem").is_none());
        // 1 Gbit/s over 40 ms are 5 MB.
        assert_eq!((RECEIVE.holds(1e9, 0.04), SEND.holds(1e9, 0.04)), (10e6, 7.5e6));
    }
}
