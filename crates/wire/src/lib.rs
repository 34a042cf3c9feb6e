//! narrows wire
