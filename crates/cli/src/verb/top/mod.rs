//! `millrace top`: what a running function does, as it does it.
//!
//! The run is asked over its control socket; each worker answers between two of its bursts. Rates are
//! differences of two answers over the time between them.

mod app;
mod cluster;
mod cluster_text;
mod sample;
mod table;
mod view;

use std::io::IsTerminal;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use clap::Args;
use millrace::cluster::Agreed;
use millrace_control::Trouble;
use millrace_control::client::{Client, request};
use ratatui::crossterm::event::{self, Event};

use crate::failure::{DONE, Failure};
use crate::screen;
use crate::target::Target;
use app::App;
use app::all::AllApp;
use cluster::{All, Looker, Seen};
use sample::Stats;
use table::Sort;
use view::View;

/// How often the screen is new, and the time that `--once` looks at.
const REFRESH: Duration = Duration::from_millis(250);
const LOOK: Duration = Duration::from_secs(1);
/// How soon a key is noticed at the latest while answers come.
const KEYS: Duration = Duration::from_millis(50);

/// Watch a running function: packets, drops, time a packet, by worker, port, function and reason.
#[derive(Args)]
#[command(after_help = "\
Keys: q quit; space or p pause; s, right and left choose what rows are sorted by, r reverses; up, down \
and page keys scroll.

Exit status: 0 done, 2 wrong use or nothing that answers.")]
pub struct Top {
    #[command(flatten)]
    target: Target,

    #[command(flatten)]
    machines: cluster::Asked,

    /// Print the figures once as text, and end
    #[arg(long, conflicts_with = "json")]
    once: bool,

    /// Print the figures once as one JSON document, and end
    #[arg(long)]
    pub json: bool,

    /// Time between two looks: 0.25 on a terminal, 1 with --once, --json and --cluster
    #[arg(long, value_name = "SECONDS", value_parser = interval)]
    every: Option<Duration>,
}

/// Between two looks there are at least 50 ms: a worker answers each of them.
fn interval(text: &str) -> Result<Duration, String> {
    let time = super::run::seconds(text)?;
    let range = KEYS..=Duration::from_secs(3600);
    let fits = Some(time).filter(|t| range.contains(t));
    fits.ok_or_else(|| "from 0.05 to 3600 seconds".into())
}

impl Top {
    /// Watches the run, and gives the exit status.
    ///
    /// # Errors
    /// There is no such run, or standard output is no terminal.
    pub fn perform(&self) -> Result<u8, Failure> {
        let once = self.once || self.json;
        let terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
        if !once && !terminal {
            return Err(Failure::wrong("top draws on a terminal, and this is none")
                .help("give --once or --json"));
        }
        if let Some(agreed) = &self.machines.cluster {
            return self.all(agreed, once);
        }
        let mut client = self.target.connect()?;
        let first = ask(&mut client)?;
        let every = self.every.unwrap_or(if once { LOOK } else { REFRESH });
        if !once {
            return watch(client, first, every);
        }
        std::thread::sleep(every);
        let second = ask(&mut client)?;
        let view = View::between(&first, &second);
        if self.json {
            screen::document(&view);
        } else {
            screen::out(&table::text(&view, Sort::default()));
        }
        Ok(DONE)
    }
}

impl Top {
    /// All machines of a cluster.
    fn all(&self, agreed: &Agreed, once: bool) -> Result<u8, Failure> {
        let looker = Looker::new(&self.machines, agreed)?;
        let first = looker.look()?;
        let every = self.every.unwrap_or(LOOK);
        if !once {
            return watch_all(looker, first, every);
        }
        std::thread::sleep(every);
        let all = All::between(&first, &looker.look()?);
        if self.json {
            screen::document(&all);
        } else {
            screen::out(&cluster_text::text(&all, Sort::default()));
        }
        Ok(DONE)
    }
}

/// Draws all machines until somebody leaves. An etcd that is away for a while is said below.
fn watch_all(looker: Looker, first: Seen, every: Duration) -> Result<u8, Failure> {
    let mut app = AllApp::new(first);
    let (sender, answers) = mpsc::channel();
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(every);
            if sender.send(looker.look().map_err(|e| e.what)).is_err() {
                return;
            }
        }
    });
    on_terminal(|terminal| {
        while !app.over {
            terminal.draw(|frame| app.draw(frame))?;
            let mut changed = false;
            while !changed {
                changed = pressed(&mut |key| app.key(key))?;
                for answer in answers.try_iter() {
                    changed = true;
                    app.answer(answer);
                }
            }
        }
        Ok(())
    })?;
    Ok(DONE)
}

/// Draws on the terminal, which is left as it was.
fn on_terminal<T>(
    draw: impl FnOnce(&mut ratatui::DefaultTerminal) -> std::io::Result<T>,
) -> Result<T, Failure> {
    let failed = |e: std::io::Error| {
        Failure::wrong(format!("the terminal cannot be drawn on: {e}"))
            .help("give --once or --json")
    };
    let mut terminal = ratatui::try_init().map_err(failed)?;
    let result = draw(&mut terminal);
    ratatui::restore();
    result.map_err(failed)
}

/// Waits a moment for a key; whether the screen is to be drawn anew.
fn pressed(key: &mut dyn FnMut(event::KeyEvent)) -> std::io::Result<bool> {
    if !event::poll(KEYS)? {
        return Ok(false);
    }
    Ok(match event::read()? {
        Event::Key(pressed) => {
            key(pressed);
            true
        }
        Event::Resize(..) => true,
        _ => false,
    })
}

fn ask(client: &mut Client) -> Result<Stats, Trouble> {
    let answer = client.ask(request("stats"))?;
    serde_json::from_value(answer).map_err(|e| {
        Trouble::new("malformed", format!("counts that cannot be read: {e}"))
            .help("use the command of the run's own release")
    })
}

/// Asks again and again, on a thread of its own: a worker that is held up must not hold up keys. Ends
/// with the first answer that says there will be no more, or when nobody listens.
fn sampler(mut client: Client, every: Duration) -> Receiver<Result<Stats, Trouble>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut next = Instant::now() + every;
        loop {
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
            // After a long wait for an answer there is nothing to catch up with.
            next = Instant::now() + every;
            let answer = ask(&mut client);
            let last = answer.as_ref().is_err_and(|t| t.code != "busy");
            if sender.send(answer).is_err() || last {
                return;
            }
        }
    });
    receiver
}

fn watch(client: Client, first: Stats, every: Duration) -> Result<u8, Failure> {
    let mut app = App::new(first);
    let answers = sampler(client, every);
    let ended = on_terminal(|terminal| show(terminal, &mut app, &answers))?;
    if let Some(trouble) = ended {
        // The screen is gone: what it said last stays.
        screen::out(&table::text(&app.view, app.sort));
        let what = match trouble.code.as_str() {
            "ended" | "unreachable" => "the run has ended",
            _ => &trouble.what,
        };
        screen::err(&format!("{}: {what}", app.view.name));
    }
    Ok(DONE)
}

/// Draws until somebody leaves (none), or the run says no more.
fn show(
    terminal: &mut ratatui::DefaultTerminal,
    app: &mut App,
    answers: &Receiver<Result<Stats, Trouble>>,
) -> std::io::Result<Option<Trouble>> {
    loop {
        terminal.draw(|frame| app.draw(frame))?;
        let mut changed = false;
        while !changed {
            changed = pressed(&mut |key| app.key(key))?;
            for answer in answers.try_iter() {
                changed = true;
                match answer {
                    Ok(stats) => app.answer(stats),
                    Err(trouble) if trouble.code == "busy" => app.trouble = Some(trouble.what),
                    Err(trouble) => return Ok(Some(trouble)),
                }
            }
        }
        if app.over {
            return Ok(None);
        }
    }
}
