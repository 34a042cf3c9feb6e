//! The wireless link below the interface: bit rates, signal, retries. Source: kernel `include/uapi/linux/nl80211.h`.

use crate::Missing;
use crate::collector::{Class, Collector, Context, Sink, with_device};
use narrows_model::keys;

pub(super) const COLLECTOR: Collector = Collector {
    id: "wifi",
    about: "bit rate, signal and retries of a wireless link",
    provides: &[
        keys::NIC_WIFI_TX_RATE,
        keys::NIC_WIFI_RX_RATE,
        keys::NIC_WIFI_SIGNAL,
        keys::NIC_WIFI_TX_PACKETS,
        keys::NIC_WIFI_TX_RETRIES,
        keys::NIC_WIFI_TX_FAILED,
    ],
    class: Class::Both,
    can_run: with_device,
    collect,
};

const SOURCE: &str = "netlink NL80211_CMD_GET_STATION";

fn collect(context: &Context<'_>, sink: &mut Sink<'_>) -> Result<(), Missing> {
    let device = &context.hardware()?.name;
    if context.host.target(&format!("/sys/class/net/{device}/phy80211")).is_err() {
        return Err(Missing::because(format!("{device} is no wireless device")));
    }
    let wifi = context.host.wifi(device)?;
    let missing = || Missing::because("the driver does not report it");
    sink.put(keys::NIC_WIFI_TX_RATE, wifi.tx_bps.ok_or_else(missing), SOURCE);
    sink.put(keys::NIC_WIFI_RX_RATE, wifi.rx_bps.ok_or_else(missing), SOURCE);
    sink.put(keys::NIC_WIFI_SIGNAL, wifi.signal_dbm.map(i64::from).ok_or_else(missing), SOURCE);
    sink.put(keys::NIC_WIFI_TX_PACKETS, wifi.tx_packets.map(i64::from).ok_or_else(missing), SOURCE);
    sink.put(keys::NIC_WIFI_TX_RETRIES, wifi.tx_retries.map(i64::from).ok_or_else(missing), SOURCE);
    sink.put(keys::NIC_WIFI_TX_FAILED, wifi.tx_failed.map(i64::from).ok_or_else(missing), SOURCE);
    Ok(())
}
