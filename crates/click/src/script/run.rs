//! Instructions of scripts.

use super::{MOST_JUMPS, Script};
use crate::arguments::{boolean, duration};
use crate::interpreter::Context;
use crate::language::args;
use crate::language::variables::Expansion;

/// Why a script runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// it goes on
    Run,
    /// a packet has come
    Packet,
}

/// What a script waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// nothing: it has ended, perhaps with a value
    Ended(Option<String>),
    /// it leaves the packet alone, or drops it
    Exit,
    /// a time, nanoseconds
    Until(i64),
    /// a stop of the driver
    Stop,
}

/// Bytes of one expansion, at most.
const MOST_TEXT: usize = 1 << 22;

impl Script {
    /// A text with variables and calls replaced.
    pub fn expand(&mut self, text: &str, cx: &Context<'_>) -> String {
        let variables = self.variables.clone();
        let mut value = |name: &str| variables.get(name).cloned();
        let mut call = |inner: &str| {
            let (name, rest) = args::first_word(inner);
            let (name, rest) = (name.to_owned(), rest.to_owned());
            match self.function(&name, &rest, cx) {
                Some(answer) => Some(answer),
                None => match cx.read(&name, &args::text(&rest)) {
                    Ok(answer) => Some(answer.trim_end_matches('\n').to_owned()),
                    Err(why) => {
                        cx.note(&format!("{}: {why}\n", cx.title()));
                        Some(String::new())
                    }
                },
            }
        };
        let mut expansion = Expansion {
            value: &mut value,
            call: Some(&mut call),
            left: MOST_TEXT,
        };
        expansion.expand(text, 0).unwrap_or_default()
    }

    /// Runs until it waits or ends.
    pub fn go(&mut self, why: Why, cx: &Context<'_>) -> Next {
        while let Some((word, rest)) = self.instructions.get(self.at).cloned() {
            self.at += 1;
            let size: usize = self.variables.values().map(String::len).sum();
            if !cx.spend(1 + (rest.len() + size) as u64 / 16) {
                return Next::Ended(None);
            }
            if cx.stopping() && why == Why::Run && self.stops == 0 && word != "stop" {
                // Something else has stopped the run meanwhile: it is asked again then.
                self.at -= 1;
                return Next::Stop;
            }
            match word.as_str() {
                "label" | "" => {}
                "set" | "init" | "export" | "setq" | "initq" => {
                    let (name, value) = args::first_word(&rest);
                    let (name, value) = (name.to_owned(), value.to_owned());
                    if matches!(word.as_str(), "init" | "initq" | "export")
                        && self.variables.contains_key(&name)
                    {
                        continue;
                    }
                    let value = self.expand(&value, cx);
                    self.variables.insert(name, value);
                }
                "print" | "printn" | "printq" | "printnq" => self.print(&word, &rest, cx),
                "read" | "readq" => {
                    let rest = self.expand(&rest, cx);
                    let (name, argument) = args::first_word(&rest);
                    match self.handler(name, &args::text(argument), cx) {
                        Ok(text) => {
                            // The handler of this script itself is printed with its name.
                            let full = match name.contains('.') {
                                true => name.to_owned(),
                                false => format!("{}.{name}", cx.name()),
                            };
                            let full = if super::functions::is_global(name) {
                                name
                            } else {
                                &full
                            };
                            cx.note(&format!("{full}:\n{}\n\n", text.trim_end_matches('\n')));
                        }
                        Err(why) if word == "read" => cx.note(&format!("{}: {why}\n", cx.title())),
                        Err(_) => {}
                    }
                }
                "write" | "writeq" => {
                    let rest = self.expand(&rest, cx);
                    let (name, value) = args::first_word(&rest);
                    let value = if word == "writeq" {
                        args::text(value)
                    } else {
                        value.to_owned()
                    };
                    self.write(name, &value, cx);
                }
                "wait" | "wait_time" | "wait_for" if !rest.is_empty() => {
                    self.jumps = 0;
                    let time = self.expand(&rest, cx);
                    match duration(&time) {
                        Some(time) => return Next::Until(cx.now().saturating_add(time)),
                        None => cx.note(&format!("{}: bad time '{time}'\n", cx.title())),
                    }
                }
                "wait" | "wait_stop" | "pause" => {
                    let count = self.expand(&rest, cx).trim().parse().unwrap_or(1);
                    self.stops = count;
                    if count > 0 {
                        return Next::Stop;
                    }
                }
                "goto" | "loop" => {
                    let rest = if word == "loop" {
                        format!("begin {rest}")
                    } else {
                        rest
                    };
                    let (label, condition) = args::first_word(&rest);
                    let (label, condition) = (label.to_owned(), condition.to_owned());
                    if !condition.is_empty() {
                        let text = self.expand(&condition, cx);
                        if !boolean(&text).unwrap_or(!text.is_empty()) {
                            continue;
                        }
                    }
                    self.jumps += 1;
                    if self.jumps > MOST_JUMPS {
                        cx.note(&format!("{}: too many jumps, giving up\n", cx.title()));
                        self.at = self.instructions.len();
                        return Next::Ended(None);
                    }
                    match (self.label(&label), label.as_str()) {
                        (Some(at), _) => self.at = at,
                        (None, "stop") => {
                            cx.stop();
                            self.at = self.instructions.len();
                        }
                        (None, "exit") => return Next::Exit,
                        (None, _) => self.at = self.instructions.len(),
                    }
                }
                "return" | "returnq" => {
                    let value = self.expand(&rest, cx);
                    let value = if word == "returnq" {
                        args::text(&value)
                    } else {
                        value
                    };
                    self.at = self.instructions.len();
                    return Next::Ended(Some(value));
                }
                "end" => {
                    self.at = self.instructions.len();
                    return Next::Ended(None);
                }
                "exit" => {
                    self.at = self.instructions.len();
                    return Next::Exit;
                }
                "stop" => {
                    cx.stop();
                    self.at = self.instructions.len();
                    return Next::Ended(None);
                }
                "error" | "errorq" => {
                    let text = self.expand(&rest, cx);
                    cx.note(&format!("{}: {}\n", cx.title(), args::text(&text)));
                    self.at = self.instructions.len();
                    return Next::Ended(None);
                }
                "save" | "append" => {
                    let rest = self.expand(&rest, cx);
                    let words = args::words(&rest);
                    if let [name, file] = words.as_slice() {
                        let text = self.handler(name, "", cx).unwrap_or_default();
                        let done = cx.file(file, text.as_bytes(), word == "append");
                        if let Err(why) = done {
                            cx.note(&format!("{why}\n"));
                        }
                    }
                }
                other => {
                    cx.note(&format!("{}: unknown instruction '{other}'\n", cx.title()));
                }
            }
        }
        Next::Ended(None)
    }

    /// A handler of this script, a function, or another element's handler.
    fn handler(&mut self, name: &str, argument: &str, cx: &Context<'_>) -> Result<String, String> {
        let own = name
            .rsplit_once('.')
            .filter(|(e, _)| *e == cx.name())
            .map(|(_, h)| h);
        if let Some(own) = own {
            return self
                .function(own, argument, cx)
                .or_else(|| self.variables.get(own).cloned())
                .ok_or_else(|| format!("no '{name}' read handler"));
        }
        if !name.contains('.')
            && let Some(answer) = self.function(name, argument, cx)
        {
            return Ok(answer);
        }
        cx.read(name, argument)
    }

    fn write(&mut self, name: &str, value: &str, cx: &Context<'_>) {
        if name == "set" {
            let (name, value) = args::first_word(value);
            self.variables.insert(name.to_owned(), value.to_owned());
            return;
        }
        if let Err(why) = cx.write(name, value) {
            cx.note(&format!("{}: {why}\n", cx.title()));
        }
    }

    fn print(&mut self, word: &str, rest: &str, cx: &Context<'_>) {
        let rest = self.expand(rest, cx);
        let mut rest = rest.trim();
        let mut file = ("-".to_owned(), true);
        if let Some(after) = rest.strip_prefix('>') {
            let (append, after) = match after.strip_prefix('>') {
                Some(after) => (true, after),
                None => (false, after),
            };
            let (name, text) = args::first_word(after);
            (file, rest) = ((name.to_owned(), append), text);
        }
        let (name, argument) = args::first_word(rest);
        // A handler's name alone is read; anything else is text.
        let handler = (name.contains('.') || argument.is_empty())
            && !rest.starts_with(['"', '\'', '\\', '$'])
            && !name.starts_with(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
        let mut text = match handler.then(|| self.handler(name, &args::text(argument), cx)) {
            Some(Ok(text)) => text.into_bytes(),
            _ => args::unquote(rest),
        };
        if !word.starts_with("printn") && text.last() != Some(&b'\n') {
            text.push(b'\n');
        }
        if let Err(why) = cx.file(&file.0, &text, file.1) {
            cx.note(&format!("{why}\n"));
        }
    }
}
