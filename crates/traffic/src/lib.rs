//! narrows traffic
