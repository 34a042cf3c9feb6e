//! What nearly every cause is written with.

pub(crate) use crate::causes::shared::tcp::{ceiling_at, path_has_room, who};
pub(crate) use crate::causes::shared::words::{
    advice, ask, cannot_tell, command_fix, contradicts, counter, experiment, parameter, setting_fix, sysctl_fix,
};
pub(crate) use crate::evidence::tcp::TcpEvidence;
pub(crate) use crate::evidence::udp::UdpEvidence;
pub(crate) use crate::judge::{Assessment, Cause, Evidence as _, Excludes};
pub(crate) use crate::role::Role;
pub(crate) use narrows_model::words::units;
pub(crate) use narrows_model::{Ceiling, Fact, Fix, Method, Setting, Witness, keys};
#[cfg(test)]
pub(crate) use narrows_model::{Place, Status, Unit};
