//! narrows diagnose
