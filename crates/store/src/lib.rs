//! narrows store
