//! narrows stats
