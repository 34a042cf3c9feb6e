//! The connections of a host: a table that is sorted and filtered, and one connection opened with its history.

use super::{Key, Scroll, View};
use crate::connections::{LEGEND, LiveOptions, Past, frame, opened, shown};
use crate::style::Style;
use narrows_model::{ConnectionOrder, ConnectionView, ConnectionsView};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// Intervals of one connection that are kept.
const KEPT: usize = 160;

/// The connections of a host.
#[derive(Debug, Clone)]
pub struct ConnectionsLive {
    view: Option<ConnectionsView>,
    order: ConnectionOrder,
    full: bool,
    /// Letters that a connection must have in what is shown of it.
    filter: String,
    typing: bool,
    marked: usize,
    opened: Option<String>,
    /// Of connections that carried data.
    past: HashMap<String, Vec<Past>>,
    rows: usize,
    scroll: Scroll,
}

impl ConnectionsLive {
    /// Nothing read yet. `full`: with connections without data.
    pub fn new(order: ConnectionOrder, full: bool) -> Self {
        Self {
            view: None,
            order,
            full,
            filter: String::new(),
            typing: false,
            marked: 0,
            opened: None,
            past: HashMap::new(),
            rows: 1,
            scroll: Scroll::default(),
        }
    }

    /// A new reading, in order of the rate.
    pub fn show(&mut self, view: ConnectionsView) {
        let present: HashSet<&str> = view.connections.iter().map(|one| one.id.as_str()).collect();
        self.past.retain(|id, _| present.contains(id.as_str()));
        for one in &view.connections {
            let now = Past::of(one);
            if let Some(all) = self.past.get_mut(&one.id) {
                all.push(now);
                if all.len() > KEPT {
                    all.remove(0);
                }
            } else if now.bps > 0.0 {
                self.past.insert(one.id.clone(), vec![now]);
            }
        }
        self.view = Some(view);
        self.sort();
    }

    pub fn last(&self) -> Option<&ConnectionsView> {
        self.view.as_ref()
    }

    fn sort(&mut self) {
        if let Some(view) = &mut self.view {
            self.order.apply(&mut view.connections);
        }
    }

    /// What passes the filter.
    fn passing(&self) -> Option<Cow<'_, ConnectionsView>> {
        let all = self.view.as_ref()?;
        if self.filter.is_empty() {
            return Some(Cow::Borrowed(all));
        }
        let filter = self.filter.to_lowercase();
        let passes = |one: &ConnectionView| {
            let process = one.process.as_ref().map(|owner| owner.name.as_str()).unwrap_or_default();
            [&one.remote, &one.local, process, one.limit.word()].iter().any(|it| it.to_lowercase().contains(&filter))
        };
        let connections = all.connections.iter().filter(|one| passes(one)).cloned().collect();
        let (host, remarks) = (all.host.clone(), all.remarks.clone());
        Some(Cow::Owned(ConnectionsView { host, connections, remarks, quiet: 0, ..*all }))
    }

    fn text(&mut self, width: usize, rows: usize) -> String {
        let style = Style { color: true, width, full: self.full, wide: false };
        let Some(view) = self.passing() else { return "reading the counters\n".to_owned() };
        if let Some(id) = &self.opened {
            let all = self.view.iter().flat_map(|view| &view.connections);
            let past = self.past.get(id).map(Vec::as_slice).unwrap_or_default();
            return match all.into_iter().find(|one| one.id == *id) {
                Some(one) => opened(one, past, style),
                None => "this connection is gone\n".to_owned(),
            };
        }
        let marked = self.marked.min(shown(&view, self.full).count().saturating_sub(1));
        let said = if self.typing || !self.filter.is_empty() {
            format!("filter: {}{}\n", self.filter, if self.typing { "_" } else { "" })
        } else {
            String::new()
        };
        let rows = rows.saturating_sub(said.lines().count());
        let text = said + &frame(&view, style, &LiveOptions { rows, marked: Some(marked), order: self.order.word() });
        self.marked = marked;
        text
    }
}

impl View for ConnectionsLive {
    fn draw(&mut self, area: Rect, buffer: &mut Buffer) {
        self.rows = area.height.into();
        let text = self.text(area.width.into(), self.rows);
        self.scroll.draw(&text, area, buffer);
    }

    fn key(&mut self, key: Key) -> bool {
        match key {
            Key::Enter | Key::Escape if self.typing => {
                self.typing = false;
                if key == Key::Escape {
                    self.filter.clear();
                }
            }
            Key::Char(letter) if self.typing && self.filter.len() < 64 => self.filter.push(letter),
            Key::Backspace if self.typing => drop(self.filter.pop()),
            Key::Enter | Key::Escape if self.opened.is_some() => {
                (self.opened, self.scroll) = (None, Scroll::default());
            }
            _ if self.opened.is_some() => return self.scroll.key(key),
            Key::Char('/') => self.typing = true,
            Key::Escape => self.filter.clear(),
            Key::Char('s') => {
                self.order = self.order.next();
                self.sort();
            }
            Key::Enter => {
                let marked = self.passing().and_then(|view| shown(&view, self.full).nth(self.marked).cloned());
                (self.opened, self.scroll) = (marked.map(|one| one.id), Scroll::default());
            }
            Key::Down | Key::Char('j') => self.marked += 1,
            Key::Up | Key::Char('k') => self.marked = self.marked.saturating_sub(1),
            Key::PageDown => self.marked += self.rows,
            Key::PageUp => self.marked = self.marked.saturating_sub(self.rows),
            Key::Home => self.marked = 0,
            Key::End => self.marked = usize::MAX,
            _ => return false,
        }
        true
    }

    fn keys(&self) -> &'static [[&'static str; 2]] {
        if self.typing {
            &[["Enter", "keep the filter"], ["Esc", "drop it"]]
        } else if self.opened.is_some() {
            &[["Enter", "back"], ["↑ ↓", "scroll"]]
        } else {
            &[["s", "sort"], ["/", "filter"], ["↑ ↓", "move"], ["Enter", "open"]]
        }
    }

    fn legend(&self) -> &'static [&'static str] {
        &LEGEND
    }

    fn types(&self) -> bool {
        self.typing
    }
}
