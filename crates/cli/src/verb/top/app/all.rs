//! The screen of a cluster.

use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::Stylize;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use super::super::cluster::{All, Seen};
use super::super::cluster_text::{notes, summary, tables};
use super::super::table::Sort;
use super::{PAGE, drawn};

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
        if key.kind == KeyEventKind::Release {
            return;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if control => self.over = true,
            KeyCode::Char('q') | KeyCode::Esc => self.over = true,
            KeyCode::Char('s') | KeyCode::Right => self.sort.key = self.sort.key.step(1),
            KeyCode::Left => self.sort.key = self.sort.key.back(),
            KeyCode::Char('r') => self.sort.reversed = !self.sort.reversed,
            KeyCode::Up => self.scroll = self.scroll.saturating_sub(1),
            KeyCode::Down => self.scroll = self.scroll.saturating_add(1),
            KeyCode::PageUp => self.scroll = self.scroll.saturating_sub(PAGE),
            KeyCode::PageDown => self.scroll = self.scroll.saturating_add(PAGE),
            _ => {}
        }
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
        let most = lines.len().saturating_sub(usize::from(body.height));
        self.scroll = self.scroll.min(u16::try_from(most).unwrap_or(u16::MAX));
        frame.render_widget(Paragraph::new(lines).scroll((self.scroll, 0)), body);
        let keys = match &self.trouble {
            Some(trouble) => format!("no answer: {trouble}"),
            None => format!(
                "q quit  s ←→ sort: {}{}  r reverse  ↑↓ scroll",
                self.sort.key.name(),
                if self.sort.reversed { ", reversed" } else { "" }
            ),
        };
        frame.render_widget(Line::from(keys).dim(), foot);
    }
}
