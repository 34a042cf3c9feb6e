//! What an ICMP error brings: the control messages of the kernel, type and code, and the extensions with their label stack.

use narrows_sys::probe::control;
use narrows_wire::icmp;

pub(crate) fn run(bytes: &[u8]) {
    let found = control::parse(bytes);
    assert!(bytes.len() >= 32 || found.error.is_none());
    let (Some((&[kind, code, offset, header], rest)), ipv4) =
        (bytes.split_first_chunk(), bytes.len().is_multiple_of(2))
    else {
        return;
    };
    assert!(icmp::kind(ipv4, kind, code).is_none_or(|kind| kind.mark().len() <= 6));
    let offset = (offset < 200).then_some(usize::from(offset));
    let labels = icmp::mpls(rest, offset, header.into());
    assert!(labels.len() <= 16 && labels.iter().all(|it| it.label < 1 << 20 && it.class < 8));
}
