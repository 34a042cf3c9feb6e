//! Pictures: a small builder of SVG and the parts that the pictures share. Light background, Okabe and Ito's colours, no script, no
//! external font; every line has its own marker or dash, so that colour never carries information on its own.

pub(crate) mod canvas;
pub(crate) mod legend;
pub(crate) mod palette;
pub(crate) mod panel;
pub(crate) mod rows;
pub(crate) mod scale;

pub(crate) use canvas::{Anchor, Canvas, Font, Stroke};
pub(crate) use legend::{Entry, legend};
pub(crate) use palette::{Look, Marker};
pub(crate) use panel::{Panel, spread_out};
pub(crate) use scale::Scale;
