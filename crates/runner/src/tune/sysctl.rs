//! Kernel parameters below `net.`: the ones of the table, and no others.

use super::{Knob, TuneError};
use narrows_sys::sysctl;

/// What a value must look like.
enum Form {
    /// A whole number within limits.
    Number(i64, i64),
    /// Least, default and most bytes of a buffer.
    Triple,
    /// A name such as `cubic` or `fq_codel`.
    Name,
}

const MOST: i64 = i32::MAX as i64;

/// All that may be set. One line a key; source: Documentation/networking/ip-sysctl.rst, Documentation/admin-guide/sysctl/net.rst.
const TABLE: &[(&str, Form)] = &[
    ("net.core.default_qdisc", Form::Name),
    ("net.core.netdev_budget", Form::Number(1, 1_000_000)),
    ("net.core.netdev_budget_usecs", Form::Number(1, 10_000_000)),
    ("net.core.netdev_max_backlog", Form::Number(1, MOST)),
    ("net.core.rmem_default", Form::Number(4096, MOST)),
    ("net.core.rmem_max", Form::Number(4096, MOST)),
    ("net.core.wmem_default", Form::Number(4608, MOST)),
    ("net.core.wmem_max", Form::Number(4608, MOST)),
    ("net.ipv4.tcp_congestion_control", Form::Name),
    ("net.ipv4.tcp_ecn", Form::Number(0, 5)),
    ("net.ipv4.tcp_limit_output_bytes", Form::Number(1, MOST)),
    ("net.ipv4.tcp_moderate_rcvbuf", Form::Number(0, 1)),
    ("net.ipv4.tcp_mtu_probing", Form::Number(0, 2)),
    ("net.ipv4.tcp_no_metrics_save", Form::Number(0, 1)),
    ("net.ipv4.tcp_notsent_lowat", Form::Number(1, 4_294_967_295)),
    ("net.ipv4.tcp_rmem", Form::Triple),
    ("net.ipv4.tcp_sack", Form::Number(0, 1)),
    ("net.ipv4.tcp_slow_start_after_idle", Form::Number(0, 1)),
    ("net.ipv4.tcp_timestamps", Form::Number(0, 2)),
    ("net.ipv4.tcp_window_scaling", Form::Number(0, 1)),
    ("net.ipv4.tcp_wmem", Form::Triple),
];

/// One parameter and the value that is wanted.
pub(super) struct Sysctl<'a> {
    pub(super) key: &'a str,
    pub(super) value: &'a str,
}

impl Sysctl<'_> {
    fn bad(&self, wanted: impl Into<String>) -> TuneError {
        let value = self.value.chars().take(64).collect::<String>().escape_default().to_string();
        TuneError::BadValue { what: self.key.to_owned(), value, wanted: wanted.into() }
    }
}

impl Knob for Sysctl<'_> {
    fn check(&self) -> Result<(), TuneError> {
        let Some((_, form)) = TABLE.iter().find(|(key, _)| *key == self.key) else {
            let what = self.key.chars().take(64).collect::<String>().escape_default().to_string();
            let allowed = TABLE.iter().map(|(key, _)| *key).collect::<Vec<_>>().join(", ");
            return Err(TuneError::NotInTable { what: format!("the kernel parameter `{what}`"), allowed });
        };
        match *form {
            Form::Number(least, most) => match self.value.parse::<i64>() {
                Ok(value) if (least..=most).contains(&value) => Ok(()),
                _ => Err(self.bad(format!("a number from {least} to {most}"))),
            },
            Form::Triple => {
                let numbers: Option<Vec<i64>> =
                    self.value.split(' ').map(|word| word.parse().ok().filter(|n| (1024..=MOST).contains(n))).collect();
                match numbers.as_deref() {
                    Some([least, default, most]) if least <= default && default <= most => Ok(()),
                    _ => Err(self.bad(format!("three rising numbers from 1024 to {MOST}, parted by blanks"))),
                }
            }
            Form::Name => {
                let sound = (1..=15).contains(&self.value.len())
                    && self.value.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
                if sound { Ok(()) } else { Err(self.bad("a name of 1 to 15 letters, digits, `_` or `-`")) }
            }
        }
    }

    fn current(&self) -> Result<String, TuneError> {
        Ok(sysctl::normal(&sysctl::read(self.key)?))
    }

    fn set(&self) -> Result<(), TuneError> {
        sysctl::write(self.key, self.value)?;
        let got = self.current()?;
        if got == self.value {
            Ok(())
        } else {
            Err(TuneError::NotObtained { what: self.key.to_owned(), wanted: self.value.to_owned(), got })
        }
    }

    fn set_back(&self, before: &str) -> Result<(), TuneError> {
        Ok(sysctl::write(self.key, before)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(key: &str, value: &str) -> Result<(), String> {
        Sysctl { key, value }.check().map_err(|error| error.to_string())
    }

    #[test]
    fn only_the_table_is_set() {
        assert_eq!(check("net.ipv4.tcp_rmem", "4096 131072 8388608"), Ok(()));
        for key in ["net.ipv4.ip_forward", "kernel.panic", "net.core.../../kernel/panic", "net/core/rmem_max", ""] {
            let error = check(key, "1").expect_err(key);
            assert!(error.starts_with("narrows does not set the kernel parameter"), "{error}");
        }
    }

    #[test]
    fn a_bad_value_says_what_would_be_one() {
        let error = check("net.ipv4.tcp_sack", "2").expect_err("out of range");
        assert_eq!(error, "`2` is no value for net.ipv4.tcp_sack: it must be a number from 0 to 1");
        for value in ["4096 131072", "4096 131072 1", "1 2 3", "4096  131072 8388608", "4096 x 8388608"] {
            assert!(check("net.ipv4.tcp_wmem", value).is_err(), "{value}");
        }
        assert!(check("net.ipv4.tcp_congestion_control", "cubic\nreno").is_err());
        assert!(check("net.ipv4.tcp_congestion_control", "bbr").is_ok());
    }

    #[test]
    fn the_table_is_sorted_and_below_net() {
        assert!(TABLE.is_sorted_by_key(|(key, _)| *key));
        assert!(TABLE.iter().all(|(key, _)| key.starts_with("net.")));
    }
}
