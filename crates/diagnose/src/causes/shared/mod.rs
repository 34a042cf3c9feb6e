//! What the files of causes share: words, ceilings, and questions that several causes ask of the evidence.

pub(crate) mod bound;
pub(crate) mod cpu;
pub(crate) mod device;
pub(crate) mod layers;
pub(crate) mod member;
pub(crate) mod paced;
pub(crate) mod profile;
pub(crate) mod response;
pub(crate) mod rule;
pub(crate) mod tcp;
pub(crate) mod tcp_stage;
pub(crate) mod udp;
pub(crate) mod window;
pub(crate) mod words;
