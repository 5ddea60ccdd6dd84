//! A progress bar for long work, where somebody watches.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::quantity;

/// Work that is done sooner needs no bar.
const PATIENCE: Duration = Duration::from_millis(700);

/// Packets between two looks at the bar, where a loop counts packets.
pub const SHOW: u64 = 1 << 16;

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

    /// Shows how far the work is: packets read, and of what share of them that is if it is known.
    pub fn show(&mut self, read: u64, share: Option<f64>) {
        if !self.watched || self.began.elapsed() < PATIENCE {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| new_bar(share.is_some()));
        bar.set_message(format!("{} packets", quantity::grouped(read)));
        match share {
            Some(share) => bar.set_position((share * 1000.0) as u64),
            None => bar.tick(),
        }
    }

    /// Does something that writes lines, above the bar.
    pub fn above(&self, write: impl FnOnce()) {
        match &self.bar {
            Some(bar) => bar.suspend(write),
            None => write(),
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

/// Says what building is at, where somebody watches.
pub struct Stages {
    spinner: Option<ProgressBar>,
}

impl Stages {
    /// Nothing is shown before the first stage.
    pub fn new() -> Self {
        Self { spinner: None }
    }

    /// A stage begins.
    pub fn show(&mut self, stage: millrace_emit::Stage) {
        use millrace_emit::Stage;
        // What takes no time worth telling of comes and goes unseen.
        let text = match stage {
            Stage::Compile => "compiling the source to BPF",
            Stage::Check => "proving it safe",
            Stage::Module => "compiling the generated code",
            Stage::Load | Stage::Emit => return,
        };
        if !std::io::stderr().is_terminal() {
            return;
        }
        let spinner = self.spinner.get_or_insert_with(ProgressBar::new_spinner);
        spinner.enable_steady_tick(Duration::from_millis(100));
        spinner.set_message(text);
    }

    /// Takes it away.
    pub fn end(&self) {
        if let Some(spinner) = &self.spinner {
            spinner.finish_and_clear();
        }
    }
}
