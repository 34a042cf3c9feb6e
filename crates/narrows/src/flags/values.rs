//! Values as the user writes them: the parsers of `narrows_model::words::units`.

use crate::failure::Failure;
use narrows_model::words::units::{self, BareShare, Rate, UnitError};
pub(crate) use narrows_model::words::units::{parse_bps as bps, parse_duration as duration, parse_size as size};
use narrows_model::{Placement, UdpRate};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

/// The rate of a UDP load: payload as `100M`, datagrams as `50kpps`, or `max`, which is `0` in iperf3.
pub(crate) fn rate(word: &str) -> Result<UdpRate, UnitError> {
    if word == "max" || word == "0" {
        return Ok(UdpRate::Max);
    }
    match units::parse_rate(word)? {
        Rate::Bits(bps) => Ok(UdpRate::Bps(bps)),
        Rate::Packets(pps) => Ok(UdpRate::Pps(pps as f64)),
    }
}

/// An age: `7d`, `8w`, or a duration.
pub(crate) fn age(word: &str) -> Result<Duration, String> {
    let days = |suffix: &str, days: f64| word.strip_suffix(suffix).map(|number| (number, days));
    let Some((number, days)) = days("d", 1.0).or_else(|| days("w", 7.0)) else {
        return duration(word).map_err(|error| error.to_string());
    };
    let days = number.parse::<f64>().ok().map(|number| number * days).filter(|days| (0.0..=36_600.0).contains(days));
    let days =
        days.ok_or_else(|| format!("invalid age `{word}`; write it like 12h, 7d or 8w, a hundred years at most"))?;
    Ok(Duration::from_secs_f64(days * 86_400.0))
}

/// `PORT` of this host alone, or `ADDRESS:PORT`.
pub(crate) fn own_port(word: &str) -> Result<SocketAddr, String> {
    let alone = word.parse().ok().map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    alone.map_or_else(|| word.parse(), Ok).map_err(|_| "must be a port, or ADDRESS:PORT as [::]:9091".to_owned())
}

/// CPUs as `0-3,8`, of this end and after a slash of the other one.
pub(crate) fn cpus(word: &str) -> Result<[Vec<u32>; 2], String> {
    let (here, there) = word.split_once('/').unwrap_or((word, ""));
    let most = Placement::MAX_CPUS as usize;
    let list = |word: &str| units::parse_list(word, most).map_err(|part| format!("`{part}` is no CPU; write 0-3,8"));
    let lists = [list(here)?, list(there)?];
    if lists.iter().all(Vec::is_empty) { Err("no CPU is named".to_owned()) } else { Ok(lists) }
}

/// A network: an address, or an address and the length of its prefix.
pub(crate) fn network(word: &str) -> Result<(IpAddr, u8), String> {
    let (address, prefix) = word.split_once('/').map_or((word, None), |(address, prefix)| (address, Some(prefix)));
    let address: IpAddr =
        address.parse().map_err(|_| "must be an IP address, as 192.0.2.7 or 2001:db8::/32".to_owned())?;
    let longest = if address.is_ipv4() { 32 } else { 128 };
    let prefix = prefix.map_or(Ok(longest), str::parse).ok().filter(|prefix| *prefix <= longest);
    Ok((address, prefix.ok_or_else(|| format!("the length of the prefix must be from 0 to {longest}"))?))
}

/// `1%` or `0.01`, as a ratio.
pub(crate) fn ratio(word: &str) -> Result<f64, UnitError> {
    units::parse_share(word, BareShare::Ratio)
}

/// `0.5%` or `0.5`, as a ratio.
pub(crate) fn percent(word: &str) -> Result<f64, UnitError> {
    units::parse_share(word, BareShare::Percent)
}

/// A tag of stored runs.
pub(crate) fn tag(word: &str) -> Result<String, String> {
    const MARKS: &str = "-_.:/+=@";
    let fits = (1..=100).contains(&word.len()) && word.chars().all(|c| c.is_alphanumeric() || MARKS.contains(c));
    if fits { Ok(word.to_owned()) } else { Err(format!("use letters, digits and {MARKS}, 100 bytes at most")) }
}

/// Whole milliseconds.
pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Bytes as plans hold them. `what`: `message`, `send buffer`.
pub(crate) fn plan_bytes(what: &str, bytes: u64) -> Result<u32, Failure> {
    u32::try_from(bytes)
        .map_err(|_| Failure::usage(format!("invalid {what} of {bytes} bytes: the maximum is {}", u32::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_those_of_this_end_and_after_a_slash_of_the_other_one() {
        assert_eq!(cpus("0-2,8/1"), Ok([vec![0, 1, 2, 8], vec![1]]));
        assert_eq!((cpus("3"), cpus("/3")), (Ok([vec![3], vec![]]), Ok([vec![], vec![3]])));
        let why = |word| cpus(word).expect_err(word);
        assert_eq!((why("0-x"), why("/")), ("`0-x` is no CPU; write 0-3,8".to_owned(), "no CPU is named".to_owned()));
        assert!(why("0-9999").contains("0-9999"));
    }
}
