//! What both rules of a lossy member of a group of paths ask of a load of many ports.

use crate::causes::shared::rule::{Ruling, supports};
use crate::causes::shared::words::{advice, ask, cannot_tell, contradicts, experiment};
use crate::evidence::ports::{Member, Ports, ports};
use crate::evidence::udp::view::UdpView;
use crate::experiments::ports::MANY_PORTS;
use crate::judge::Assessment;
use narrows_model::{Fix, Witness};

/// The assessment by the trial of many ports, where it was made. `met`: the witness that the load itself met the member, or why it did not.
pub(crate) fn assess_ports(trial: Option<&UdpView>, met: impl FnOnce(&Member) -> Result<Witness, String>) -> Ruling {
    let unmeasured = || ask(&MANY_PORTS, "whether the loss depends on the ports of a flow was not measured");
    match ports(trial.ok_or_else(unmeasured)?) {
        Ports::Alike(why) => Err(contradicts(why)),
        Ports::CannotTell(why) => Err(cannot_tell(why)),
        Ports::TwoGroups(member) => {
            let witness = met(&member).map_err(contradicts)?;
            supports(0.95, [experiment(member.words()), witness])
        }
    }
}

/// Why the loss is not of the whole path, where flows fall into two groups.
pub(crate) fn of_a_member(trial: Option<&UdpView>) -> Option<Assessment> {
    match ports(trial?) {
        Ports::TwoGroups(member) => Some(contradicts(format!("not the whole path: {}", member.words()))),
        _ => None,
    }
}

pub(crate) fn fix(trial: Option<&UdpView>) -> Fix {
    let count = match trial.map(ports) {
        Some(Ports::TwoGroups(member)) => format!(" ({})", member.count()),
        _ => String::new(),
    };
    advice(format!(
        "no setting of the hosts mends it: find the member of the group that loses{count} by the error counters and queue drops of its \
         links, and take it out of the group or repair it; until then several streams or another source port avoid it"
    ))
}
