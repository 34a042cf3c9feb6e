//! One round: each tool once.

/// One measurement of one tool.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Figure {
    /// Payload bits per second, by the receiving end.
    pub(crate) goodput_bps: f64,
    /// CPU seconds of the whole machine per 10^9 payload bytes.
    pub(crate) cpu_s_per_gb: f64,
}

/// One value per tool, in the tools' order.
#[derive(Debug, Clone)]
pub(crate) struct Round(Vec<Option<Figure>>);

impl Round {
    /// With an empty value for each tool.
    pub(crate) fn new(tools: usize) -> Self {
        Self(vec![None; tools])
    }

    /// Records a tool's value.
    pub(crate) fn put(&mut self, tool: usize, figure: Figure) {
        self.0[tool] = Some(figure);
    }

    /// A tool's value, if it ran.
    pub(crate) fn get(&self, tool: usize) -> Option<Figure> {
        self.0.get(tool).copied().flatten()
    }
}
