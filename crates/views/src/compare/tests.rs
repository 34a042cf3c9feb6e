//! Verdicts, units, pairs and warnings of small comparisons.
