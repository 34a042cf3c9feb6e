//! Whether a device stayed up between two samples, according to its agent: sysUpTime (RFC 3418) and ifLastChange (RFC 2863).

use crate::agent::Agent;
use crate::error::SnmpError;
use crate::interface::InterfaceName;
use crate::mib;
use async_snmp::Value;
use narrows_model::host::device_state::{DeviceState, LinkState};

/// sysUpTime counts hundredths of a second in 32 bits.
const UP_WRAPS_MS: u64 = (1 << 32) * 10;

impl Agent {
    /// The device's start time and the last changes of these interfaces, in one answer. Agents have no common
    /// object for interrupts and CPUs.
    /// Errors: it does not answer, or the answer is not a time. An interface without ifLastChange is not an error.
    pub fn device_state(&self, interfaces: &[&InterfaceName]) -> Result<DeviceState, SnmpError> {
        let changes = interfaces.iter().map(|interface| (mib::IF_LAST_CHANGE, interface.index));
        let values = self.values(&[(mib::SYS_UP_TIME, 0)].into_iter().chain(changes).collect::<Vec<_>>())?;
        let up = self.ticks(values.first(), mib::SYS_UP_TIME)?;
        let link = |(interface, value): (&&InterfaceName, &Value)| LinkState {
            device: interface.name.clone(),
            changes: None,
            last_change: match value {
                Value::TimeTicks(ticks) => Some(u64::from(*ticks)),
                _ => None,
            },
        };
        Ok(DeviceState {
            up_ms: Some(u64::from(up) * 10),
            up_wraps_ms: Some(UP_WRAPS_MS),
            links: interfaces.iter().zip(values.iter().skip(1)).map(link).collect(),
            ..DeviceState::default()
        })
    }
}
