//! narrows lab
