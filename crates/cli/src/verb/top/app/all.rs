//! The screen of a cluster.

use ratatui::Frame;
use ratatui::crossterm::event::KeyEvent;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::Stylize;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use super::super::cluster::{All, Seen};
use super::super::cluster_text::{notes, summary, tables};
use super::super::table::Sort;
use super::{drawn, footer, pressed, scrolled};

/// State of the screen.
pub struct AllApp {
    before: Seen,
    all: All,
    trouble: Option<String>,
    sort: Sort,
    scroll: u16,
    /// somebody wants to leave
    pub over: bool,
}

impl AllApp {
    /// Begins with a first look: there are no rates yet.
    pub fn new(first: Seen) -> Self {
        Self {
            all: All::between(&first, &first),
            before: first,
            trouble: None,
            sort: Sort::default(),
            scroll: 0,
            over: false,
        }
    }

    /// Takes a look, or why there is none.
    pub fn answer(&mut self, seen: Result<Seen, String>) {
        match seen {
            Ok(seen) => {
                self.all = All::between(&self.before, &seen);
                self.before = seen;
                self.trouble = None;
            }
            Err(why) => self.trouble = Some(why),
        }
    }

    /// Does what a key asks for.
    pub fn key(&mut self, key: KeyEvent) {
        pressed(key, &mut self.sort, &mut self.scroll, &mut self.over);
    }

    /// Draws it all.
    pub fn draw(&mut self, frame: &mut Frame<'_>) {
        let rows = Layout::vertical([
            Constraint::Length(2),
            Constraint::Min(0),
            Constraint::Length(1),
        ]);
        let [head, body, foot] = rows.areas(frame.area());
        frame.render_widget(Paragraph::new(Line::from(summary(&self.all)).bold()), head);
        let mut lines: Vec<_> = notes(&self.all).into_iter().map(Line::from).collect();
        if !lines.is_empty() {
            lines.push(Line::default());
        }
        lines.extend(drawn(tables(&self.all, self.sort)));
        scrolled(frame, body, lines, &mut self.scroll);
        let keys = footer("", self.sort, self.trouble.as_deref());
        frame.render_widget(keys, foot);
    }
}
