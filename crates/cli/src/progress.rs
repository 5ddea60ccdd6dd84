//! A progress bar for long work, where somebody watches.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use millrace_dataplane::runner::Progress;

use crate::quantity;

/// Work that is done sooner needs no bar.
const PATIENCE: Duration = Duration::from_millis(700);

/// The bar, once there is one.
pub struct Bar {
    began: Instant,
    watched: bool,
    bar: Option<ProgressBar>,
}

impl Bar {
    /// A bar that shows itself only on a terminal, and only when the work takes long.
    pub fn new() -> Self {
        Self {
            began: Instant::now(),
            watched: std::io::stderr().is_terminal(),
            bar: None,
        }
    }

    /// Shows how far the run is.
    pub fn show(&mut self, progress: Progress) {
        if !self.watched || self.began.elapsed() < PATIENCE {
            return;
        }
        let bar = self
            .bar
            .get_or_insert_with(|| new_bar(progress.share.is_some()));
        bar.set_message(format!("{} packets", quantity::grouped(progress.read)));
        match progress.share {
            Some(share) => bar.set_position((share * 1000.0) as u64),
            None => bar.tick(),
        }
    }

    /// Takes it away.
    pub fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn new_bar(measured: bool) -> ProgressBar {
    let (bar, template) = if measured {
        (
            ProgressBar::new(1000),
            "{bar:40} {percent:>3} %  {msg}  {eta} left",
        )
    } else {
        (ProgressBar::new_spinner(), "{spinner} {msg}  {elapsed}")
    };
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
