//! narrows render
