//! Frames in words.

use crate::load::frames::{Transport, Walk};
use crate::words::figures::float;
use crate::words::place::Family;

/// `IPv4`, `IPv6`.
pub const fn family(family: Family) -> &'static str {
    match family {
        Family::Ipv4 => "IPv4",
        Family::Ipv6 => "IPv6",
    }
}

/// `IPv4 UDP`, `IPv6 TCP SYN`.
pub fn protocol(of: Family, transport: Transport) -> String {
    let transport = match transport {
        Transport::Udp => "UDP",
        Transport::TcpSyn => "TCP SYN",
    };
    format!("{} {transport}", family(of))
}

/// How the flows follow one another.
pub const fn walk(walk: Walk) -> &'static str {
    match walk {
        Walk::Odometer => "in turn",
        Walk::Random { .. } => "at random",
    }
}

/// `64 B`, `64, 128, 256 B`; for a long list its length and mean.
pub fn sizes(sizes: &[u32]) -> String {
    match sizes {
        [] => "no size".to_owned(),
        [..] if sizes.iter().all(|size| Some(size) == sizes.first()) => format!("{} B", sizes[0]),
        [..] if sizes.len() <= 8 => {
            format!("{} B in turn", sizes.iter().map(u32::to_string).collect::<Vec<_>>().join(", "))
        }
        [..] => {
            let mean = sizes.iter().map(|size| f64::from(*size)).sum::<f64>() / float(sizes.len() as u64);
            format!("{} sizes in turn, {mean:.1} B in the mean", sizes.len())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_are_short() {
        assert_eq!(sizes(&[64, 64]), "64 B");
        assert_eq!(sizes(&[64, 570]), "64, 570 B in turn");
        let imix = [vec![64; 7], vec![570; 4], vec![1518]].concat();
        assert_eq!(sizes(&imix), "12 sizes in turn, 353.8 B in the mean");
    }
}
