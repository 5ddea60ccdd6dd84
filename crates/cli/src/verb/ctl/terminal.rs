//! The shell at a terminal: lines are edited, completed and kept.

use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use clap::{Command, CommandFactory};
use millrace_control::client::{Client, request};
use millrace_control::protocol::{ChainRequest, Request};
use reedline::{
    ColumnarMenu, Completer, DefaultPrompt, DefaultPromptSegment, Emacs, FileBackedHistory,
    KeyCode, KeyModifiers, MenuBuilder, Reedline, ReedlineEvent, ReedlineMenu, Signal, Span,
    Suggestion, default_emacs_keybindings,
};
use serde_json::Value;

use super::complete::{self, Known};
use super::shell::{Line, said};
use crate::failure::{DONE, Failure};
use crate::screen;
use crate::target::Target;

/// Lines that the history keeps.
const HISTORY: usize = 1000;
/// Keys that are offered.
const KEYS: usize = 100;

/// Reads lines until ^D or `quit`; the exit status is that of the last one that failed.
pub fn run(target: &Target, name: &str, json: bool) -> Result<u8, Failure> {
    const MENU: &str = "completion";
    let mut command = Line::command();
    command.build();
    let typing = Typing {
        command,
        socket: target.path()?,
    };
    let mut keys = default_emacs_keybindings();
    let next = vec![
        ReedlineEvent::Menu(MENU.to_owned()),
        ReedlineEvent::MenuNext,
    ];
    keys.add_binding(
        KeyModifiers::NONE,
        KeyCode::Tab,
        ReedlineEvent::UntilFound(next),
    );
    // What is typed while a line is done, when the terminal translates, ends with ^J: as in other shells it ends a line.
    keys.add_binding(
        KeyModifiers::CONTROL,
        KeyCode::Char('j'),
        ReedlineEvent::Enter,
    );
    let menu = ColumnarMenu::default().with_name(MENU);
    let mut editor = Reedline::create()
        .with_completer(Box::new(typing))
        .with_menu(ReedlineMenu::EngineCompleter(Box::new(menu)))
        .with_partial_completions(true)
        .with_quick_completions(true)
        .with_edit_mode(Box::new(Emacs::new(keys)));
    if let Some(path) = history() {
        match FileBackedHistory::with_file(HISTORY, path.clone()) {
            Ok(kept) => editor = editor.with_history(Box::new(kept)),
            Err(error) => screen::err(&format!("note: {}: {error}", path.display())),
        }
    }
    let left = DefaultPromptSegment::Basic(name.to_owned());
    let prompt = DefaultPrompt::new(left, DefaultPromptSegment::Empty);
    screen::out("help lists what there is, Tab completes, quit or ^D leaves");
    let mut status = DONE;
    loop {
        let typed = editor.read_line(&prompt);
        match typed.map_err(|e| Failure::wrong(format!("the terminal: {e}")))? {
            Signal::Success(line) => match said(&line, target, json) {
                None => return Ok(status),
                Some(DONE) => {}
                Some(failed) => status = failed,
            },
            Signal::CtrlD => return Ok(status),
            // ^C leaves a line.
            _ => {}
        }
    }
}

/// Where lines are kept from shell to shell: in a folder that nobody else enters.
fn history() -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/state"));
    let folder = state
        .filter(|p| p.is_absolute())
        .or_else(home)?
        .join("millrace");
    let made = std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder);
    made.is_ok().then(|| folder.join("ctl_history"))
}

/// What is being typed, and whom it is for.
struct Typing {
    command: Command,
    socket: PathBuf,
}

impl Typing {
    fn ask(&self, request: Request) -> Value {
        let answer = Client::connect(&self.socket)
            .ok()
            .and_then(|mut c| c.ask(request).ok());
        answer.unwrap_or_default()
    }

    fn names(&self, verb: &str, list: &str) -> Vec<String> {
        let answer = self.ask(request(verb));
        let all = answer[list].as_array().into_iter().flatten();
        all.filter_map(|o| o["name"].as_str().map(str::to_owned))
            .collect()
    }
}

impl Known for Typing {
    fn elements(&self) -> Vec<String> {
        let answer = self.ask(Request {
            chain: Some(ChainRequest {
                op: "show".into(),
                ..ChainRequest::default()
            }),
            ..request("chain")
        });
        let all = answer["elements"].as_array().into_iter().flatten();
        all.filter_map(|e| e["name"].as_str().map(str::to_owned))
            .collect()
    }

    fn objects(&self) -> Vec<String> {
        self.names("objects", "objects")
    }

    fn keys(&self, object: &str) -> Vec<String> {
        let answer = self.ask(Request {
            object: Some(object.to_owned()),
            limit: Some(KEYS),
            ..request("entries")
        });
        let all = answer["words"].as_array().into_iter().flatten();
        all.filter_map(|w| w[0].as_str().map(str::to_owned))
            .collect()
    }

    fn params(&self) -> Vec<String> {
        self.names("params", "params")
    }

    fn functions(&self) -> Vec<String> {
        let folders = std::fs::read_dir("nfs").into_iter().flatten().flatten();
        let folders = folders.filter(|e| e.path().is_dir());
        folders
            .map(|e| e.file_name().to_string_lossy().into_owned())
            .collect()
    }

    fn guests(&self) -> Vec<String> {
        self.names("guests", "guests")
    }
}

impl Completer for Typing {
    fn complete(&mut self, line: &str, position: usize) -> Vec<Suggestion> {
        let line = line.get(..position).unwrap_or_default();
        let (begin, before) = complete::words(line);
        let partial = line.get(begin..).unwrap_or_default();
        let all = complete::candidates(&self.command, &before, partial, self);
        let suggestion = |value: String| Suggestion {
            append_whitespace: !value.ends_with('='),
            value,
            span: Span::new(begin, position),
            ..Suggestion::default()
        };
        all.into_iter().map(suggestion).collect()
    }
}
