//! The screen of a cluster.

use ratatui::Frame;
use ratatui::crossterm::event::KeyEvent;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::Stylize;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use super::super::cluster::{All, Seen};
use super::super::cluster_text::{notes, summary, tables};
use super::super::table::{Sort, wrapped};
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
        let width = usize::from(frame.area().width);
        let [cluster, packets] = summary(&self.all);
        let one = format!("{cluster}  {packets}");
        let title = match one.chars().count() <= width {
            true => vec![one],
            false => [cluster, packets]
                .iter()
                .flat_map(|l| wrapped(l, width))
                .collect(),
        };
        let rows = Layout::vertical([
            Constraint::Length(u16::try_from(title.len()).unwrap_or(0) + 1),
            Constraint::Min(0),
            Constraint::Length(1),
        ]);
        let [head, body, foot] = rows.areas(frame.area());
        let title: Vec<_> = title.into_iter().map(|l| Line::from(l).bold()).collect();
        frame.render_widget(Paragraph::new(title), head);
        let notes = notes(&self.all);
        let notes = notes.iter().flat_map(|note| wrapped(note, width));
        let mut lines: Vec<_> = notes.map(Line::from).collect();
        if !lines.is_empty() {
            lines.push(Line::default());
        }
        lines.extend(drawn(tables(&self.all, self.sort), width));
        scrolled(frame, body, lines, &mut self.scroll);
        let keys = footer("", self.sort, self.trouble.as_deref());
        frame.render_widget(keys, foot);
    }
}

#[cfg(test)]
mod tests;
