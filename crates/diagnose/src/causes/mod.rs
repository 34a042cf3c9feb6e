//! The causes: one file each in the folder of its protocol, one line each in the folder's table.

pub(crate) mod shared;
pub mod tcp;
pub mod udp;

/// The id and the sentence of every cause. A cause that TCP and UDP both have is one.
pub fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    let of_tcp = |id: &str| tcp::TABLE.iter().any(|cause| cause.id == id);
    let udp = udp::TABLE.iter().filter(move |cause| !of_tcp(cause.id)).map(|cause| (cause.id, cause.about));
    tcp::TABLE.iter().map(|cause| (cause.id, cause.about)).chain(udp)
}
