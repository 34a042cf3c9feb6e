//! Packet sockets that see the interface's traffic: each costs the receive path a copy of the packet. Source: kernel
//! `net/packet/af_packet.c`, `packet_seq_show`.

use crate::collector::{Class, Collector, Context, Sink, with_device};
use crate::{Missing, parse};
use narrows_model::keys;

pub(super) const COLLECTOR: Collector = Collector {
    id: "taps",
    about: "packet sockets on the device (captures)",
    provides: &[keys::TAPS_COUNT],
    class: Class::Both,
    can_run: with_device,
    collect,
};

const PATH: &str = "/proc/net/packet";

fn collect(context: &Context<'_>, sink: &mut Sink<'_>) -> Result<(), Missing> {
    let text = context.host.read(PATH)?;
    sink.fact(keys::TAPS_COUNT, count(&text, context.link()?.index)?, PATH);
    Ok(())
}

/// Running sockets with a protocol, on the interface or on all.
fn count(text: &str, index: u32) -> Result<u64, Missing> {
    let mut taps = 0;
    for (line, content) in parse::lines(text).skip(1) {
        // sk RefCnt Type Proto Iface R Rmem User Inode
        let words: Vec<&str> = parse::words(content).collect();
        let [_, _, _, protocol, device, running, ..] = words.as_slice() else {
            return Err(parse::bad(PATH, line, content, "packet socket"));
        };
        let device: u32 = parse::number(PATH, line, device)?;
        let sees = parse::hexadecimal(PATH, line, protocol)? != 0 && *running == "1";
        taps += u64::from(sees && (device == 0 || device == index));
    }
    Ok(taps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_running_sockets_on_the_device_or_on_all_count() {
        let text = "sk               RefCnt Type Proto  Iface R Rmem   User   Inode\n\
                    00000000f2e1a1b2 3      3    0003   2     1 0      0      20541\n\
                    00000000f2e1a1b3 3      3    0003   0     1 0      0      20542\n\
                    00000000f2e1a1b4 3      3    0003   7     1 0      0      20543\n\
                    00000000f2e1a1b5 3      3    0000   2     1 0      0      20544\n\
                    00000000f2e1a1b6 3      3    88cc   2     0 0      0      20545\n";
        assert_eq!(count(text, 2), Ok(2));
        assert_eq!(count("", 2), Ok(0));
        assert!(count("header\nshort line\n", 2).is_err());
    }
}
