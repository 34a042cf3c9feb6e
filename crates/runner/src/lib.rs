//! narrows runner
