//! What nearly every cause is written with.

pub(crate) use crate::causes::shared::tcp::{ceiling_at, held, made, path_has_room, room, room_or, who};
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

/// What a rule says: `Err` where it ended early, which is an answer like any other.
pub(crate) type Ruling = Result<Assessment, Assessment>;

/// The answer of a rule, wherever it ended.
pub(crate) fn answer(ruling: Ruling) -> Assessment {
    match ruling {
        Ok(answer) | Err(answer) => answer,
    }
}

/// That the evidence supports the cause, with the witnesses that there are.
pub(crate) fn supports<W: Into<Option<Witness>>>(share: f64, witnesses: impl IntoIterator<Item = W>) -> Ruling {
    Ok(Assessment::Supports { share, witnesses: witnesses.into_iter().filter_map(Into::into).collect() })
}

/// What a rule cannot tell without.
pub(crate) fn known<T>(value: Option<T>, why: impl Into<String>) -> Result<T, Assessment> {
    value.ok_or_else(|| cannot_tell(why))
}

/// What is there wherever the cause is.
pub(crate) fn found<T>(value: Option<T>, why: impl Into<String>) -> Result<T, Assessment> {
    value.ok_or_else(|| contradicts(why))
}

/// Ends a rule where something speaks against its cause.
pub(crate) fn refuted(why: Option<String>) -> Result<(), Assessment> {
    ended(why.map(contradicts))
}

/// Ends a rule that has its answer already.
pub(crate) fn ended(answer: Option<Assessment>) -> Result<(), Assessment> {
    answer.map_or(Ok(()), Err)
}
