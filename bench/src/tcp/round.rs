//! One round: each tool once.

/// One measurement of one tool.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Figure {
    /// Payload bits per second, by the receiving end.
    pub(crate) goodput_bps: f64,
    /// CPU seconds of the whole machine per 10^9 payload bytes.
    pub(crate) cpu_s_per_gb: f64,
}

/// One figure for each tool, in the tools' order.
#[derive(Debug, Clone)]
pub(crate) struct Round(Vec<Option<Figure>>);

impl Round {
    /// With a place for each tool.
    pub(crate) fn new(tools: usize) -> Self {
        Self(vec![None; tools])
    }

    /// Notes a tool's figure.
    pub(crate) fn put(&mut self, tool: usize, figure: Figure) {
        self.0[tool] = Some(figure);
    }

    /// A tool's figure, where it ran.
    pub(crate) fn get(&self, tool: usize) -> Option<Figure> {
        self.0.get(tool).copied().flatten()
    }
}
