//! narrows collect
