//! What causes of a device share: the statistics of drivers, damaged frames, the receive ring.

use crate::causes::shared::words::{advice, command_fix};
use crate::evidence::tcp::TcpEvidence;
use crate::judge::Evidence;
use crate::role::Role;
use narrows_model::{Fix, keys};

/// The statistic of the driver that grew most, of several names for the same event; `None` where the driver has none of them.
pub(crate) fn statistic(evidence: &TcpEvidence, role: Role, names: &[&'static str]) -> Option<(&'static str, u64)> {
    let counts = &evidence.end(role)?.counts;
    let grew = names.iter().filter_map(|name| Some((*name, *counts.get(&format!("nic.stat.{name}"))?)));
    grew.max_by_key(|(_, n)| *n)
}

/// Frames with a wrong check sequence, as drivers call them: mlx5, i40e, ice, bnxt, tg3.
const CRC: [&str; 5] =
    ["rx_crc_errors_phy", "port.rx_crc_errors", "rx_crc_errors.nic", "rx_fcs_err_frames", "rx_fcs_errors"];

/// Frames that reached an end's device damaged, less the part of other traffic; `None` where the device gives no counters.
pub(crate) fn damaged(evidence: &TcpEvidence, role: Role) -> Option<u64> {
    let crc = evidence.grew(role, keys::NIC_COUNTER_RX_CRC_ERRORS);
    let crc = crc.max(statistic(evidence, role, &CRC).map(|(_, n)| n))?;
    let frames = crc.saturating_add(evidence.grew(role, keys::NIC_COUNTER_RX_FRAME_ERRORS).unwrap_or(0));
    let own = evidence.base.loss_whole.map_or(0, |loss| loss.sent);
    let all = evidence.grew(role, keys::NIC_COUNTER_RX_PACKETS).unwrap_or(0).max(own).max(1);
    // Nobody knows whose a damaged frame was.
    u64::try_from(u128::from(frames) * u128::from(own) / u128::from(all)).ok()
}

/// The entries of the receive ring, and their maximum.
pub(crate) fn ring(evidence: &impl Evidence, role: Role) -> Option<[f64; 2]> {
    Some([evidence.number(role, keys::NIC_RING_RX)?, evidence.number(role, keys::NIC_RING_RX_MAX)?])
}

/// What to do about a receive ring that overruns; with a full core no ring is long enough.
pub(crate) fn ring_fix(evidence: &impl Evidence, role: Role, full_core: Option<String>) -> Fix {
    if let Some(why) = full_core {
        return advice(format!(
            "{why}: distribute the packets over more cores (RSS queues, RPS); a longer ring only adds delay"
        ));
    }
    let device = evidence.text(role, keys::NIC_NAME).unwrap_or("DEVICE");
    match ring(evidence, role) {
        Some([now, max]) if now < max => {
            let words = format!("the receive ring has {now:.0} of {max:.0} entries: use all of them");
            command_fix(evidence, role, words, [format!("ethtool -G {device} rx {max:.0}")])
        }
        _ => advice(
            "distribute the packets over more queues and cores, and keep other work off the cores of its interrupts",
        ),
    }
}
