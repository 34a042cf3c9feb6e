//! What a host is: facts, settings and their changes, interfaces, and two hosts side by side.

pub mod audit;
pub mod buffers;
pub mod change;
pub mod connection;
pub mod device_state;
pub mod fact;
pub mod hop;
pub mod keys;
pub mod settings;
pub mod side_by_side;
pub mod snmp;
pub mod table;
pub mod watch;
