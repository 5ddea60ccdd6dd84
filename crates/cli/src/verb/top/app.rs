//! The screen: what keys do and what is drawn.

use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
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
        let pauses = matches!(key.code, KeyCode::Char(' ' | 'p'));
        if pauses && key.kind != KeyEventKind::Release {
            self.paused = !self.paused;
        }
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
        let mut title = vec![Line::from(table::summary(&self.view)).bold()];
        // On a line of its own, which a narrow screen does not cut off.
        title.extend(self.paused.then(|| Line::from(" PAUSED ".reversed())));
        frame.render_widget(Paragraph::new(title), head);

        let width = usize::from(body.width);
        let lines = drawn(table::tables(&self.view, self.sort), width);
        scrolled(frame, body, lines, &mut self.scroll);
        let keys = footer("space pause  ", self.sort, self.trouble.as_deref());
        frame.render_widget(keys, foot);
    }
}

/// What keys ask for on every screen.
fn pressed(key: KeyEvent, sort: &mut Sort, scroll: &mut u16, over: &mut bool) {
    if key.kind == KeyEventKind::Release {
        return;
    }
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('c') if control => *over = true,
        KeyCode::Char('q') | KeyCode::Esc => *over = true,
        KeyCode::Char('s') | KeyCode::Right => sort.key = sort.key.step(1),
        KeyCode::Left => sort.key = sort.key.back(),
        KeyCode::Char('r') => sort.reversed = !sort.reversed,
        KeyCode::Up => *scroll = scroll.saturating_sub(1),
        KeyCode::Down => *scroll = scroll.saturating_add(1),
        KeyCode::PageUp => *scroll = scroll.saturating_sub(PAGE),
        KeyCode::PageDown => *scroll = scroll.saturating_add(PAGE),
        _ => {}
    }
}

/// Lines from one on, which is the last screenful at most.
fn scrolled(frame: &mut Frame<'_>, body: Rect, lines: Vec<Line<'static>>, scroll: &mut u16) {
    let most = lines.len().saturating_sub(usize::from(body.height));
    *scroll = (*scroll).min(u16::try_from(most).unwrap_or(u16::MAX));
    frame.render_widget(Paragraph::new(lines).scroll((*scroll, 0)), body);
}

/// The last line: keys, or why there is no new answer.
fn footer(more: &str, sort: Sort, trouble: Option<&str>) -> Line<'static> {
    if let Some(trouble) = trouble {
        // What stands above it is old.
        return Line::from(format!("no answer: {trouble}")).reversed();
    }
    let text = format!(
        "q quit  {more}s ←→ sort: {}{}  r reverse  ↑↓ scroll",
        sort.key.name(),
        if sort.reversed { ", reversed" } else { "" }
    );
    Line::from(text).dim()
}

/// Tables as lines of a screen of so many columns.
fn drawn(tables: Vec<Table>, width: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for table in tables {
        let blocks = table.blocks(width);
        if !blocks.is_empty() {
            lines.push(Line::from(table.title).bold());
        }
        for block in blocks {
            let mut rows = block.into_iter();
            let head = rows.next().unwrap_or_default();
            lines.push(Line::from(head).style(Style::new().underlined()));
            lines.extend(rows.map(Line::from));
            lines.push(Line::default());
        }
    }
    lines
}

pub mod all;

#[cfg(test)]
mod tests;
