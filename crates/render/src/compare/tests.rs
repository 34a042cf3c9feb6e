//! Text, Markdown, CSV and ministat of small comparisons.
