//! Values and their spelling: units, places, addresses.

pub mod figures;
pub mod mac;
pub mod place;
pub mod show;
pub mod units;
