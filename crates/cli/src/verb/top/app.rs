//! The screen: what keys do and what is drawn.

use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use super::sample::Stats;
use super::table::{self, Sort, Table};
use super::view::View;

/// Lines that a page key moves by.
const PAGE: u16 = 10;

/// State of the screen.
#[derive(Default)]
pub struct App {
    before: Stats,
    /// the figures of the last two answers
    pub view: View,
    /// why there is no new answer
    pub trouble: Option<String>,
    /// how rows are sorted
    pub sort: Sort,
    paused: bool,
    scroll: u16,
    /// somebody wants to leave
    pub over: bool,
}

impl App {
    /// Begins with a first answer: rates are over the whole run so far.
    pub fn new(first: Stats) -> Self {
        Self {
            view: View::between(&Stats::default(), &first),
            before: first,
            ..Self::default()
        }
    }

    /// Takes an answer. While the screen is paused it shows what it showed, and when it goes on its
    /// first rates are over one interval, not over the pause.
    pub fn answer(&mut self, stats: Stats) {
        if !self.paused {
            self.view = View::between(&self.before, &stats);
        }
        self.before = stats;
        self.trouble = None;
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
            KeyCode::Char(' ' | 'p') => self.paused = !self.paused,
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
        let mut title = vec![Line::from(table::summary(&self.view)).bold()];
        // On a line of its own, which a narrow screen does not cut off.
        title.extend(self.paused.then(|| Line::from(" PAUSED ".reversed())));
        frame.render_widget(Paragraph::new(title), head);

        let lines = drawn(table::tables(&self.view, self.sort));
        let most = lines.len().saturating_sub(usize::from(body.height));
        self.scroll = self.scroll.min(u16::try_from(most).unwrap_or(u16::MAX));
        frame.render_widget(Paragraph::new(lines).scroll((self.scroll, 0)), body);

        let keys = match &self.trouble {
            Some(trouble) => format!("no answer: {trouble}"),
            None => format!(
                "q quit  space pause  s ←→ sort: {}{}  r reverse  ↑↓ scroll",
                self.sort.key.name(),
                if self.sort.reversed { ", reversed" } else { "" }
            ),
        };
        frame.render_widget(Line::from(keys).dim(), foot);
    }
}

/// Tables as lines of a screen.
fn drawn(tables: Vec<Table>) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for table in tables {
        let mut rows = table.lines().into_iter();
        let Some(columns) = rows.next() else {
            continue;
        };
        lines.push(Line::from(table.title).bold());
        lines.push(Line::from(columns).style(Style::new().underlined()));
        lines.extend(rows.map(Line::from));
        lines.push(Line::default());
    }
    lines
}

pub mod all;

#[cfg(test)]
mod tests;
